//! Emissions inside emissions (F-14).

use std::pin::Pin;
use std::sync::{Arc, Weak};

use tipstaff_core::dispatch::profile::{self, compat};
use tipstaff_core::dispatch::{DispatchError, DispatchPolicy, Dispatcher, HandlerError, MAX_DEPTH, Refusal, Subscriber};

use super::support::*;

fn nesting(policy: DispatchPolicy) -> Arc<Facts> {
    Arc::new_cyclic(|registry: &Weak<Facts>| {
        let dispatcher = Dispatcher::new(policy);
        let inner = registry.clone();
        let nested = Subscriber::declared_async("nested", move |fact: Arc<u32>| {
            let registry = inner.upgrade().expect("it emits");
            let body: Pin<Box<dyn Future<Output = Result<u32>> + Send>> = Box::pin(async move {
                match registry.emit(&Arc::new(*fact + 1)).await {
                    Ok(report) => Ok(report.results().map(|value| *value.unwrap()).sum()),
                    Err(DispatchError::Refused(Refusal::TooDeep { .. })) => Ok(*fact),
                    Err(other) => Err(HandlerError::failed("unexpected", other)),
                }
            });
            body
        });
        let _ = dispatcher.register(nested).unwrap();
        dispatcher
    })
}

/// F-14: under every profile a handler may emit on its own dispatcher and await the report, at least sixteen deep; past the limit it gets a typed error.
#[tokio::test]
async fn a_handler_emits_on_its_own_dispatcher_to_the_limit() {
    const { assert!(MAX_DEPTH >= 16) };
    for policy in [profile::observation(), profile::terminal_registry(), compat::scheduler(), compat::session_observer()] {
        let report = reported_from(&nesting(policy), 0).await;
        assert_eq!(report, u32::try_from(MAX_DEPTH).unwrap());
    }
}

async fn reported_from(registry: &Facts, fact: u32) -> u32 {
    let report = registry.emit(&Arc::new(fact)).await.unwrap();
    report.results().map(|value| *value.unwrap()).sum()
}

/// F-14: the depth is that of one dispatcher: two that emit to each other are each half as deep.
#[tokio::test]
async fn two_dispatchers_do_not_count_each_other() {
    let inner = nesting(compat::scheduler());
    let reaches = Arc::clone(&inner);
    let outer = dispatcher(
        compat::scheduler(),
        [Subscriber::declared_async("outer", move |_| {
            let inner = Arc::clone(&reaches);
            async move {
                assert_eq!(inner.depth(), None);
                Ok::<_, HandlerError>(reported_from(&inner, 0).await)
            }
        })],
    );
    assert_eq!(reported_from(&outer, 0).await, u32::try_from(MAX_DEPTH).unwrap());
}
