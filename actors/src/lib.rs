//! tipstaff: guardrails that fail closed, an audit that no denial can suppress, delivery that survives a crash.

pub use tipstaff_core::*;

pub mod port;
pub mod supervision;
