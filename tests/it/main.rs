//! Promises, end to end. One binary; each module is one promise or one folder of data.

mod pitfalls;
mod supervision_kernel;
