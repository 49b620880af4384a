//! Fault points: the named places where a test may break a store. This file is the list.
//!
//! A [`Faults`] belongs to one store (it is handed over with the store's options) and never to the process. Without the feature `testing`
//! none of this is compiled.

use std::fmt;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A place where a store looks at its [`Faults`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultPoint {
    /// Before one write of a group is carried out. `Fail` refuses that write alone.
    Append,
    /// All writes of a group are carried out, none is committed.
    AppendBeforeCommit,
    /// A group is committed, its answers are not given.
    AppendAfterCommit,
    /// The closing facts of a recovery are carried out, none is committed.
    RecoverBeforeCommit,
    /// The closing facts of a recovery are committed, the report is not given.
    RecoverAfterCommit,
    /// The record of an instance (opened, seen, ended) is carried out and not committed.
    InstanceBeforeCommit,
    /// The record of an instance is committed, the caller does not know.
    InstanceAfterCommit,
}

impl FaultPoint {
    /// Every point.
    pub const ALL: &'static [Self] = &[
        Self::Append,
        Self::AppendBeforeCommit,
        Self::AppendAfterCommit,
        Self::RecoverBeforeCommit,
        Self::RecoverAfterCommit,
        Self::InstanceBeforeCommit,
        Self::InstanceAfterCommit,
    ];

    /// The name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::AppendBeforeCommit => "append_before_commit",
            Self::AppendAfterCommit => "append_after_commit",
            Self::RecoverBeforeCommit => "recover_before_commit",
            Self::RecoverAfterCommit => "recover_after_commit",
            Self::InstanceBeforeCommit => "instance_before_commit",
            Self::InstanceAfterCommit => "instance_after_commit",
        }
    }

    /// Reads a name, for a child process that is told where to stop.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|point| point.as_str() == name)
    }
}

impl fmt::Display for FaultPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What happens at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultAction {
    /// The operation fails with `StoreError::Injected`. Before a commit the transaction is rolled back; after one it stays, and only the
    /// answer is lost.
    Fail,
    /// The thread panics.
    Panic,
    /// The process aborts.
    Abort,
    /// The thread waits until the fault is cleared: a store that hangs.
    Hold,
    /// The thread writes `fault point reached: <name>` to standard output and never goes on: a place for the parent process to kill it.
    Halt,
}

/// The switchboard of one store's fault points. Clones share it. Everything is off at first.
#[derive(Clone, Default)]
pub struct Faults(Arc<Inner>);

#[derive(Default)]
struct Inner {
    board: Mutex<[Armed; FaultPoint::ALL.len()]>,
    cleared: Condvar,
    reached: [AtomicU64; FaultPoint::ALL.len()],
}

#[derive(Clone, Copy, Default)]
struct Armed {
    action: Option<FaultAction>,
    skip: u64,
    times: u64,
}

impl Faults {
    /// A switchboard with everything off.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a point act each time that it is reached, until it is cleared.
    pub fn always(&self, point: FaultPoint, action: FaultAction) {
        self.arm(point, Armed { action: Some(action), skip: 0, times: u64::MAX });
    }

    /// Makes a point act once, after it was passed `skip` times.
    pub fn once_after(&self, point: FaultPoint, action: FaultAction, skip: u64) {
        self.arm(point, Armed { action: Some(action), skip, times: 1 });
    }

    /// Makes a point act the next `times` times.
    pub fn times(&self, point: FaultPoint, action: FaultAction, times: u64) {
        self.arm(point, Armed { action: Some(action), skip: 0, times });
    }

    /// Makes a point act the next time, once.
    pub fn once(&self, point: FaultPoint, action: FaultAction) {
        self.once_after(point, action, 0);
    }

    /// Turns a point off, and lets go on who is held there.
    pub fn clear(&self, point: FaultPoint) {
        self.arm(point, Armed::default());
    }

    /// How often a point was reached, armed or not: a point that a test never reached proves nothing.
    #[must_use]
    pub fn reached(&self, point: FaultPoint) -> u64 {
        self.0.reached[point as usize].load(Ordering::SeqCst)
    }

    fn arm(&self, point: FaultPoint, armed: Armed) {
        self.board()[point as usize] = armed;
        self.0.cleared.notify_all();
    }

    fn board(&self) -> MutexGuard<'_, [Armed; FaultPoint::ALL.len()]> {
        // The board is plain data that is whole after each assignment; a panic at a point does not spoil it.
        self.0.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A store is at a point.
    ///
    /// # Errors
    /// The point, where it is armed with [`FaultAction::Fail`].
    ///
    /// # Panics
    /// Where the point is armed with [`FaultAction::Panic`].
    pub(crate) fn reach(&self, point: FaultPoint) -> Result<(), FaultPoint> {
        self.0.reached[point as usize].fetch_add(1, Ordering::SeqCst);
        match self.due(point) {
            None => Ok(()),
            Some(FaultAction::Fail) => Err(point),
            Some(FaultAction::Panic) => panic!("fault point {point}"),
            Some(FaultAction::Abort) => std::process::abort(),
            Some(FaultAction::Hold) => {
                self.wait_until_cleared(point);
                Ok(())
            }
            Some(FaultAction::Halt) => halt(point),
        }
    }

    fn due(&self, point: FaultPoint) -> Option<FaultAction> {
        let mut board = self.board();
        let armed = &mut board[point as usize];
        let action = armed.action?;
        if armed.skip > 0 {
            armed.skip -= 1;
            return None;
        }
        // A hold stays armed while it holds: clearing it is what lets the thread go on.
        if action != FaultAction::Hold && armed.times != u64::MAX {
            armed.times -= 1;
            if armed.times == 0 {
                *armed = Armed::default();
            }
        }
        Some(action)
    }

    fn wait_until_cleared(&self, point: FaultPoint) {
        let held = |board: &mut [Armed; FaultPoint::ALL.len()]| board[point as usize].action == Some(FaultAction::Hold);
        drop(self.0.cleared.wait_while(self.board(), held).unwrap_or_else(PoisonError::into_inner));
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let armed = |point: &FaultPoint| self.board()[*point as usize].action.map(|action| (*point, action));
        f.debug_map().entries(FaultPoint::ALL.iter().filter_map(armed)).finish()
    }
}

fn halt(point: FaultPoint) -> ! {
    let mut out = std::io::stdout().lock();
    // A parent that no longer listens has nothing to be told.
    let _ = writeln!(out, "fault point reached: {point}").and_then(|()| out.flush());
    loop {
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_acts_when_armed_and_only_as_often() {
        let faults = Faults::new();
        assert!(faults.reach(FaultPoint::Append).is_ok());
        faults.once_after(FaultPoint::Append, FaultAction::Fail, 1);
        assert!(faults.reach(FaultPoint::AppendBeforeCommit).is_ok(), "another point is not touched");
        assert!(faults.reach(FaultPoint::Append).is_ok());
        assert_eq!(faults.reach(FaultPoint::Append), Err(FaultPoint::Append));
        assert!(faults.reach(FaultPoint::Append).is_ok());
        assert_eq!(faults.reached(FaultPoint::Append), 4);
        faults.always(FaultPoint::Append, FaultAction::Fail);
        assert!(faults.reach(FaultPoint::Append).is_err() && faults.reach(FaultPoint::Append).is_err());
        faults.clear(FaultPoint::Append);
        assert!(faults.reach(FaultPoint::Append).is_ok());
    }

    #[test]
    fn who_is_held_goes_on_when_the_point_is_cleared() {
        let faults = Faults::new();
        faults.always(FaultPoint::Append, FaultAction::Hold);
        std::thread::scope(|scope| {
            let held = scope.spawn(|| faults.reach(FaultPoint::Append).is_ok());
            while faults.reached(FaultPoint::Append) == 0 {
                std::thread::yield_now();
            }
            assert!(!held.is_finished());
            faults.clear(FaultPoint::Append);
            assert!(held.join().unwrap());
        });
    }

    #[test]
    fn every_name_is_read_back() {
        assert!(FaultPoint::ALL.iter().all(|point| FaultPoint::parse(point.as_str()) == Some(*point)));
    }
}
