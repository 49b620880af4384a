//! A signal filter as a condition of the fan-out kernel, which knows no signals.

use crate::dispatch::{Condition, HandlerError};
use crate::signal::{DeclaredFilter, Filter, Signal};

impl Condition<Signal> for Filter {
    fn holds(&self, signal: &Signal) -> Result<bool, HandlerError> {
        self.matches(signal).map_err(|error| HandlerError::failed("predicate", error))
    }
}

impl Condition<Signal> for DeclaredFilter {
    fn holds(&self, signal: &Signal) -> Result<bool, HandlerError> {
        Ok(self.matches(signal))
    }
}
