//! The planes of tipstaff without actors.

pub mod clock;
pub mod declare;
pub mod dispatch;
#[cfg(feature = "shell-guards")]
pub mod guard;
pub mod id;
pub mod interception;
pub mod observation;
pub mod operation;
pub mod signal;
pub mod state;
pub mod telemetry;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transcript;
