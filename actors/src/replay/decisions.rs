//! What was decided, read back from the journal page by page. Nothing here comes from the reader of the transcript.
//!
//! | the closing fact says                          | decision  |
//! |------------------------------------------------|-----------|
//! | denied by the policy                           | `deny`    |
//! | denied because nobody could be asked, or escalated | `ask` |
//! | denied for another cause                       | `failed`: the runtime could not decide |
//! | performed with another input than was proposed | `rewrite` |
//! | otherwise                                      | `allow`   |

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::num::NonZeroU32;

use serde::Serialize;
use serde_json::Value;
use tipstaff_core::declare::Digest;
use tipstaff_core::id::{OperationId, SessionId};
use tipstaff_core::signal::{LifecycleKind, Signal, SignalKind, SignalSeq};
use tipstaff_core::state::{JournalReader, PageLimit, ReadFilter, Recorded, StoreError};

use super::driver::MAX_TRIES;
use super::facts::{attempt_of, is_own_end};
use super::shown;
use crate::guards::{GUARD, REWRITER};

/// Facts read at a time.
const PAGE: NonZeroU32 = NonZeroU32::new(500).expect("the literal is not zero");
/// Calls whose decision has not come up yet while reading; beyond it they are forgotten. Far above what a replay keeps open.
const MAX_WAITING: usize = 65_536;
/// Decisions that wait for an earlier call to end, so that they come in order; beyond it the oldest comes all the same.
const MAX_HELD: usize = 4_096;

/// One decision.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decision {
    /// The operation: product, thread and call id.
    pub operation: String,
    /// The tool.
    pub tool: String,
    /// The line of the transcript.
    pub line: Option<u64>,
    /// `allow`, `deny`, `ask`, `rewrite` or `failed`. An `ask` stays `ask`, whatever followed.
    pub decision: &'static str,
    /// What followed: `completed`, `failed: nonzero_exit`, `denied`, `denied: no approver`, `escalated`, `ambiguous: ...`.
    pub outcome: String,
    /// The guard that decided.
    pub guard: Option<String>,
    /// Its reason.
    pub reason: Option<String>,
    /// What of the call the decision hangs on.
    pub place: Option<String>,
    /// The call as it was proposed, cut.
    pub call: String,
    /// The call as it was rewritten, cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewritten: Option<String>,
    /// What guards recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Whether an earlier decision of this session diverged from what happened, so that this call might not have come about.
    pub counterfactual: bool,
}

impl Decision {
    /// Whether the call must not be performed, be it that nobody could be asked.
    #[must_use]
    pub fn is_denial(&self) -> bool {
        matches!(self.decision, "deny" | "ask" | "failed")
    }
}

/// The first decision of a session that differs from what happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Divergence {
    /// The session in the journal.
    pub session: String,
    /// The operation.
    pub operation: String,
    /// The line of the transcript.
    pub line: Option<u64>,
    /// The decision.
    pub decision: &'static str,
    /// The guard that decided.
    pub guard: Option<String>,
}

/// Operations of a session by how they stand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OperationCounts {
    /// Operations that were proposed.
    pub proposed: u64,
    /// Their closing facts, by status.
    pub closed: BTreeMap<String, u64>,
}

/// Decisions by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Permitted as proposed.
    pub allow: u64,
    /// Permitted with another input.
    pub rewrite: u64,
    /// A guard asks; denied where nobody could be asked.
    pub ask: u64,
    /// A guard denied.
    pub deny: u64,
    /// The runtime could not decide, and so denied.
    pub failed: u64,
}

/// Reads the decisions of one session, in the order in which the calls were proposed.
pub struct Decisions<'j> {
    journal: &'j dyn JournalReader,
    session: SessionId,
    policy: Option<Digest>,
    filter: ReadFilter,
    next: SignalSeq,
    done: bool,
    ready: VecDeque<Decision>,
    waiting: HashMap<OperationId, Waiting>,
    /// Proposals that have not ended yet.
    open: BTreeSet<SignalSeq>,
    /// Decisions by their proposals, until every earlier proposal has ended: only then is it known what diverged first.
    held: BTreeMap<SignalSeq, Decision>,
    operations: OperationCounts,
    counts: Counts,
    divergence: Option<Divergence>,
}

/// What is known of a call before its decision comes up.
#[derive(Default)]
struct Waiting {
    proposed: Option<SignalSeq>,
    line: Option<u64>,
    tool: String,
    call: String,
}

impl<'j> Decisions<'j> {
    /// Reads the attempts of a session that one policy judged, of all replays so far; `None` for those without guards.
    #[must_use]
    pub fn of(journal: &'j dyn JournalReader, session: SessionId, policy: Option<Digest>) -> Self {
        let closing = LifecycleKind::ALL.iter().copied().filter(|kind| kind.closes_operation());
        let kinds = closing.chain([LifecycleKind::OperationProposed]).map(SignalKind::from);
        let mut filter = ReadFilter::kinds(kinds);
        filter.kinds.push(SignalKind::from_stored("transcript.call"));
        Self {
            journal,
            session,
            filter,
            policy,
            next: SignalSeq::START,
            done: false,
            ready: VecDeque::new(),
            waiting: HashMap::new(),
            open: BTreeSet::new(),
            held: BTreeMap::new(),
            operations: OperationCounts::default(),
            counts: Counts::default(),
            divergence: None,
        }
    }

    /// Operations so far: complete once the iteration has ended.
    #[must_use]
    pub fn operations(&self) -> &OperationCounts {
        &self.operations
    }

    /// Decisions so far, by kind.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The first decision so far that differs from what happened.
    #[must_use]
    pub fn divergence(&self) -> Option<&Divergence> {
        self.divergence.as_ref()
    }

    fn page(&mut self) -> Result<(), StoreError> {
        let page = self.journal.read(&self.session, self.next, &self.filter, PageLimit::rows(PAGE))?;
        self.next = page.next;
        self.done = !page.more;
        for Recorded { seq, signal } in &page.facts {
            if self.take(*seq, signal).is_some() {
                self.release(MAX_HELD);
            }
        }
        if self.done {
            self.release(0);
        }
        Ok(())
    }

    /// Hands out what no earlier proposal holds back, and the oldest of what is held beyond a number.
    fn release(&mut self, most: usize) {
        while let Some((first, _)) = self.held.first_key_value() {
            let is_next = self.open.first().is_none_or(|open| open > first);
            if !is_next && self.held.len() <= most {
                return;
            }
            let Some((_, mut decision)) = self.held.pop_first() else { return };
            decision.counterfactual = self.divergence.is_some();
            if decision.decision != "allow" && self.divergence.is_none() {
                self.divergence = Some(Divergence {
                    session: self.session.to_string(),
                    operation: decision.operation.clone(),
                    line: decision.line,
                    decision: decision.decision,
                    guard: decision.guard.clone(),
                });
            }
            self.ready.push_back(decision);
        }
    }

    /// Takes one fact; `None` when it ended no call.
    fn take(&mut self, seq: SignalSeq, fact: &Signal) -> Option<()> {
        let payload = fact.payload().value();
        match fact.kind() {
            SignalKind::Lifecycle(_) if !self.is_own(fact) => None,
            SignalKind::Lifecycle(LifecycleKind::OperationProposed) => {
                self.operations.proposed += 1;
                self.open.insert(seq);
                let waiting = self.waiting_for(fact.operation()?.clone());
                waiting.proposed = Some(seq);
                waiting.tool = text(payload, "/context/tool").unwrap_or_default();
                waiting.call = shown::call(payload.pointer("/context/arguments"));
                None
            }
            SignalKind::Lifecycle(_) => self.closed(seq, fact, payload),
            SignalKind::User(_) | SignalKind::Unknown(_) => {
                let operation = OperationId::new(text(payload, "/operation")?).ok()?;
                self.waiting_for(operation).line = payload.pointer("/line").and_then(Value::as_u64);
                None
            }
        }
    }

    fn waiting_for(&mut self, operation: OperationId) -> &mut Waiting {
        if self.waiting.len() >= MAX_WAITING && !self.waiting.contains_key(&operation) {
            // A journal that was not written by a replay may hold any number of open proposals.
            self.waiting.clear();
            self.open.clear();
        }
        self.waiting.entry(operation).or_default()
    }

    fn closed(&mut self, seq: SignalSeq, fact: &Signal, payload: &Value) -> Option<()> {
        // A fact of recovery carries no status; its kind says it.
        let status = text(payload, "/status").unwrap_or_else(|| fact.kind().as_str().trim_start_matches("operation_").to_owned());
        *self.operations.closed.entry(status.clone()).or_default() += 1;
        let operation = fact.operation()?.clone();
        let proposed = self.waiting.get(&operation).and_then(|waiting| waiting.proposed);
        if let Some(proposed) = proposed {
            self.open.remove(&proposed);
        }
        if is_no_decision(fact) {
            return Some(());
        }
        let Waiting { line, tool, call, .. } = self.waiting.remove(&operation).unwrap_or_default();
        let (decision, step) = decision_of(payload);
        self.count(decision);
        let evidence = step.and_then(|step| step.pointer("/evidence/0"));
        let guard = evidence.and_then(|evidence| text(evidence, "/guard").or_else(|| text(evidence, "/guards/0")));
        let decision = Decision {
            operation: operation.to_string(),
            tool,
            line,
            decision,
            outcome: outcome_of(&status, payload),
            reason: evidence.and_then(|evidence| text(evidence, "/reason")).or_else(|| text(payload, "/denial/reason")),
            place: evidence.and_then(|evidence| text(evidence, "/place")),
            guard,
            call,
            rewritten: payload.pointer("/context/arguments").map(|arguments| shown::call(Some(arguments))),
            notes: notes(payload),
            // Known when every earlier proposal has ended.
            counterfactual: false,
        };
        self.held.insert(proposed.unwrap_or(seq), decision);
        Some(())
    }

    /// Whether the fact's attempt was judged by this policy.
    fn is_own(&self, fact: &Signal) -> bool {
        let (Some(operation), Some(attempt)) = (fact.operation(), fact.attempt()) else { return false };
        (0..MAX_TRIES).any(|tried| attempt_of(operation, self.policy, tried) == *attempt)
    }

    fn count(&mut self, decision: &str) {
        let counter = match decision {
            "allow" => &mut self.counts.allow,
            "rewrite" => &mut self.counts.rewrite,
            "ask" => &mut self.counts.ask,
            "deny" => &mut self.counts.deny,
            _ => &mut self.counts.failed,
        };
        *counter += 1;
    }
}

impl Iterator for Decisions<'_> {
    type Item = Result<Decision, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(decision) = self.ready.pop_front() {
                return Some(Ok(decision));
            }
            if self.done {
                return None;
            }
            if let Err(error) = self.page() {
                self.done = true;
                return Some(Err(error));
            }
        }
    }
}

/// An attempt that a killed or broken-off replay left: the next replay tries the call again.
fn is_no_decision(fact: &Signal) -> bool {
    let left = [LifecycleKind::OperationAbandoned, LifecycleKind::OperationCancelled];
    !is_own_end(fact) || fact.kind().lifecycle().is_some_and(|kind| left.contains(&kind))
}

/// The decision of a closing fact, by the table at the top, and the step of the report that made it.
fn decision_of(payload: &Value) -> (&'static str, Option<&Value>) {
    let steps = |name: &'static str| {
        let all = ["/report/again", "/report/steps"].into_iter().filter_map(|list| payload.pointer(list)?.as_array());
        all.flatten().filter(move |step| step.get("registration").and_then(Value::as_str) == Some(name))
    };
    let answered = |names: &[&'static str], answer: &str| {
        names.iter().find_map(|name| steps(name).find(|step| step.get("answer").and_then(Value::as_str) == Some(answer)))
    };
    match (payload.pointer("/denial/cause").and_then(Value::as_str), payload.get("escalation"), payload.get("context")) {
        (Some("policy"), _, _) => ("deny", answered(&[GUARD, REWRITER], "denied")),
        (Some("no_approver"), _, _) | (None, Some(_), _) => ("ask", answered(&[GUARD, REWRITER], "asked")),
        (Some(_), _, _) => ("failed", None),
        (None, None, Some(_)) => ("rewrite", answered(&[REWRITER], "replaced")),
        (None, None, None) => ("allow", steps(GUARD).next()),
    }
}

fn outcome_of(status: &str, payload: &Value) -> String {
    let cause = payload.pointer("/denial/cause").and_then(Value::as_str);
    let why = match cause {
        Some("policy") => None,
        Some(cause) => Some(cause.replace('_', " ")),
        None => text(payload, "/failure/message").or_else(|| text(payload, "/reason")).or_else(|| text(payload, "/cause")),
    };
    match why {
        Some(why) => format!("{status}: {why}"),
        None => status.to_owned(),
    }
}

fn notes(payload: &Value) -> Vec<String> {
    let steps = payload.pointer("/report/steps").and_then(Value::as_array);
    let notes = steps.into_iter().flatten().filter_map(|step| step.get("notes")?.as_array()).flatten();
    notes.filter_map(|note| Some(format!("{}: {}", text(note, "/code")?, text(note, "/text")?))).collect()
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer).and_then(Value::as_str).map(str::to_owned)
}
