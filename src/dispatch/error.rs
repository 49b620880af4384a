//! Why a list of phases is no policy, and why a subscriber is not registered.

use std::fmt;

use serde::{Serialize, Serializer};

use super::dispatcher::MAX_REGISTRATIONS;
use super::value::Selector;

/// Why a subscriber is not registered. The registry is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// Another registration of this dispatcher has the name.
    #[error("a subscriber named {name:?} is registered already: choose another name, or unregister that one first")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// The name is empty, longer than 256 bytes or holds a control character.
    #[error("subscriber name {name:?} must be 1 to 256 printable bytes")]
    Name {
        /// The refused name.
        name: String,
    },
    /// The dispatcher has [`MAX_REGISTRATIONS`] registrations.
    #[error("subscriber {name:?} is one too many: a dispatcher has at most {MAX_REGISTRATIONS}")]
    Full {
        /// The refused subscriber.
        name: String,
    },
}

/// Why a list of phases is no policy: the phase, the field and the rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}.{field} breaks {rule}: {remedy}")]
pub struct PolicyError {
    pub(super) place: Place,
    pub(super) field: &'static str,
    pub(super) rule: Rule,
    pub(super) remedy: &'static str,
}

impl PolicyError {
    /// The position of the phase in its list, or `None` when the list as a whole is refused.
    #[must_use]
    pub const fn phase(&self) -> Option<usize> {
        match self.place {
            Place::Policy => None,
            Place::Phase { at, .. } => Some(at),
        }
    }

    /// The field, by its serialised name.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        self.field
    }

    /// The rule.
    #[must_use]
    pub const fn rule(&self) -> Rule {
        self.rule
    }
}

/// What the error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Policy,
    Phase { at: usize, selector: Selector },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy => f.write_str("policy"),
            Self::Phase { at, selector } => write!(f, "phase {at} ({})", selector.as_str()),
        }
    }
}

/// A rule of policy validation, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// Selectors partition the registrations.
    F1,
    /// What a group or an unwrapped failure needs.
    F2,
    /// What logging only needs.
    F3,
    /// What gathering needs.
    F4,
    /// What classification needs.
    F5,
    /// What a deadline needs.
    F6,
    /// Pairs that contradict each other.
    F7,
    /// Which registrations take part in an emission.
    F8,
    /// What detached work needs.
    F20,
}

impl Rule {
    /// Every rule.
    pub const ALL: &'static [Self] = &[Self::F1, Self::F2, Self::F3, Self::F4, Self::F5, Self::F6, Self::F7, Self::F8, Self::F20];

    /// The rule's number in the specification.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::F1 => "F-1",
            Self::F2 => "F-2",
            Self::F3 => "F-3",
            Self::F4 => "F-4",
            Self::F5 => "F-5",
            Self::F6 => "F-6",
            Self::F7 => "F-7",
            Self::F8 => "F-8",
            Self::F20 => "F-20",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
