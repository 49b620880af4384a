//! Writers that follow one another within one runtime: the instance is one, whoever writes for it (P-9, L-22).

use tipstaff::CrashPoints;
use tipstaff::id::RuntimeInstanceId;
use tipstaff::state::{
    AppendError, Appended, InstanceIdentity, InstanceVerdict, JournalReader, JournalWrite, JournalWriter, Recovered,
    RuntimeInstance, StoreError, StoreSize,
};

use super::super::rig::note;
use super::*;

/// A store in memory that says when one of its writers is gone.
struct Watched {
    store: MemoryStore,
    gone: Latch,
}

impl Store for Watched {
    fn open_writer(&self, instance: &InstanceIdentity) -> Result<Box<dyn JournalWriter>, StoreError> {
        Ok(Box::new(Writer { writer: Some(self.store.open_writer(instance)?), gone: self.gone.clone() }))
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
    gone: Latch,
}

impl Writer {
    fn inner(&mut self) -> &mut dyn JournalWriter {
        &mut **self.writer.as_mut().unwrap()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.gone.open();
    }
}

impl JournalWriter for Writer {
    fn instance(&self) -> &RuntimeInstanceId {
        self.writer.as_ref().unwrap().instance()
    }

    fn commit(&mut self, group: &[JournalWrite]) -> Result<Vec<Result<Appended, AppendError>>, StoreError> {
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

/// P-9, L-22: a writer whose actor was killed finds another in its place and goes; it does not say that the runtime has ended, or another process would
/// close the attempts that are under way here.
#[tokio::test]
async fn a_superseded_writer_does_not_end_its_instance() {
    let (points, gone) = (CrashPoints::new(), Latch::new());
    let store = Watched { store: MemoryStore::new(), gone: gone.clone() };
    let runtime = Runtime::builder().store(store).crash_points(points.clone()).spawn().await.unwrap();
    let session = runtime.session(session_id("s")).open().await.unwrap();
    let proposed = session.propose(call("write")).await.unwrap();
    let permit = session.authorize(proposed).await.unwrap();
    session.settled(soon()).await.unwrap();

    assert_eq!(points.kill("state_writer"), 1);
    gone.passed().await;

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
