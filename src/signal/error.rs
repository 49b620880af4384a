//! Why a fact cannot be built.

/// Why a fact cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignalError {
    /// A kind has no namespace, or one that is not its author's to use.
    #[error("signal kind {name:?} is not `namespace.name` of lower-case letters, digits, `_` and `-`: {remedy}")]
    Kind {
        /// The refused name.
        name: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A role, subject or payload type is empty, too long or holds a control character.
    #[error("{what} {text:?} must be 1 to 256 printable bytes")]
    Name {
        /// Which member.
        what: &'static str,
        /// The refused text.
        text: String,
    },
    /// The payload cannot be written as JSON.
    #[error("the payload of type {payload_type} cannot be written as JSON")]
    Payload {
        /// The declared type of the payload.
        payload_type: String,
        /// What serialisation said.
        #[source]
        source: serde_json::Error,
    },
}
