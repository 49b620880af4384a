//! What is fixed when a port is made.

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

use super::core::{Core, Limits, Overflow};
use super::handle::Port;
use super::mailbox::Mailbox;
use super::poison::Poison;
use super::shared::Shared;

/// The bounds and rules of a port. Everything here is fixed for the port's life.
///
/// # Examples
/// ```
/// use std::num::NonZeroUsize;
/// use tipstaff::port::{Overflow, PortSpec, SendError};
///
/// let two = NonZeroUsize::new(2).unwrap();
/// let (port, _mailbox) = PortSpec::new("clerk", two, Overflow::Reject).open();
/// assert!(port.try_send("first").is_ok());
/// assert!(port.try_send("second").is_ok());
/// assert!(matches!(port.try_send("third"), Err(SendError::Full("third"))));
/// ```
pub struct PortSpec<M> {
    name: Arc<str>,
    limits: Limits,
    kind: Option<fn(&M) -> Option<u64>>,
    poison: Option<Poison<M>>,
}

impl<M> PortSpec<M> {
    /// Messages of the control lane, unless said otherwise.
    pub const CONTROL: usize = 8;

    /// A port whose data lane has `capacity` places. The name is for people: it stands in events and metrics, and addresses nothing.
    pub fn new(name: impl Into<Arc<str>>, capacity: NonZeroUsize, overflow: Overflow) -> Self {
        let limits = Limits { overflow, control: Self::CONTROL, completions: 0, data: capacity.get() };
        Self { name: name.into(), limits, kind: None, poison: None }
    }

    /// The length of the control lane.
    #[must_use]
    pub fn control(mut self, capacity: NonZeroUsize) -> Self {
        self.limits.control = capacity.get();
        self
    }

    /// The places of the completion lane: as many as the owner can have permits open. Without this, there are none.
    #[must_use]
    pub fn completions(mut self, permits: NonZeroUsize) -> Self {
        self.limits.completions = permits.get();
        self
    }

    /// Control messages for which `kind` gives the same number are queued once: the later one is dropped and counted. For messages that ask
    /// nobody for an answer, such as "look at your health".
    #[must_use]
    pub fn coalesce_control(mut self, kind: fn(&M) -> Option<u64>) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Sets messages aside that crash their owner again and again.
    #[must_use]
    pub fn poison(mut self, rule: PoisonRule<M>) -> Self {
        self.poison = Some(Poison::new(rule));
        self
    }

    /// Makes the port and the mailbox that its owner reads.
    #[must_use]
    pub fn open(self) -> (Port<M>, Mailbox<M>) {
        let Self { name, limits, kind, poison } = self;
        let shared = Arc::new(Shared { name, core: Core::new(limits), kind, poison });
        (Port::new(Arc::clone(&shared)), Mailbox::new(shared))
    }
}

impl<M> fmt::Debug for PortSpec<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortSpec").field("name", &self.name).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// When a message counts as poison, and where it goes.
///
/// A key that was in hand at `crashes` consecutive crashes of the owner is condemned: every further message with that key is given to
/// `set_aside` instead of the handler. A message of the key that is handled well clears it before that.
pub struct PoisonRule<M> {
    /// What makes two messages the same in this respect. `None`: never poison.
    pub key: fn(&M) -> Option<u64>,
    /// Crashes in a row after which the key is condemned.
    pub crashes: NonZeroU32,
    /// Receives what is not handled. Runs on the owner's thread; must not block.
    pub set_aside: fn(M),
}

impl<M> Clone for PoisonRule<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for PoisonRule<M> {}

impl<M> fmt::Debug for PoisonRule<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoisonRule").field("crashes", &self.crashes).finish_non_exhaustive()
    }
}
