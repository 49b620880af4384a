//! Promises, end to end. One binary; each module is one promise or one folder of data.

mod data;
mod transcript_reader;
