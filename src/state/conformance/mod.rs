//! The suite that every backend passes: the same cases, through the public traits only.
//!
//! A backend's tests call [`run`] once. A case never knows which backend it is given.

mod append;
mod attempts;
mod crash;
mod read;
mod suite;

pub use suite::{Backend, run};
