//! Running the cases, and what they share.

use std::error::Error;
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::json;

use super::{append, attempts, crash, read};
use crate::clock::{Clock, Timestamp};
use crate::id::{AttemptId, OperationId, RuntimeInstanceId, SessionId};
use crate::signal::{LifecycleKind, Payload, PayloadType, Signal, SignalSeq};
use crate::state::{
    AppendError, Appended, ExecutorIdentity, InstanceIdentity, JournalReader, JournalWrite, JournalWriter, PageLimit, ReadFilter,
    Recorded, Store, StoreError,
};
use crate::testing::{FaultPoint, Faults, ManualClock};

/// Makes empty stores of one backend.
pub trait Backend {
    /// An empty store under a clock and fault points. What it stands on lives as long as `self`.
    fn empty_store(&self, clock: Arc<dyn Clock>, faults: Faults) -> Arc<dyn Store>;
}

/// Runs every case, each on an empty store, and then names those that failed.
///
/// # Panics
/// When a case failed, or when the cases together left out a fault point (a store transition without one cannot be crashed).
pub fn run(backend: &dyn Backend) {
    let mut failed = Vec::new();
    let mut reached = [0; FaultPoint::ALL.len()];
    for (name, case) in append::CASES.iter().chain(read::CASES).chain(attempts::CASES).chain(crash::CASES) {
        let setting = Setting::new(backend);
        match catch_unwind(AssertUnwindSafe(|| case(&setting))) {
            Ok(Ok(())) => {}
            Ok(Err(cause)) => failed.push(format!("{name}: {cause:?}")),
            Err(_) => failed.push(format!("{name}: see the panic above")),
        }
        for (count, point) in reached.iter_mut().zip(FaultPoint::ALL) {
            *count += setting.faults.reached(*point);
        }
    }
    for (count, point) in reached.iter().zip(FaultPoint::ALL) {
        if *count == 0 {
            failed.push(format!("the fault point {point} is never reached"));
        }
    }
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
}

pub(super) type Outcome = Result<(), Box<dyn Error>>;
pub(super) type Case = fn(&Setting) -> Outcome;

pub(super) struct Setting {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: ManualClock,
    pub(super) faults: Faults,
}

impl Setting {
    fn new(backend: &dyn Backend) -> Self {
        let (clock, faults) = (ManualClock::default(), Faults::new());
        Self { store: backend.empty_store(Arc::new(clock.clone()), faults.clone()), clock, faults }
    }

    pub(super) fn writer(&self) -> Result<Box<dyn JournalWriter>, StoreError> {
        self.store.open_writer(&instance("first"))
    }

    pub(super) fn reader(&self) -> Result<Arc<dyn JournalReader>, StoreError> {
        self.store.reader()
    }

    pub(super) fn facts(&self, session: &str) -> Result<Vec<Recorded>, Box<dyn Error>> {
        let (reader, session) = (self.reader()?, id(session)?);
        let mut facts = Vec::new();
        let mut after = SignalSeq::START;
        loop {
            let page = reader.read(&session, after, &ReadFilter::all(), PageLimit::default())?;
            facts.extend(page.facts);
            after = page.next;
            if !page.more {
                return Ok(facts);
            }
        }
    }
}

pub(super) fn instance(name: &str) -> InstanceIdentity {
    InstanceIdentity {
        id: RuntimeInstanceId::new(name).expect("a short name is an identity"),
        executor: ExecutorIdentity {
            host: Some("host".into()),
            boot: None,
            pid_namespace: Some("pid:[1]".into()),
            pid: 7,
            started_ticks: Some(u64::from(u32::MAX) + 1),
        },
        program: "conformance".into(),
    }
}

pub(super) fn id(session: &str) -> Result<SessionId, Box<dyn Error>> {
    Ok(SessionId::new(session)?)
}

pub(super) fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

pub(super) fn fact(session: &str, n: u64) -> Result<Signal, Box<dyn Error>> {
    let payload = Payload::from_value(PayloadType::new("test.n", 1)?, json!({ "n": n }));
    Ok(Signal::builder(id(session)?, LifecycleKind::MessageAdded, at(n as i64)).payload(payload).build())
}

pub(super) fn about(session: &str, kind: LifecycleKind, operation: &str, attempt: &str) -> Result<Signal, Box<dyn Error>> {
    let fact = Signal::builder(id(session)?, kind, at(1));
    Ok(fact.operation(OperationId::new(operation)?).attempt(AttemptId::new(attempt)?).build())
}

pub(super) fn append(signal: Signal) -> JournalWrite {
    JournalWrite::Append(Arc::new(signal))
}

pub(super) fn one(writer: &mut dyn JournalWriter, write: JournalWrite) -> Result<Appended, Box<dyn Error>> {
    let mut answers = writer.commit(&[write])?;
    assert_eq!(answers.len(), 1, "one answer for one write");
    Ok(answers.remove(0)?)
}

pub(super) fn refused(writer: &mut dyn JournalWriter, write: JournalWrite) -> Result<AppendError, Box<dyn Error>> {
    match writer.commit(&[write])?.remove(0) {
        Err(refused) => Ok(refused),
        Ok(appended) => Err(format!("it was recorded: {appended:?}").into()),
    }
}

pub(super) fn rows(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("the cases ask for at least one row")
}
