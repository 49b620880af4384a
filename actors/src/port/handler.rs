//! What an owner writes: how it starts, handles one message, and ends.

use std::fmt;
use std::sync::Arc;

use ractor::ActorCell;

use super::error::HandlerError;
use super::handle::Port;
use super::shared::{Ring, Shared};

/// The owner of a port. One value is one incarnation: a restart makes a new one, which reads its state back from the store in
/// [`started`](Self::started).
///
/// # Contract
/// - A handler is correct after a restart at any line: nothing that matters stands only in its fields, or only in `stopping`.
/// - Inside a handler there is no unbounded wait on another port: `try_send`, or a call in a task of the owner whose answer comes back as a
///   message. The usual mistake is `?` on a refused send; it does not compile, see [`HandlerError`].
/// - A handler that works concurrently counts its places, says in [`ready`](Self::ready) whether one is free, and rings its
///   [`Doorbell`] when one becomes free outside a handler.
pub trait Handler: Send + 'static {
    /// What the port carries.
    type Message: Send + 'static;

    /// Runs before the first message, on the time of whoever starts the owner.
    ///
    /// # Errors
    /// An error is a failed start: the incarnation never was.
    fn started(&mut self, context: &Context<Self::Message>) -> impl Future<Output = Result<(), HandlerError>> + Send {
        let _unused = context;
        async { Ok(()) }
    }

    /// Handles one message.
    ///
    /// # Cancel safety
    /// A kill drops the future at an await; the message is then lost, and counted as in hand at a crash.
    ///
    /// # Errors
    /// An error ends the incarnation as a crash does.
    fn handle(
        &mut self,
        message: Self::Message,
        context: &Context<Self::Message>,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send;

    /// Whether the owner can take a message of the data lane now. Control and completions come in any case.
    fn ready(&self) -> bool {
        true
    }

    /// Runs after the last message of an orderly end. Not after a crash or a kill: nothing needed for correctness stands here.
    fn stopping(&mut self, context: &Context<Self::Message>) -> impl Future<Output = ()> + Send {
        let _unused = context;
        async {}
    }
}

/// What a handler knows of its place.
pub struct Context<M> {
    shared: Arc<Shared<M>>,
    cell: ActorCell,
}

impl<M: Send + 'static> Context<M> {
    pub(super) fn new(shared: Arc<Shared<M>>, cell: ActorCell) -> Self {
        Self { shared, cell }
    }

    /// The handler's own port. Use [`Port::try_send`]: a wait for oneself is refused.
    #[must_use]
    pub fn port(&self) -> Port<M> {
        Port::new(Arc::clone(&self.shared))
    }

    /// What the tasks of a concurrent owner ring when a place of its bound is free.
    #[must_use]
    pub fn doorbell(&self) -> Doorbell {
        Doorbell(Arc::clone(&self.shared) as Arc<dyn Ring>)
    }

    /// Ends this incarnation in order, after the current message. Queued messages stay in the port.
    pub fn stop(&self) {
        self.cell.stop(None);
    }
}

impl<M> fmt::Debug for Context<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("port", &self.shared.name).finish_non_exhaustive()
    }
}

/// Makes an owner look at its port again.
#[derive(Clone)]
pub struct Doorbell(Arc<dyn Ring>);

impl Doorbell {
    /// Rings. Ringing for nothing is harmless.
    pub fn ring(&self) {
        self.0.ring();
    }
}

impl fmt::Debug for Doorbell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Doorbell")
    }
}
