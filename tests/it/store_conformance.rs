//! Every backend of the store keeps the same promises, and agrees with the model in memory on every read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tipstaff_core::clock::Clock;
use tipstaff_core::state::conformance::{self, Backend};
use tipstaff_core::state::{Durability, MemoryStore, SqliteOptions, SqliteStore, Store};
use tipstaff_core::testing::Faults;

struct Memory;

impl Backend for Memory {
    fn empty_store(&self, clock: Arc<dyn Clock>, faults: Faults) -> Arc<dyn Store> {
        Arc::new(MemoryStore::with_faults(clock, faults))
    }
}

struct Sqlite {
    folder: tempfile::TempDir,
    made: AtomicU32,
}

impl Backend for Sqlite {
    fn empty_store(&self, clock: Arc<dyn Clock>, faults: Faults) -> Arc<dyn Store> {
        let path = self.folder.path().join(format!("{}.db", self.made.fetch_add(1, Ordering::Relaxed)));
        let options = SqliteOptions::default().clock(clock).faults(faults).durability(Durability::ProcessCrash);
        Arc::new(SqliteStore::open_with(path, options).unwrap())
    }
}

/// L-21, L-22, P-9 to P-11, I-19: the suite on the model.
#[test]
fn the_model_in_memory_keeps_the_promises_of_a_store() {
    conformance::run(&Memory);
}

/// L-21, L-22, P-9 to P-11, I-19: the suite on SQLite.
#[test]
fn sqlite_keeps_the_promises_of_a_store() {
    conformance::run(&Sqlite { folder: tempfile::tempdir().unwrap(), made: AtomicU32::new(0) });
}

/// Random commands on the model and on SQLite: every answer and every read is the same.
mod model {
    use std::num::{NonZeroU32, NonZeroU64};
    use std::time::Duration;

    use proptest::prelude::*;
    use serde_json::json;
    use tipstaff_core::clock::Timestamp;
    use tipstaff_core::id::{AttemptId, OperationId, RuntimeInstanceId, SessionId, SignalId};
    use tipstaff_core::signal::{EmitterRole, LifecycleKind, Payload, PayloadType, Signal, SignalKind, SignalSeq};
    use tipstaff_core::state::{
        DeathEvidence, ExecutorIdentity, Gap, GapReason, InstanceIdentity, InstanceVerdict, JournalReader, JournalWrite,
        JournalWriter, PageLimit, ReadFilter, Recorded, UnknownBecause,
    };
    use tipstaff_core::testing::{FaultAction, FaultPoint, ManualClock};

    use super::*;

    const SESSIONS: u8 = 3;
    const OPERATIONS: u8 = 3;
    const ATTEMPTS: u8 = 2;
    const INSTANCES: u8 = 3;

    /// A fact from few names, so that identities, operations and attempts collide often.
    #[derive(Debug, Clone)]
    struct Fact {
        id: u8,
        session: u8,
        kind: u8,
        operation: u8,
        attempt: u8,
        gap: bool,
        size: usize,
    }

    #[derive(Debug, Clone)]
    enum Command {
        Commit(Vec<Fact>),
        FailedCommit(Vec<Fact>, FaultPoint),
        SwitchTo(u8),
        Recover([u8; INSTANCES as usize]),
        Touch,
        End,
        Advance(u16),
    }

    fn facts() -> impl Strategy<Value = Vec<Fact>> {
        let size = prop_oneof![20 => 0_usize..40, 1 => Just((256 << 10) + 1)];
        let fact = (any::<u8>(), 0..SESSIONS, 0_u8..12, 0..OPERATIONS, 0..ATTEMPTS, prop::bool::weighted(0.1), size);
        let fact = fact.prop_map(|(id, session, kind, operation, attempt, gap, size)| Fact {
            id: id % 60,
            session,
            kind,
            operation,
            attempt,
            gap,
            size,
        });
        prop::collection::vec(fact, 1..8)
    }

    fn commands() -> impl Strategy<Value = Vec<Command>> {
        let point =
            prop_oneof![Just(FaultPoint::Append), Just(FaultPoint::AppendBeforeCommit), Just(FaultPoint::AppendAfterCommit)];
        let command = prop_oneof![
            10 => facts().prop_map(Command::Commit),
            2 => (facts(), point).prop_map(|(facts, point)| Command::FailedCommit(facts, point)),
            3 => (0..INSTANCES).prop_map(Command::SwitchTo),
            2 => prop::array::uniform3(0_u8..3).prop_map(Command::Recover),
            1 => Just(Command::Touch),
            1 => Just(Command::End),
            1 => any::<u16>().prop_map(Command::Advance),
        ];
        prop::collection::vec(command, 1..30)
    }

    fn write(fact: &Fact) -> JournalWrite {
        let session = SessionId::new(format!("session {}", fact.session)).unwrap();
        let id = SignalId::new(format!("fact {}", fact.id)).unwrap();
        let at = Timestamp::from_micros(i64::from(fact.kind));
        if fact.gap {
            let known_lost = NonZeroU64::new(fact.size as u64 % 3);
            let reason = GapReason::ALL[fact.kind as usize % GapReason::ALL.len()];
            return JournalWrite::Gap(Gap { id, session, reason, first_at: at, last_at: at, known_lost });
        }
        let kind = match fact.kind {
            0..4 => LifecycleKind::OperationProposed.into(),
            4..6 => LifecycleKind::OperationCompleted.into(),
            6 => LifecycleKind::OperationDenied.into(),
            7 => SignalKind::user("mine.kind").unwrap(),
            8 => SignalKind::Unknown("fromTomorrow".into()),
            _ => LifecycleKind::MessageAdded.into(),
        };
        let payload = Payload::from_value(PayloadType::new("test.text", 1).unwrap(), json!("x".repeat(fact.size)));
        let mut signal = Signal::builder(session, kind, at).id(id).payload(payload);
        // Sometimes unidentified.
        if fact.kind != 3 {
            let operation = OperationId::new(format!("operation {}", fact.operation)).unwrap();
            signal = signal.operation(operation).attempt(AttemptId::new(format!("attempt {}", fact.attempt)).unwrap());
        }
        JournalWrite::Append(Arc::new(signal.role(EmitterRole::new("test").unwrap()).build()))
    }

    fn instance(number: u8) -> InstanceIdentity {
        let executor = ExecutorIdentity { host: None, boot: None, pid_namespace: None, pid: number.into(), started_ticks: None };
        InstanceIdentity { id: RuntimeInstanceId::new(format!("instance {number}")).unwrap(), executor, program: "model".into() }
    }

    /// A store with its writer of the moment.
    struct Driven {
        store: Arc<dyn Store>,
        faults: Faults,
        writer: Option<Box<dyn JournalWriter>>,
        current: u8,
    }

    impl Driven {
        fn new(backend: &dyn Backend, clock: &ManualClock) -> Self {
            let faults = Faults::new();
            let store = backend.empty_store(Arc::new(clock.clone()), faults.clone());
            Self { store, faults, writer: None, current: 0 }
        }

        fn writer(&mut self) -> &mut dyn JournalWriter {
            let (store, current) = (&self.store, self.current);
            &mut **self.writer.get_or_insert_with(|| store.open_writer(&instance(current)).unwrap())
        }

        /// Carries out a command; the answer as a text, because errors are not compared otherwise.
        fn run(&mut self, command: &Command) -> String {
            let group = |facts: &[Fact]| facts.iter().map(write).collect::<Vec<_>>();
            match command {
                Command::Commit(facts) => format!("{:?}", self.writer().commit(&group(facts))),
                Command::FailedCommit(facts, point) => {
                    self.writer();
                    self.faults.once(*point, FaultAction::Fail);
                    let answer = format!("{:?}", self.writer().commit(&group(facts)));
                    self.faults.clear(*point);
                    answer
                }
                Command::SwitchTo(number) => {
                    (self.writer, self.current) = (None, *number);
                    String::new()
                }
                Command::Recover(verdicts) => {
                    let mut judge =
                        |judged: &tipstaff_core::state::RuntimeInstance| match verdicts[judged.identity.executor.pid as usize] {
                            0 => InstanceVerdict::Alive,
                            1 => InstanceVerdict::Unknown(UnknownBecause::Foreign),
                            _ => InstanceVerdict::Dead(DeathEvidence::NoProcess),
                        };
                    format!("{:?}", self.writer().recover(&mut judge).unwrap())
                }
                Command::Touch => format!("{:?}", self.writer().touch()),
                Command::End => {
                    self.writer();
                    format!("{:?}", self.writer.take().unwrap().end())
                }
                Command::Advance(_) => String::new(),
            }
        }
    }

    /// Everything that a reader can ask, but the identities that a recovery made up.
    fn everything(reader: &dyn JournalReader) -> Vec<String> {
        let all = NonZeroU32::new(1_000).unwrap();
        let mut answers = vec![
            format!("{:?}", reader.sessions(None, all)),
            format!("{:?}", reader.open_proposals(None, all)),
            format!("{:?}", reader.instances(None, all)),
            format!("{:?}", reader.summary(None)),
        ];
        let operations = |number| OperationId::new(format!("operation {number}")).unwrap();
        for number in 0..OPERATIONS {
            answers.push(format!("{:?}", reader.attempts(&operations(number), None, all)));
        }
        for number in 0..SESSIONS {
            let session = SessionId::new(format!("session {number}")).unwrap();
            answers.push(format!("{:?}", reader.summary(Some(&session))));
            answers.push(format!("{:?}", reader.gaps(&session, SignalSeq::START, all)));
            let limit = PageLimit { rows: NonZeroU32::new(7).unwrap(), payload_bytes: NonZeroU64::new(90).unwrap() };
            let mine = ReadFilter { operation: Some(operations(1)), ..ReadFilter::all() };
            for (filter, limit) in [(ReadFilter::all(), PageLimit::default()), (ReadFilter::all(), limit), (mine, limit)] {
                let mut after = SignalSeq::START;
                loop {
                    let page = reader.read(&session, after, &filter, limit).unwrap();
                    answers.extend(page.facts.iter().map(|fact| told(&session, fact)));
                    answers.push(format!("{:?} {}", page.next, page.more));
                    after = page.next;
                    if !page.more {
                        break;
                    }
                }
            }
        }
        for number in 0..60 {
            let found = reader.signal(&SignalId::new(format!("fact {number}")).unwrap()).unwrap();
            answers.push(format!("{:?}", found.map(|fact| (fact.seq, fact.signal.kind().clone()))));
        }
        answers
    }

    fn told(session: &SessionId, fact: &Recorded) -> String {
        let signal = &fact.signal;
        assert_eq!(signal.session(), session);
        let id = if signal.role().as_str() == "recovery" { "recovery's" } else { signal.id().as_str() };
        let (kind, at) = (signal.kind(), signal.occurred_at());
        format!("{} {id} {kind} {at:?} {:?} {:?} {}", fact.seq, signal.operation(), signal.attempt(), signal.payload().wire())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

        /// Spec 9: the model is the oracle.
        #[test]
        fn sqlite_and_the_model_agree_on_every_answer(commands in commands()) {
            let sqlite = Sqlite { folder: tempfile::tempdir().unwrap(), made: AtomicU32::new(0) };
            let clock = ManualClock::default();
            let (mut expected, mut found) = (Driven::new(&Memory, &clock), Driven::new(&sqlite, &clock));
            for command in &commands {
                if let Command::Advance(millis) = command {
                    clock.advance(Duration::from_millis((*millis).into()));
                }
                prop_assert_eq!(found.run(command), expected.run(command), "{:?}", command);
            }
            let (expected, found) = (expected.store.reader().unwrap(), found.store.reader().unwrap());
            prop_assert_eq!(everything(&*found), everything(&*expected));
        }
    }
}
