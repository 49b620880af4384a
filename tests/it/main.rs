//! Promises, end to end. One binary; each module is one promise or one folder of data.
#[cfg(test)]
mod journal_durability;
#[cfg(test)]
mod store_conformance;
