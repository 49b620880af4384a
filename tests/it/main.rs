//! Promises, end to end. One binary; each module is one promise or one folder of data.
//!
//! Each module is `cfg(test)`, so that the lints know its helpers as parts of tests.

#[cfg(test)]
mod data;
#[cfg(test)]
mod transcript_reader;
