//! Rows of the original system (feature `compat`): its hook points and its signal kinds.

mod hook;
mod point;

pub use hook::{HOOK_KIND, HookRecord};
pub use point::{DormantPoint, HookPoint};
