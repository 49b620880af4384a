//! Calling code of an owner or of a body, with its panics caught: no attempt loses its record to one.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs code of others; a panic is an error that says what it said. What it leaves behind is theirs, so nothing of ours is half done.
pub(super) fn contained<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(panic_text)
}

/// What a panic said.
pub(super) fn panic_text(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("a panic without a text").to_owned();
    // What a panic carries is a value of theirs, and its drop may panic as well.
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(second);
    }
    text
}
