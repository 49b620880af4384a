//! Rows and hook points of the original system (feature `compat`), read always and written when that is switched on (P-13).
//!
//! - [`LegacyRow::read`] makes a fact of a row; what the original has no name for is kept by its name, with a warning.
//! - [`LegacyRows::row`] makes a row of a fact, once it is switched on. A row that was read is written back as it was, but for the free-form arguments
//!   of a hook, which stand beside the fact and are handed over again.
//! - [`HookRecord`] is the closed part of a hook's record, and the only part that a fact carries.

mod hook;
mod kind;
mod point;
mod row;

pub use hook::{HOOK_KIND, HookRecord};
pub use kind::LegacyKind;
pub use point::{DormantPoint, HookPoint};
pub use row::{LegacyError, LegacyFact, LegacyRow, LegacyRows, LegacyWarning};
