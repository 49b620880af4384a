//! A signal filter as a condition of the fan-out kernel, which knows no signals.

use crate::dispatch::{Condition, HandlerFailure};
use crate::signal::{DeclaredFilter, Filter, Signal};

impl Condition<Signal> for Filter {
    fn holds(&self, signal: &Signal) -> Result<bool, HandlerFailure> {
        self.matches(signal).map_err(|error| HandlerFailure::new("predicate", error))
    }
}

impl Condition<Signal> for DeclaredFilter {
    fn holds(&self, signal: &Signal) -> Result<bool, HandlerFailure> {
        Ok(self.matches(signal))
    }
}
