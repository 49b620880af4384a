//! How the program ends.

/// The exit code of a command. Scripts may rely on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// 0: done.
    Done,
    /// 1: done, and something was found: a denial under `--fail-on-deny`.
    Found,
    /// 2: the command line is wrong, or a file was refused.
    Refused,
    /// 3: the store is unavailable, or its schema is newer than this program.
    StoreUnavailable,
}

impl Exit {
    /// The number that the process returns.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Found => 1,
            Self::Refused => 2,
            Self::StoreUnavailable => 3,
        }
    }
}
