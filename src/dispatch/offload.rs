//! The dispatcher's own threads, for handlers that block (F-17).
//!
//! | threads                       | a job                                                        |
//! |-------------------------------|--------------------------------------------------------------|
//! | one is idle                   | is handed to the one that became idle last                   |
//! | none is idle, fewer than most | gets a new thread                                            |
//! | as many as may, none idle     | is refused: `not started (offload saturated)`                |
//! | the pool is closed            | is refused; idle threads end, a busy one ends with its job   |
//!
//! # Why not the runtime's blocking pool?
//! A handler that never returns would hold a thread that others need, and the runtime's shutdown would wait for it.

use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::handler::contained;

type Job = Box<dyn FnOnce() + Send>;

/// No thread was free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Saturated;

/// A few threads. Dropping it ends the idle ones; a busy one ends with its job and is not waited for.
pub(super) struct Offload {
    threads: Arc<Mutex<Threads>>,
}

struct Threads {
    most: usize,
    running: usize,
    idle: Vec<Sender<Job>>,
    open: bool,
}

impl Offload {
    pub(super) fn new(most: NonZeroUsize) -> Self {
        Self { threads: Arc::new(Mutex::new(Threads { most: most.get(), running: 0, idle: Vec::new(), open: true })) }
    }

    /// Runs a job on a thread of its own, at once or not at all.
    pub(super) fn run(&self, job: Job) -> Result<(), Saturated> {
        let mut threads = lock(&self.threads);
        if !threads.open {
            return Err(Saturated);
        }
        if let Some(idle) = threads.idle.pop() {
            // An idle thread waits for exactly this.
            return idle.send(job).map_err(|_| Saturated);
        }
        if threads.running >= threads.most {
            return Err(Saturated);
        }
        threads.running += 1;
        drop(threads);
        self.start(job).inspect_err(|Saturated| lock(&self.threads).running -= 1)
    }

    pub(super) fn close(&self) {
        let idle = {
            let mut threads = lock(&self.threads);
            threads.open = false;
            std::mem::take(&mut threads.idle)
        };
        drop(idle);
    }

    #[expect(clippy::disallowed_methods, reason = "the one door to the dispatcher's threads; the pool bounds and ends them")]
    fn start(&self, first: Job) -> Result<(), Saturated> {
        let threads = Arc::downgrade(&self.threads);
        let begun = std::thread::Builder::new().name("tipstaff-dispatch".to_owned()).spawn(move || work(first, &threads));
        // The machine has no thread left: what was not started says so, as when the pool has none.
        begun.map(drop).map_err(|_| Saturated)
    }
}

impl Drop for Offload {
    fn drop(&mut self) {
        self.close();
    }
}

/// What a thread does until the pool is closed.
fn work(first: Job, threads: &Weak<Mutex<Threads>>) {
    let mut job = first;
    loop {
        // What a handler panics with is caught closer to it. This is the last net: no thread is lost to the count.
        let _ended = contained(job);
        let Some(next) = become_idle(threads) else { return };
        match next.recv() {
            Ok(handed) => job = handed,
            // The pool let go of its end.
            Err(_closed) => return,
        }
    }
}

/// Where the next job of this thread arrives; `None` when the pool is closed.
fn become_idle(threads: &Weak<Mutex<Threads>>) -> Option<Receiver<Job>> {
    let threads = threads.upgrade()?;
    let mut threads = lock(&threads);
    if !threads.open {
        threads.running -= 1;
        return None;
    }
    let (hand, jobs) = channel();
    threads.idle.push(hand);
    Some(jobs)
}

fn lock(threads: &Mutex<Threads>) -> MutexGuard<'_, Threads> {
    threads.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;
    use std::time::Duration;

    use super::*;

    const SOON: Duration = Duration::from_secs(60);

    fn pool(most: usize) -> Offload {
        Offload::new(NonZeroUsize::new(most).unwrap())
    }

    /// F-17: the threads are bounded, a job starts at once or not at all, and a thread that became idle is used again.
    #[test]
    fn threads_are_bounded_and_used_again() {
        let pool = pool(2);
        let (release, held) = sync_channel::<()>(0);
        let held = Arc::new(Mutex::new(held));
        for _ in 0..2 {
            let held = Arc::clone(&held);
            pool.run(Box::new(move || held.lock().unwrap().recv_timeout(SOON).unwrap())).unwrap();
        }
        assert_eq!(pool.run(Box::new(|| ())), Err(Saturated));
        release.send(()).unwrap();
        release.send(()).unwrap();
        // Both threads become idle in their own time; one of them then runs this.
        let (done, told) = sync_channel(1);
        while pool
            .run(Box::new({
                let done = done.clone();
                move || done.send(std::thread::current().id()).unwrap()
            }))
            .is_err()
        {
            std::thread::yield_now();
        }
        told.recv_timeout(SOON).unwrap();
        assert!(lock(&pool.threads).running <= 2);
    }

    /// F-15, F-17: a job that panics costs no thread, and a closed pool refuses.
    #[test]
    fn a_panic_costs_no_thread_and_a_closed_pool_refuses() {
        let pool = pool(1);
        pool.run(Box::new(|| panic!("in a job"))).unwrap();
        let (done, told) = sync_channel(1);
        while pool
            .run(Box::new({
                let done = done.clone();
                move || done.send(()).unwrap()
            }))
            .is_err()
        {
            std::thread::yield_now();
        }
        told.recv_timeout(SOON).unwrap();
        pool.close();
        assert_eq!(pool.run(Box::new(|| ())), Err(Saturated));
    }
}
