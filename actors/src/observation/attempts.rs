//! The attempts of a runtime that are open: an attempt is judged and performed once (I-12).

use std::fmt;
use std::sync::Arc;

use dashmap::DashSet;
use tipstaff_core::id::{AttemptId, OperationId};
use tipstaff_core::operation::AuditUnavailable;

/// The open attempts of one runtime. Cheap to clone. Bounded by what is under way.
#[derive(Clone, Default)]
pub(crate) struct OpenAttempts(Arc<DashSet<(OperationId, AttemptId)>>);

impl OpenAttempts {
    /// Claims an attempt until the claim is dropped.
    pub(super) fn claim(&self, operation: &OperationId, attempt: &AttemptId) -> Result<Claim, AuditUnavailable> {
        let key = (operation.clone(), attempt.clone());
        if self.0.insert(key.clone()) {
            Ok(Claim { open: self.clone(), key })
        } else {
            Err(AuditUnavailable::AttemptOpen { attempt: attempt.clone() })
        }
    }
}

/// One attempt that is under way.
pub(super) struct Claim {
    open: OpenAttempts,
    key: (OperationId, AttemptId),
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.open.0.remove(&self.key);
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Claim").field(&self.key.1).finish()
    }
}
