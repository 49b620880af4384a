//! What a journal asks of a payload before it writes it. Pure.

use super::AppendError;
use crate::signal::{MAX_PAYLOAD_DEPTH, Signal};

/// A payload with a longer JSON text is stored beside its row, with size and digest (P-11).
pub const INLINE_PAYLOAD_BYTES: usize = 256 << 10;

/// The longest JSON text of a payload, in bytes.
pub const MAX_PAYLOAD_BYTES: usize = 512 << 20;

/// Refuses a payload that could be written and not read.
pub(super) fn check_payload(signal: &Signal) -> Result<(), AppendError> {
    if !signal.payload().nests_within(MAX_PAYLOAD_DEPTH) {
        return Err(AppendError::TooDeep { id: signal.id().clone() });
    }
    let bytes = signal.payload().wire().len();
    if bytes > MAX_PAYLOAD_BYTES {
        return Err(AppendError::TooLarge { id: signal.id().clone(), bytes });
    }
    Ok(())
}
