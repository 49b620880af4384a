//! The decisions of a supervisor: from what happened to what is to be done. No clock, no task, no actor.
//!
//! A child has a state (what is) and a wish (what shall be):
//!
//! | state    | input                 | wish  | next     | effects                                                             |
//! |----------|-----------------------|-------|----------|---------------------------------------------------------------------|
//! | Down     | its turn, gate open   | Up    | Starting | start                                                               |
//! | Starting | started               | Up    | Running  | standing Up                                                         |
//! | Starting | started               | other | Stopping | stop: it won the race against its cancellation                      |
//! | Starting | its turn to stop      | other | Starting | cancel the start                                                    |
//! | Running  | its turn to stop      | other | Stopping | stop                                                                |
//! | any live | down                  | Up    | Down     | by `restart.rs`: forget, or count, close the gate, mark the group   |
//! | any live | down                  | Again | Down     | wish Up: one of a group, not counted again                          |
//! | any live | down                  | Gone  | -        | forget                                                              |
//! | Down     | timer of this wait    | Up    | Down     | the gate opens                                                      |
//! | Down     | stop                  | any   | -        | forget                                                              |
//! | any      | of a past incarnation or a past wait | any | same | none                                                     |
//!
//! Turns. *Ordered* children (those of the specification; all children of a group strategy) start in order: one after the other
//! has come up (`Isolated`: after the first attempt of the other is over). A group first goes down, last child first, each after
//! the one behind it; it comes up in order once it is down and no gate is closed. Dynamic children of the other strategies take
//! their turn at once. A supervisor that winds down stops those together, then the ordered ones in reverse.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::backoff::{Backoff, Entropy};
use super::child::{ChildId, Standing};
use super::end::End;
use super::event::ReportKind;
use super::intensity::{Intensity, Window};
use super::restart::{Budget, Consequence, Restart, Verdict, consequence, verdict};
use super::strategy::Strategy;

/// What happened.
#[derive(Debug)]
pub(crate) enum Input {
    /// A child is to be supervised from now on, and started in its turn.
    Add { child: ChildId, facts: Facts },
    /// A start succeeded.
    Started { child: ChildId, incarnation: u64 },
    /// An incarnation is over, or its start has failed or was cancelled.
    Down { child: ChildId, incarnation: u64, end: End },
    /// The wait of that generation is over.
    Timer { child: ChildId, generation: u64 },
    /// A child is to be stopped for good.
    Stop { child: ChildId },
    /// All children are to be stopped, and the supervisor is to end.
    WindDown,
}

/// What is to be done, in this order.
#[derive(Debug)]
pub(crate) enum Effect {
    Start { child: ChildId, incarnation: u64 },
    CancelStart { child: ChildId },
    Stop { child: ChildId, incarnation: u64 },
    Arm { child: ChildId, generation: u64, delay: Duration },
    Disarm { child: ChildId },
    Tell { child: ChildId, standing: Standing },
    Report { child: ChildId, what: ReportKind },
    Forget { child: ChildId },
}

/// What the kernel knows of a child's specification.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) restart: Restart,
    pub(crate) backoff: Backoff,
    pub(crate) intensity: Option<Intensity>,
    pub(crate) dynamic: bool,
}

/// What the kernel knows of the supervisor's specification.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) strategy: Strategy,
    pub(crate) intensity: Intensity,
    /// Whether a supervisor of ours stands above, which will try again when this one gives up.
    pub(crate) nested: bool,
}

/// Why the supervisor ends.
#[derive(Debug, Clone)]
pub(crate) enum Ending {
    Asked,
    Exhausted { child: ChildId, end: End },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Down,
    Starting { cancelled: bool },
    Running,
    Stopping,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Up,
    Again,
    Gone,
}

#[derive(Debug)]
struct Node {
    facts: Facts,
    state: State,
    wish: Wish,
    incarnation: u64,
    /// The wait that holds the next start back.
    gate: Option<u64>,
    generation: u64,
    own: Option<Window>,
    failures: u32,
    restarts: u64,
    started_at: Option<Instant>,
    attempted: bool,
    came_up: bool,
}

/// The state of a supervisor's decisions.
#[derive(Debug)]
pub(crate) struct Kernel {
    rules: Rules,
    nodes: BTreeMap<ChildId, Node>,
    /// In start order; identifiers grow, so this is also sorted.
    ordered: Vec<ChildId>,
    dynamic: usize,
    degraded: BTreeSet<ChildId>,
    shared: Window,
    entropy: Entropy,
    ending: Option<Ending>,
    restarts: u64,
}

impl Kernel {
    pub(crate) fn new(rules: Rules, seed: u64) -> Self {
        Self {
            rules,
            nodes: BTreeMap::new(),
            ordered: Vec::new(),
            dynamic: 0,
            degraded: BTreeSet::new(),
            shared: Window::new(rules.intensity),
            entropy: Entropy::seeded(seed),
            ending: None,
            restarts: 0,
        }
    }

    /// Takes one input in, and appends what is to be done.
    pub(crate) fn step(&mut self, input: Input, now: Instant, out: &mut Vec<Effect>) {
        match input {
            Input::Add { child, facts } => self.add(child, facts, out),
            Input::Started { child, incarnation } => self.started(child, incarnation, now, out),
            Input::Down { child, incarnation, end } => self.down(child, incarnation, end, now, out),
            Input::Timer { child, generation } => self.timer(child, generation, out),
            Input::Stop { child } => self.stop(child, out),
            Input::WindDown => self.wind_down(out),
        }
        self.take_turns(out);
    }

    /// Why the supervisor ends, from the moment on which that is decided.
    pub(crate) fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Whether the supervisor ends and its last child is gone.
    pub(crate) fn is_over(&self) -> bool {
        self.ending.is_some() && self.nodes.is_empty()
    }

    /// Whether every child of the specification has had its first turn, so that the supervisor counts as up.
    pub(crate) fn is_up(&self) -> bool {
        self.nodes.values().take_while(|node| !node.facts.dynamic).all(|node| !self.holds_back_first_starts(node))
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn dynamic(&self) -> usize {
        self.dynamic
    }

    pub(crate) fn restarts(&self) -> u64 {
        self.restarts
    }

    pub(crate) fn degraded(&self) -> &BTreeSet<ChildId> {
        &self.degraded
    }

    pub(crate) fn restarts_of(&self, child: ChildId) -> u64 {
        self.nodes.get(&child).map_or(0, |node| node.restarts)
    }

    pub(crate) fn is_running(&self, child: ChildId) -> bool {
        self.nodes.get(&child).is_some_and(|node| node.state == State::Running)
    }

    /// Whether this incarnation is being stopped by its supervisor, so that the stop will report its end.
    pub(crate) fn is_stopping(&self, child: ChildId) -> bool {
        self.nodes.get(&child).is_some_and(|node| node.state == State::Stopping)
    }

    pub(crate) fn incarnation(&self, child: ChildId) -> Option<u64> {
        self.nodes.get(&child).map(|node| node.incarnation)
    }

    fn is_ordered(&self, facts: &Facts) -> bool {
        !facts.dynamic || self.rules.strategy.is_group()
    }

    fn add(&mut self, child: ChildId, facts: Facts, out: &mut Vec<Effect>) {
        let ordered = self.is_ordered(&facts);
        let node = Node {
            facts,
            state: State::Down,
            wish: Wish::Up,
            incarnation: 0,
            gate: None,
            generation: 0,
            own: facts.intensity.map(Window::new),
            failures: 0,
            restarts: 0,
            started_at: None,
            attempted: false,
            came_up: false,
        };
        self.nodes.insert(child, node);
        self.dynamic += usize::from(facts.dynamic);
        if ordered {
            self.ordered.push(child);
        } else {
            self.start_if_due(child, out);
        }
    }

    fn started(&mut self, child: ChildId, incarnation: u64, now: Instant, out: &mut Vec<Effect>) {
        let Some(node) = self.nodes.get_mut(&child).filter(|node| node.incarnation == incarnation) else { return };
        match node.state {
            State::Starting { cancelled: false } => {
                node.state = State::Running;
                node.started_at = Some(now);
                node.attempted = true;
                node.came_up = true;
                let restarts = node.restarts;
                out.push(Effect::Tell { child, standing: Standing::Up });
                out.push(Effect::Report { child, what: ReportKind::Started { restarts } });
                if self.degraded.remove(&child) {
                    out.push(Effect::Report { child, what: ReportKind::Recovered { restarts } });
                }
            }
            State::Starting { cancelled: true } => {
                node.state = State::Stopping;
                out.push(Effect::Stop { child, incarnation });
            }
            State::Down | State::Running | State::Stopping => {}
        }
    }

    fn down(&mut self, child: ChildId, incarnation: u64, end: End, now: Instant, out: &mut Vec<Effect>) {
        let Some(node) = self.nodes.get_mut(&child).filter(|node| node.incarnation == incarnation) else { return };
        if node.state == State::Down {
            return;
        }
        node.state = State::Down;
        node.attempted = true;
        let up_for = node.started_at.take().map(|since| now.saturating_duration_since(since));
        let wish = node.wish;
        out.push(Effect::Report { child, what: ReportKind::Ended(end.clone()) });
        match wish {
            Wish::Up => self.ended_by_itself(child, end, up_for, now, out),
            Wish::Again => {
                node.wish = Wish::Up;
                out.push(Effect::Tell { child, standing: Standing::Restarting });
            }
            Wish::Gone => self.forget(child, ReportKind::Stopped, out),
        }
    }

    fn ended_by_itself(&mut self, child: ChildId, end: End, up_for: Option<Duration>, now: Instant, out: &mut Vec<Effect>) {
        let strategy = self.rules.strategy;
        let Some(node) = self.nodes.get_mut(&child) else { return };
        // Whoever started it gets the error, and decides.
        let never_was = node.facts.dynamic && !node.came_up;
        if never_was || verdict(node.facts.restart, &end) == Verdict::Forget {
            return self.forget(child, ReportKind::Finished, out);
        }
        let (budget, spent) = match &mut node.own {
            Some(own) => (Budget::Own, own.record(now)),
            None if strategy == Strategy::Isolated => (Budget::None, false),
            None => (Budget::Shared, self.shared.record(now)),
        };
        let so_far = node.restarts;
        let standing = match consequence(strategy, budget, spent) {
            Consequence::Restart => Standing::Restarting,
            Consequence::Degrade => Standing::Degraded,
            Consequence::GiveUp => return self.forget(child, ReportKind::GaveUp { restarts: so_far }, out),
            Consequence::Escalate => {
                self.ending = Some(Ending::Exhausted { child, end });
                self.forget(child, ReportKind::GaveUp { restarts: so_far }, out);
                return self.bring_all_down(out);
            }
        };
        // Once degraded, degraded until it is up: an old failure that leaves the window meanwhile changes nothing for those who
        // wait.
        let standing = if self.degraded.contains(&child) { Standing::Degraded } else { standing };
        node.failures = node.facts.backoff.row(node.failures, up_for);
        node.restarts += 1;
        self.restarts += 1;
        out.push(Effect::Tell { child, standing });
        if standing == Standing::Degraded && self.degraded.insert(child) {
            out.push(Effect::Report { child, what: ReportKind::Degraded { restarts: so_far + 1 } });
        }
        self.close_gate(child, out);
        self.mark_group(child);
        if !self.is_ordered_child(child) {
            self.start_if_due(child, out);
        }
    }

    fn is_ordered_child(&self, child: ChildId) -> bool {
        self.nodes.get(&child).is_some_and(|node| self.is_ordered(&node.facts))
    }

    fn close_gate(&mut self, child: ChildId, out: &mut Vec<Effect>) {
        let Some(node) = self.nodes.get_mut(&child) else { return };
        let delay = node.facts.backoff.delay(node.failures, &mut self.entropy);
        if delay.is_zero() {
            return;
        }
        node.generation += 1;
        node.gate = Some(node.generation);
        out.push(Effect::Report { child, what: ReportKind::BackingOff { delay, failures: node.failures } });
        out.push(Effect::Arm { child, generation: node.generation, delay });
    }

    /// Those that share the child's fate go down once, however many of them fail meanwhile.
    fn mark_group(&mut self, child: ChildId) {
        if !self.rules.strategy.is_group() {
            return;
        }
        let Ok(failed) = self.ordered.binary_search(&child) else { return };
        let reach = self.rules.strategy.reach(self.ordered.len(), failed);
        for id in &self.ordered[reach] {
            if let Some(node) = self.nodes.get_mut(id).filter(|node| node.state != State::Down && node.wish == Wish::Up) {
                node.wish = Wish::Again;
            }
        }
    }

    fn timer(&mut self, child: ChildId, generation: u64, out: &mut Vec<Effect>) {
        let Some(node) = self.nodes.get_mut(&child).filter(|node| node.gate == Some(generation)) else { return };
        node.gate = None;
        if !self.is_ordered_child(child) {
            self.start_if_due(child, out);
        }
    }

    fn stop(&mut self, child: ChildId, out: &mut Vec<Effect>) {
        let Some(node) = self.nodes.get_mut(&child) else { return };
        node.wish = Wish::Gone;
        if node.state == State::Down {
            self.forget(child, ReportKind::Stopped, out);
        } else if self.ending.is_none() {
            self.bring_down(child, out);
        }
    }

    fn wind_down(&mut self, out: &mut Vec<Effect>) {
        if self.ending.is_none() {
            self.ending = Some(Ending::Asked);
            self.bring_all_down(out);
        }
    }

    fn bring_all_down(&mut self, out: &mut Vec<Effect>) {
        let children: Vec<ChildId> = self.nodes.keys().copied().collect();
        for child in children {
            let Some(node) = self.nodes.get_mut(&child) else { continue };
            node.wish = Wish::Gone;
            if node.state == State::Down {
                self.forget(child, ReportKind::Stopped, out);
            } else if !self.is_ordered_child(child) {
                self.bring_down(child, out);
            }
        }
    }

    fn take_turns(&mut self, out: &mut Vec<Effect>) {
        if self.ending.is_some() {
            // Dynamic children depend on the ordered ones, never the reverse.
            if self.nodes.len() == self.ordered.len()
                && let Some(&last) = self.ordered.last()
            {
                self.bring_down(last, out);
            }
            return;
        }
        if self.rules.strategy.is_group() && self.group_goes_down(out) {
            return;
        }
        for at in 0..self.ordered.len() {
            let child = self.ordered[at];
            self.start_if_due(child, out);
            if self.nodes.get(&child).is_some_and(|node| self.holds_back(node)) {
                return;
            }
        }
    }

    /// Whether a group restart has not yet come to its starts: something is still up that must go down, or a wait is not over.
    fn group_goes_down(&mut self, out: &mut Vec<Effect>) -> bool {
        let last_up =
            self.ordered.iter().rev().find(|id| self.nodes.get(id).is_some_and(|node| node.wish == Wish::Again)).copied();
        if let Some(child) = last_up {
            self.bring_down(child, out);
            return true;
        }
        self.nodes.values().any(|node| node.gate.is_some())
    }

    /// Whether children after this one have to wait with their start.
    fn holds_back(&self, node: &Node) -> bool {
        match self.rules.strategy {
            Strategy::OneForAll | Strategy::RestForOne => node.state != State::Running && node.wish != Wish::Gone,
            Strategy::OneForOne | Strategy::Isolated => self.holds_back_first_starts(node),
        }
    }

    fn holds_back_first_starts(&self, node: &Node) -> bool {
        match self.rules.strategy {
            Strategy::Isolated => !node.attempted,
            Strategy::OneForOne | Strategy::OneForAll | Strategy::RestForOne => !node.came_up,
        }
    }

    fn start_if_due(&mut self, child: ChildId, out: &mut Vec<Effect>) {
        let Some(node) = self.nodes.get_mut(&child) else { return };
        if node.state == State::Down && node.wish == Wish::Up && node.gate.is_none() {
            node.state = State::Starting { cancelled: false };
            node.incarnation += 1;
            out.push(Effect::Start { child, incarnation: node.incarnation });
        }
    }

    /// Asks a live child to go down, once.
    fn bring_down(&mut self, child: ChildId, out: &mut Vec<Effect>) {
        let Some(node) = self.nodes.get_mut(&child) else { return };
        match node.state {
            State::Running => {
                node.state = State::Stopping;
                out.push(Effect::Stop { child, incarnation: node.incarnation });
            }
            State::Starting { cancelled: false } => {
                node.state = State::Starting { cancelled: true };
                out.push(Effect::CancelStart { child });
            }
            State::Down | State::Starting { cancelled: true } | State::Stopping => {}
        }
    }

    fn forget(&mut self, child: ChildId, farewell: ReportKind, out: &mut Vec<Effect>) {
        let Some(node) = self.nodes.remove(&child) else { return };
        self.degraded.remove(&child);
        self.dynamic -= usize::from(node.facts.dynamic);
        if let Ok(at) = self.ordered.binary_search(&child) {
            self.ordered.remove(at);
        }
        if node.gate.is_some() {
            out.push(Effect::Disarm { child });
        }
        let comes_back = self.rules.nested && !node.facts.dynamic && matches!(self.ending, Some(Ending::Exhausted { .. }));
        let standing = if comes_back { Standing::Degraded } else { Standing::Gone };
        out.push(Effect::Tell { child, standing });
        out.push(Effect::Report { child, what: farewell });
        out.push(Effect::Forget { child });
    }
}

#[cfg(test)]
#[path = "kernel_tests.rs"]
mod tests;
