//! Bounded ports.
