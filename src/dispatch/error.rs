//! Why a subscriber is not registered.

use super::registration::MAX_REGISTRATIONS;

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
