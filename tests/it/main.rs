//! Promises, end to end. One binary; each module is one promise or one folder of data.

mod digest;
mod interception;
