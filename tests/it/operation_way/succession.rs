//! Writers that follow one another within one runtime: the instance is one, whoever writes for it (P-9, L-22).

use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

use tipstaff::CrashPoints;
use tipstaff::id::RuntimeInstanceId;
use tipstaff::state::{
    AppendError, Appended, InstanceIdentity, InstanceVerdict, JournalReader, JournalWrite, JournalWriter, Recovered,
    RuntimeInstance, StoreError, StoreSize,
};
use tipstaff::supervision::{End as ChildEnd, ReportKind, ReportStream};

use super::super::rig::note;
use super::*;

/// A store in memory that says when one of its writers is gone, and can hold a commit.
struct Watched {
    store: MemoryStore,
    watch: Watch,
}

/// What the test sees of the writers.
#[derive(Clone)]
struct Watch {
    gone: Latch,
    /// How many live, and the most that lived at once.
    alive: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    gate: Arc<Gate>,
}

/// Where the next commit stops, once it is armed.
struct Gate {
    armed: AtomicBool,
    reached: Latch,
    pass: Mutex<mpsc::Receiver<()>>,
}

impl Watched {
    /// The store, what is seen of it, and the word that lets a held commit go on.
    fn new() -> (Self, Watch, mpsc::Sender<()>) {
        let (go_on, pass) = mpsc::channel();
        let gate = Gate { armed: AtomicBool::new(false), reached: Latch::new(), pass: Mutex::new(pass) };
        let watch = Watch { gone: Latch::new(), alive: Arc::default(), most: Arc::default(), gate: Arc::new(gate) };
        (Self { store: MemoryStore::new(), watch: watch.clone() }, watch, go_on)
    }
}

impl Store for Watched {
    fn open_writer(&self, instance: &InstanceIdentity) -> Result<Box<dyn JournalWriter>, StoreError> {
        let alive = self.watch.alive.fetch_add(1, Ordering::SeqCst) + 1;
        self.watch.most.fetch_max(alive, Ordering::SeqCst);
        Ok(Box::new(Writer { writer: Some(self.store.open_writer(instance)?), watch: self.watch.clone() }))
    }

    fn reader(&self) -> Result<Arc<dyn JournalReader>, StoreError> {
        self.store.reader()
    }

    fn size(&self) -> Result<StoreSize, StoreError> {
        self.store.size()
    }
}

struct Writer {
    writer: Option<Box<dyn JournalWriter>>,
    watch: Watch,
}

impl Writer {
    fn inner(&mut self) -> &mut dyn JournalWriter {
        &mut **self.writer.as_mut().unwrap()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.watch.alive.fetch_sub(1, Ordering::SeqCst);
        self.watch.gone.open();
    }
}

impl JournalWriter for Writer {
    fn instance(&self) -> &RuntimeInstanceId {
        self.writer.as_ref().unwrap().instance()
    }

    fn commit(&mut self, group: &[JournalWrite]) -> Result<Vec<Result<Appended, AppendError>>, StoreError> {
        let gate = Arc::clone(&self.watch.gate);
        if gate.armed.swap(false, Ordering::SeqCst) {
            gate.reached.open();
            gate.pass.lock().unwrap().recv_timeout(Duration::from_secs(60)).expect("the test lets it go on");
        }
        self.inner().commit(group)
    }

    fn recover(&mut self, judge: &mut dyn FnMut(&RuntimeInstance) -> InstanceVerdict) -> Result<Recovered, StoreError> {
        self.inner().recover(judge)
    }

    fn touch(&mut self) -> Result<(), StoreError> {
        self.inner().touch()
    }

    fn checkpoint_when_idle(&mut self) -> Result<(), StoreError> {
        self.inner().checkpoint_when_idle()
    }

    fn end(mut self: Box<Self>) -> Result<(), StoreError> {
        self.writer.take().unwrap().end()
    }
}

/// P-9, L-22: a writer whose actor was killed finds that another waits for its place and goes; it does not say that the runtime has ended, or another process would
/// close the attempts that are under way here.
#[tokio::test]
async fn a_superseded_writer_does_not_end_its_instance() {
    let points = CrashPoints::new();
    let (store, watch, _) = Watched::new();
    let runtime = Runtime::builder().store(store).crash_points(points.clone()).spawn().await.unwrap();
    let session = runtime.session(session_id("s")).open().await.unwrap();
    let proposed = session.propose(call("write")).await.unwrap();
    let permit = session.authorize(proposed).await.unwrap();
    session.settled(soon()).await.unwrap();

    assert_eq!(points.kill("state_writer"), 1);
    watch.gone.passed().await;

    let one = std::num::NonZeroU32::new(10).unwrap();
    let instances = || runtime.reader().unwrap().instances(None, one).unwrap();
    assert_eq!(instances().len(), 1, "one runtime, one instance");
    assert_eq!(instances()[0].ended_at, None, "it lives");
    session.emit_confirmed(note(&session, 0), soon()).await.unwrap();
    assert!(permit.perform(done).await.review().await.record().await.result().is_some());
    let recorded = facts(&runtime, &session).await;
    assert_eq!(kinds(&recorded), ["operation_proposed", "test.note", "operation_completed"]);
    assert!(session.losses().is_none());
    let reader = Arc::clone(runtime.reader().unwrap());
    down(runtime).await;
    assert!(reader.instances(None, one).unwrap()[0].ended_at.is_some(), "ended in order");
}

/// What became of the next start of the writer.
async fn next_start(reports: &mut ReportStream) -> Result<(), String> {
    loop {
        let report = reports.next().await.unwrap();
        match report.what {
            ReportKind::Started { restarts: 1.. } if &*report.child == "state_writer" => return Ok(()),
            ReportKind::Ended(ChildEnd::StartFailed(error)) => return Err(error.to_string()),
            _ => {}
        }
    }
}

/// P-9, L-21: one at a time writes for a runtime. A kill takes the writer's actor and not its thread, which may be in the middle of a commit: the next
/// one begins when that has ended, however often it must try. So the journal's order is the queue's, and what is settled is on record.
#[tokio::test]
async fn a_writer_begins_when_the_one_before_it_has_ended() {
    let points = CrashPoints::new();
    let (store, watch, go_on) = Watched::new();
    let runtime = Runtime::builder().store(store).crash_points(points.clone()).spawn().await.unwrap();
    let mut reports = runtime.take_reports().unwrap();
    let session = runtime.session(session_id("s")).open().await.unwrap();
    session.settled(soon()).await.unwrap();
    watch.gate.armed.store(true, Ordering::SeqCst);
    session.submit(note(&session, 0)).unwrap();
    watch.gate.reached.passed().await;
    assert_eq!(points.kill("state_writer"), 1);
    session.submit(note(&session, 1)).unwrap();

    // Nothing else goes on, so the halted clock runs to the end of whatever the start waits for.
    tokio::time::pause();
    let refused = next_start(&mut reports).await.unwrap_err();
    tokio::time::resume();
    assert!(refused.contains("the writer thread before this one is still writing"), "{refused}");

    go_on.send(()).unwrap();
    let recorded = facts(&runtime, &session).await;
    let numbers: Vec<_> = recorded.iter().map(|recorded| payload(recorded)["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [0, 1], "in the order of the queue");
    assert_eq!(next_start(&mut reports).await, Ok(()));
    assert!(session.losses().is_none());
    assert_eq!(watch.most.load(Ordering::SeqCst), 1, "writers at the same time");
    down(runtime).await;
}
