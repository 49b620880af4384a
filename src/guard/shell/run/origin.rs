//! Which programs' output a text holds.

use std::sync::Arc;

/// Names of programs, each once, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::guard) struct Origins(Vec<Arc<str>>);

impl Origins {
    /// One program.
    pub(in crate::guard) fn of(program: &str) -> Self {
        Self(vec![Arc::from(program)])
    }

    /// Adds those of another text.
    pub(in crate::guard) fn add(&mut self, other: &Self) {
        for name in &other.0 {
            if let Err(place) = self.0.binary_search(name) {
                self.0.insert(place, Arc::clone(name));
            }
        }
    }

    /// Every name.
    pub(in crate::guard) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|name| &**name)
    }

    /// How many there are.
    pub(in crate::guard) fn len(&self) -> usize {
        self.0.len()
    }
}
