//! Supervision.
