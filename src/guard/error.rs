//! Why a policy file is refused.

/// Why a policy file is refused, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {fault}")]
pub struct PolicyError {
    /// The name that the file was given.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The character of the line, counted from 1.
    pub column: usize,
    /// What is wrong there.
    pub fault: PolicyFault,
}

/// What is wrong in a policy file. Every message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyFault {
    /// The text is no TOML.
    #[error("not TOML: {0}")]
    Syntax(String),
    /// The file is larger than a policy may be.
    #[error("the file has {bytes} bytes: at most {limit} are read; split the policy")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
    /// There is no guard in the file, so that it would permit everything.
    #[error("no `[[guard]]` in the file: a policy has at least one")]
    NoGuard,
    /// A key that nothing reads.
    #[error("unknown key `{key}`: expected one of {expected}")]
    UnknownKey {
        /// The key.
        key: String,
        /// The keys that may stand there.
        expected: String,
    },
    /// A key that has to be there.
    #[error("`{key}` is missing: {remedy}")]
    Missing {
        /// The key.
        key: &'static str,
        /// What to write.
        remedy: &'static str,
    },
    /// A value of another type or form.
    #[error("`{key}` must be {expected}")]
    Value {
        /// The key.
        key: String,
        /// What it must be.
        expected: &'static str,
    },
    /// Two keys of which one excludes the other.
    #[error("`{key}` does not go with {other}: {remedy}")]
    Conflict {
        /// The key.
        key: &'static str,
        /// The other one.
        other: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// Two guards of one name.
    #[error("a second guard is named {0:?}: give each a name of its own")]
    DuplicateName(String),
    /// A guard, or a part of one, that no call can match.
    #[error("{what} can never match: {remedy}")]
    NeverMatches {
        /// The guard's part.
        what: String,
        /// What to write.
        remedy: &'static str,
    },
}
