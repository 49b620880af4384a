//! For tests of programs that embed the core: fault points and the manual clock.

mod clock;
mod fault;

pub use clock::ManualClock;
pub use fault::{FaultAction, FaultPoint, Faults};
