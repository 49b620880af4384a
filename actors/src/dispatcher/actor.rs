//! The actor of one dispatcher. Its message is the emission: admitted, with its snapshot taken.

use futures::future::BoxFuture;
use tipstaff_core::dispatch::{DispatchError, DispatchReport};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::port::{Context, Handler, HandlerError, Places};

/// Emissions of one dispatcher that run at the same time (F-24).
pub(crate) const MAX_IN_FLIGHT: usize = 1024;

/// What an emission comes to.
pub(crate) type Dispatched<V> = Result<DispatchReport<V>, DispatchError<V>>;

tokio::task_local! {
    /// The dispatcher whose handlers run in this task, by the address of its registrations.
    static WITHIN: usize;
}

/// Whether the caller is a handler of this dispatcher.
pub(super) fn within(dispatcher: usize) -> bool {
    WITHIN.try_with(|within| *within == dispatcher).unwrap_or(false)
}

/// An admitted emission as a future that knows whose handlers it runs.
pub(super) fn running<V: 'static>(
    dispatcher: usize,
    emission: impl Future<Output = Dispatched<V>> + Send + 'static,
) -> BoxFuture<'static, Dispatched<V>> {
    Box::pin(WITHIN.scope(dispatcher, emission))
}

/// What the actor of a dispatcher is told.
pub(crate) enum DispatchMessage<V> {
    /// Run one emission: invoke its handlers, gather what they returned, report.
    Emit {
        /// The rest of the emission.
        emission: BoxFuture<'static, Dispatched<V>>,
        /// Its emitter.
        answer: oneshot::Sender<Dispatched<V>>,
    },
}

/// One incarnation.
pub(crate) struct DispatcherActor<V> {
    running: JoinSet<()>,
    places: Places,
    _values: std::marker::PhantomData<fn() -> V>,
}

impl<V> DispatcherActor<V> {
    pub(crate) fn new() -> Self {
        Self { running: JoinSet::new(), places: Places::new(MAX_IN_FLIGHT), _values: std::marker::PhantomData }
    }
}

impl<V: Send + Sync + 'static> Handler for DispatcherActor<V> {
    type Message = DispatchMessage<V>;

    fn ready(&self) -> bool {
        self.places.is_free()
    }

    async fn handle(&mut self, message: DispatchMessage<V>, context: &Context<DispatchMessage<V>>) -> Result<(), HandlerError> {
        while let Some(ended) = self.running.try_join_next() {
            // The kernel contains what handlers do. What is left is ours; the emitter hears that nobody reported.
            if let Err(error) = ended {
                tracing::error!(target: tipstaff_core::telemetry::OBSERVATION, %error, "an emission's task broke off");
            }
        }
        let DispatchMessage::Emit { emission, mut answer } = message;
        let place = self.places.take(context.doorbell());
        self.running.spawn(async move {
            let _place = place;
            let dispatched = tokio::select! {
                biased;
                // The emitter went away: what is in flight goes with it, and nothing is begun (F-12).
                () = answer.closed() => return,
                dispatched = emission => dispatched,
            };
            // The emitter may have gone at this very moment.
            let _unheard = answer.send(dispatched);
        });
        Ok(())
    }

    /// An orderly end lets the emissions in flight finish, within the supervisor's stop timeout.
    async fn stopping(&mut self, _context: &Context<DispatchMessage<V>>) {
        while self.running.join_next().await.is_some() {}
    }
}
