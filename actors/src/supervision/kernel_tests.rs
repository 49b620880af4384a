//! The kernel by its table, and against a simulated world that does what it says in a random order.

use std::collections::{BTreeMap, VecDeque};

use super::super::end::Cause;
use super::super::error::StartError;
use super::*;

const MS: Duration = Duration::from_millis(1);
const WIDE: Intensity = Intensity::new(1_000, Duration::from_secs(3_600));

fn facts(restart: Restart) -> Facts {
    Facts { restart, backoff: Backoff::NONE, intensity: None, dynamic: false }
}

fn failed() -> End {
    End::Failed(Cause::text("boom"))
}

/// Does what the kernel says, when told to, and writes down what it was told.
struct World {
    kernel: Kernel,
    now: Instant,
    next: u64,
    live: BTreeMap<ChildId, (u64, Live)>,
    timers: Vec<(ChildId, u64)>,
    log: Vec<String>,
    standings: BTreeMap<ChildId, Vec<Standing>>,
    forgotten: BTreeMap<ChildId, usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Live {
    Starting { cancelled: bool },
    Running,
    Stopping,
}

impl World {
    fn new(strategy: Strategy, intensity: Intensity, nested: bool) -> Self {
        Self {
            kernel: Kernel::new(Rules { strategy, intensity, nested }, 1),
            now: Instant::now(),
            next: 0,
            live: BTreeMap::new(),
            timers: Vec::new(),
            log: Vec::new(),
            standings: BTreeMap::new(),
            forgotten: BTreeMap::new(),
        }
    }

    /// A world whose children run already.
    fn with(strategy: Strategy, children: &[Facts]) -> Self {
        let mut world = Self::new(strategy, WIDE, false);
        for &facts in children {
            world.add(facts);
        }
        world.finish_all();
        world.log.clear();
        world
    }

    fn add(&mut self, facts: Facts) -> ChildId {
        let child = ChildId::new(self.next);
        self.next += 1;
        self.step(Input::Add { child, facts });
        child
    }

    fn add_several(&mut self, count: usize, facts: Facts) {
        for _ in 0..count {
            self.add(facts);
        }
    }

    fn step(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.kernel.step(input, self.now, &mut effects);
        effects.into_iter().for_each(|effect| self.perform(effect));
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Start { child, incarnation } => {
                self.log.push(format!("start {child}"));
                let before = self.live.insert(child, (incarnation, Live::Starting { cancelled: false }));
                assert_eq!(before, None, "two incarnations of {child} at once");
            }
            Effect::CancelStart { child } => {
                self.log.push(format!("cancel {child}"));
                let (_, live) = self.live.get_mut(&child).unwrap();
                assert_eq!(*live, Live::Starting { cancelled: false });
                *live = Live::Starting { cancelled: true };
            }
            Effect::Stop { child, incarnation } => {
                self.log.push(format!("stop {child}"));
                let live = self.live.get_mut(&child).unwrap();
                assert_eq!(*live, (incarnation, Live::Running));
                live.1 = Live::Stopping;
            }
            Effect::Arm { child, generation, .. } => self.timers.push((child, generation)),
            Effect::Disarm { .. } => {}
            Effect::Tell { child, standing } => {
                let standings = self.standings.entry(child).or_default();
                assert_ne!(standings.last(), Some(&Standing::Gone), "{child} was gone");
                standings.push(standing);
            }
            Effect::Report { child, what: ReportKind::GaveUp { .. } } => self.log.push(format!("give up {child}")),
            Effect::Report { .. } => {}
            Effect::Forget { child } => {
                assert!(!self.live.contains_key(&child), "{child} forgotten alive");
                *self.forgotten.entry(child).or_default() += 1;
            }
        }
    }

    fn up(&mut self, child: u64) {
        let child = ChildId::new(child);
        let (incarnation, live) = self.live.get_mut(&child).unwrap();
        assert!(matches!(live, Live::Starting { .. }));
        *live = Live::Running;
        let incarnation = *incarnation;
        self.step(Input::Started { child, incarnation });
    }

    fn down(&mut self, child: u64, end: End) {
        let child = ChildId::new(child);
        let (incarnation, _) = self.live.remove(&child).unwrap();
        self.step(Input::Down { child, incarnation, end });
    }

    fn fire(&mut self, child: u64) {
        let at = self.timers.iter().position(|timer| timer.0 == ChildId::new(child)).unwrap();
        let (child, generation) = self.timers.remove(at);
        self.step(Input::Timer { child, generation });
    }

    /// Lets every start, stop and wait come to its end.
    fn finish_all(&mut self) {
        loop {
            let pending = self.live.iter().find(|(_, (_, live))| *live != Live::Running).map(|(id, (_, live))| (*id, *live));
            match pending {
                Some((id, Live::Starting { cancelled: false })) => self.up(id.as_u64()),
                Some((id, _)) => self.down(id.as_u64(), End::Asked { killed: false }),
                None => match self.timers.pop() {
                    Some((child, generation)) => self.step(Input::Timer { child, generation }),
                    None => return,
                },
            }
        }
    }

    fn took(&mut self) -> String {
        std::mem::take(&mut self.log).join(", ")
    }
}

/// Children start one after the other; nobody overtakes a start that is under way.
#[test]
fn children_start_in_order_and_stop_in_reverse() {
    for strategy in [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne, Strategy::Isolated] {
        let mut world = World::new(strategy, WIDE, false);
        world.add_several(3, facts(Restart::Permanent));
        assert_eq!(world.took(), "start 0", "{strategy:?}");
        world.up(0);
        assert_eq!(world.took(), "start 1");
        world.up(1);
        world.up(2);
        assert!(world.kernel.is_up());
        world.took();
        world.step(Input::WindDown);
        assert_eq!(world.took(), "stop 2", "{strategy:?}");
        world.down(2, End::Asked { killed: false });
        assert_eq!(world.took(), "stop 1");
        world.down(1, End::Asked { killed: true });
        world.down(0, End::Asked { killed: false });
        assert!(world.kernel.is_over());
    }
}

/// The table of `strategy.rs`, with the order of stops and starts.
#[test]
fn each_strategy_restarts_its_range_in_its_order() {
    let rows = [
        (Strategy::OneForOne, "start 2"),
        (Strategy::OneForAll, "stop 3, stop 1, stop 0, start 0, start 1, start 2, start 3"),
        (Strategy::RestForOne, "stop 3, start 2, start 3"),
        (Strategy::Isolated, "start 2"),
    ];
    for (strategy, expected) in rows {
        let mut world = World::with(strategy, &[facts(Restart::Permanent); 4]);
        world.down(2, failed());
        world.finish_all();
        assert_eq!(world.took(), expected, "{strategy:?}");
        assert_eq!(world.kernel.restarts(), 1, "one failure is one restart, however many children come back");
    }
}

/// Two children of a group fail together: the group goes down and comes back once, and the budget is charged once.
#[test]
fn two_simultaneous_failures_restart_a_group_once() {
    let mut world = World::with(Strategy::OneForAll, &[facts(Restart::Permanent); 3]);
    world.down(0, failed());
    world.down(2, failed());
    world.finish_all();
    assert_eq!(world.took(), "stop 2, stop 1, start 0, start 1, start 2", "2 fails while it is asked to stop");
    assert_eq!(world.kernel.restarts(), 1);
}

/// A group waits as a whole: nothing is started before the failed child's wait is over, and then in order.
#[test]
fn a_group_waits_for_the_back_off_of_the_child_that_failed() {
    let slow = Facts { backoff: Backoff::exponential(10 * MS, 10 * MS), ..facts(Restart::Permanent) };
    let mut world = World::with(Strategy::OneForAll, &[facts(Restart::Permanent), slow, facts(Restart::Permanent)]);
    world.down(1, failed());
    assert_eq!(world.took(), "stop 2");
    world.down(2, End::Asked { killed: false });
    world.down(0, End::Asked { killed: false });
    assert_eq!(world.took(), "stop 0");
    world.fire(1);
    assert_eq!(world.took(), "start 0");
}

/// A failure on the way up brings those down again that came up before it in this round, and is counted.
#[test]
fn a_start_that_fails_in_a_group_restart_begins_a_new_round() {
    let mut world = World::with(Strategy::OneForAll, &[facts(Restart::Permanent); 3]);
    world.down(0, failed());
    world.down(2, End::Asked { killed: false });
    world.down(1, End::Asked { killed: false });
    world.up(0);
    world.took();
    world.down(1, End::StartFailed(StartError::NotLinked));
    assert_eq!(world.took(), "stop 0");
    world.finish_all();
    assert_eq!(world.took(), "start 0, start 1, start 2");
    assert_eq!(world.kernel.restarts(), 2);
}

/// Pitfall 13: the timer of a past wait leaves a healthy child alone.
#[test]
fn a_stale_timer_is_ignored() {
    let slow = Facts { backoff: Backoff::exponential(10 * MS, 10 * MS), ..facts(Restart::Permanent) };
    let mut world = World::with(Strategy::OneForOne, &[slow]);
    world.down(0, failed());
    let stale = world.timers[0];
    world.fire(0);
    world.up(0);
    world.down(0, failed());
    world.took();
    world.step(Input::Timer { child: stale.0, generation: stale.1 });
    assert_eq!(world.took(), "", "the second wait is not cut short by the first timer");
    world.fire(0);
    world.up(0);
    world.took();
    world.step(Input::Timer { child: stale.0, generation: stale.1 });
    assert_eq!(world.took(), "");
}

/// Pitfall 10: an explicit stop is final for every class, in every state of the child.
#[test]
fn an_explicit_stop_is_final_for_every_class() {
    for restart in [Restart::Permanent, Restart::Transient, Restart::Temporary] {
        let mut world = World::with(Strategy::OneForOne, &[facts(restart)]);
        world.step(Input::Stop { child: ChildId::new(0) });
        world.down(0, failed());
        assert_eq!(world.kernel.len(), 0, "{restart:?}");
        let starting = world.add(Facts { dynamic: true, ..facts(restart) });
        world.step(Input::Stop { child: starting });
        world.up(1);
        assert_eq!(world.took(), "stop 0, start 1, cancel 1, stop 1", "a start that wins the race is stopped");
        world.finish_all();
        assert_eq!(world.kernel.len(), 0);
    }
}

/// A spent budget stops the siblings in reverse, and tells their owners whether somebody will try again.
#[test]
fn a_spent_budget_ends_the_supervisor_in_order() {
    for (nested, farewell) in [(false, Standing::Gone), (true, Standing::Degraded)] {
        let mut world = World::new(Strategy::OneForOne, Intensity::new(1, Duration::from_secs(5)), nested);
        world.add_several(3, facts(Restart::Permanent));
        world.finish_all();
        world.took();
        world.down(1, failed());
        world.finish_all();
        world.down(1, failed());
        assert_eq!(world.took(), "start 1, give up 1, stop 2");
        world.finish_all();
        assert_eq!(world.took(), "stop 0");
        assert!(world.kernel.is_over());
        assert!(matches!(world.kernel.ending(), Some(Ending::Exhausted { child, .. }) if child.as_u64() == 1));
        assert!(world.standings.values().all(|told| told.last() == Some(&farewell)), "{:?}", world.standings);
    }
}

/// Pitfall 17: children with budgets of their own do not spend one another's.
#[test]
fn five_children_that_fail_once_each_are_all_kept() {
    let own = Facts { intensity: Some(Intensity::new(1, Duration::from_secs(5))), ..facts(Restart::Permanent) };
    let mut world = World::new(Strategy::OneForOne, Intensity::new(0, Duration::from_secs(5)), false);
    world.add_several(5, own);
    world.finish_all();
    (0..5).for_each(|child| world.down(child, failed()));
    world.finish_all();
    assert_eq!(world.kernel.len(), 5);
    world.down(3, failed());
    assert_eq!(world.kernel.len(), 4, "the one that fails again is given up alone");
    assert!(world.kernel.ending().is_none());
}

/// An isolating supervisor never gives up: it degrades, and takes that back when the child is up.
#[test]
fn an_isolating_supervisor_degrades_and_recovers() {
    let mut world = World::new(Strategy::Isolated, Intensity::new(0, Duration::from_secs(5)), false);
    world.add_several(2, facts(Restart::Permanent));
    world.finish_all();
    for _ in 0..1_000 {
        world.down(0, failed());
        assert!(world.kernel.degraded().contains(&ChildId::new(0)));
        world.finish_all();
        assert!(world.kernel.degraded().is_empty());
    }
    assert!(world.kernel.ending().is_none());
    assert_eq!(world.standings[&ChildId::new(1)], [Standing::Up], "the sibling never noticed");
}

/// A child that has not come up holds its later siblings back; under isolation only its first attempt does.
#[test]
fn a_failing_first_start_holds_back_its_dependents_but_not_isolated_siblings() {
    let slow = Facts { backoff: Backoff::exponential(10 * MS, 10 * MS), ..facts(Restart::Permanent) };
    for (strategy, expected) in [(Strategy::OneForOne, ""), (Strategy::RestForOne, ""), (Strategy::Isolated, "start 1")] {
        let mut world = World::new(strategy, WIDE, false);
        world.add_several(2, slow);
        world.took();
        world.down(0, End::StartFailed(StartError::Timeout(MS)));
        assert_eq!(world.took(), expected, "{strategy:?}");
        world.finish_all();
        assert!(world.kernel.is_up());
    }
}

/// Whatever happens in whatever order: never two incarnations at once, nothing is forgotten twice or alive, no standing after
/// Gone, ordered children stop last first, and a supervisor that winds down ends and keeps nothing.
#[test]
fn every_history_ends_in_order_and_leaves_nothing() {
    let mut entropy = Entropy::seeded(42);
    let mut pick = |bound: u64| entropy.next() % bound;
    for round in 0..3_000 {
        let strategy = [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne, Strategy::Isolated][pick(4) as usize];
        let mut world = World::new(strategy, Intensity::new(pick(6) as u32, 40 * MS), pick(2) == 0);
        let random_facts = |dynamic, pick: &mut dyn FnMut(u64) -> u64| Facts {
            restart: [Restart::Permanent, Restart::Transient, Restart::Temporary][pick(3) as usize],
            backoff: [Backoff::NONE, Backoff::exponential(5 * MS, 20 * MS)][pick(2) as usize],
            intensity: [None, Some(Intensity::new(1, 30 * MS))][pick(2) as usize],
            dynamic,
        };
        for _ in 0..pick(5) {
            let facts = random_facts(false, &mut pick);
            world.add(facts);
        }
        for _ in 0..pick(60) {
            world.now += MS * pick(15) as u32;
            let live: VecDeque<(u64, Live)> = world.live.iter().map(|(id, (_, live))| (id.as_u64(), *live)).collect();
            let chosen = (!live.is_empty()).then(|| live[pick(live.len() as u64) as usize]);
            match (pick(8), chosen) {
                (0, _) if world.kernel.ending().is_none() => {
                    let facts = random_facts(true, &mut pick);
                    world.add(facts);
                }
                (1, Some((child, _))) => world.step(Input::Stop { child: ChildId::new(child) }),
                (2 | 3, Some((child, Live::Running))) => {
                    world.down(child, [failed(), End::Killed, End::Stopped { reason: None }][pick(3) as usize].clone());
                }
                (4, Some((child, Live::Starting { .. }))) => world.down(child, End::StartFailed(StartError::NotLinked)),
                (5 | 6, Some((child, Live::Starting { .. }))) => world.up(child),
                (5 | 6, Some((child, Live::Stopping))) => world.down(child, End::Asked { killed: pick(2) == 0 }),
                (7, _) if !world.timers.is_empty() => {
                    let at = pick(world.timers.len() as u64) as usize;
                    let (child, generation) = world.timers[at];
                    world.step(Input::Timer { child, generation });
                }
                _ => {}
            }
        }
        world.took();
        let ordered = world.kernel.ordered.clone();
        world.step(Input::WindDown);
        world.finish_all();
        assert!(world.kernel.is_over(), "round {round} {strategy:?}: {:?}", world.kernel);
        assert!(world.live.is_empty() && world.kernel.degraded().is_empty() && world.kernel.dynamic() == 0);
        assert!(world.forgotten.values().all(|&times| times == 1));
        assert_eq!(world.forgotten.len() as u64, world.next);
        let asked: Vec<u64> = world.log.iter().filter_map(|line| line.strip_prefix("stop ")?.parse().ok()).collect();
        let in_order: Vec<u64> = asked.into_iter().filter(|&id| ordered.contains(&ChildId::new(id))).collect();
        assert!(in_order.is_sorted_by(|a, b| a > b), "round {round} {strategy:?}: {:?}", world.log);
        for told in world.standings.values() {
            assert!(matches!(told.last(), Some(Standing::Gone | Standing::Degraded)));
        }
    }
}
