//! A policy as ordinary interceptors: one guard evaluator and one transform for one file.
//!
//! | the policy answers      | the guard decides                | the transform decides                                    |
//! |-------------------------|----------------------------------|----------------------------------------------------------|
//! | deny                    | deny, code `guard.deny`          | is not reached                                           |
//! | ask                     | ask, code `guard.ask`            | goes on                                                  |
//! | allow, or nothing       | continue                         | goes on, or replaces the input where the policy rewrites |
//! | a note (`record`)       | the note stands on its decision  |                                                          |
//! | it cannot be rebuilt    | ask (by the guard)               | ask, code `guard.ask`                                    |
//!
//! Every guard that matched stands as evidence beside the decision, with its answer, reason and place.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Answer, GuardedCall, Judgement, Match, Policy, Rewrite};
use crate::declare::CallableRef;
use crate::interception::{AskRequest, Decision, DenialCode, EvidenceRef, Registration};

/// The code of a denial by a policy.
pub const DENY: DenialCode = DenialCode::from_static("guard.deny");
/// The code of an ask by a policy.
pub const ASK: DenialCode = DenialCode::from_static("guard.ask");

impl Policy {
    /// The guard evaluator of this policy, for a guard stage. `view` shows a context as the call that guards look at.
    ///
    /// Its callable reference holds the policy's digest, so that the digest of every plan changes with the policy's meaning (I-7).
    pub fn guard<C: 'static, R: 'static>(
        self: &Arc<Self>,
        name: impl Into<Arc<str>>,
        stage: impl Into<Arc<str>>,
        view: impl for<'c> Fn(&'c C) -> GuardedCall<'c> + Send + Sync + 'static,
    ) -> Registration<C, R> {
        let policy = Arc::clone(self);
        Registration::decide(name, stage, self.callable("guard"), move |context: &C, _turn| decide(&policy.judge(&view(context))))
    }

    /// The transform of this policy, for a transform stage: it carries out the guards whose action is `rewrite`. `rebuild` makes the context with
    /// another input of the tool.
    pub fn rewriter<C: 'static, R: 'static>(
        self: &Arc<Self>,
        name: impl Into<Arc<str>>,
        stage: impl Into<Arc<str>>,
        view: impl for<'c> Fn(&'c C) -> GuardedCall<'c> + Send + Sync + 'static,
        rebuild: impl Fn(&C, Value) -> C + Send + Sync + 'static,
    ) -> Registration<C, R> {
        let policy = Arc::clone(self);
        Registration::decide(name, stage, self.callable("rewriter"), move |context: &C, _turn| match policy.rewrite(&view(context)) {
            None => Decision::proceed(),
            Some(Rewrite::To { guards, input }) => {
                let names: Vec<&str> = guards.iter().map(|guard| &**guard).collect();
                with_evidence(Decision::replace(rebuild(context, input)), json!({ "guards": names, "answer": "rewrite" }))
            }
            Some(Rewrite::CannotRebuild { guard, reason }) => {
                let evidence = json!({ "guard": &*guard, "answer": "ask", "reason": &*reason });
                with_evidence(Decision::ask(AskRequest::new(ASK, format!("{guard}: {reason}"))), evidence)
            }
        })
    }

    fn callable(&self, role: &str) -> CallableRef {
        let digest = self.digest().to_string();
        let hex = digest.rsplit(':').next().unwrap_or_default();
        CallableRef::new(format!("tipstaff::policy::{role}::{hex}@1")).expect("hexadecimal digits and literals make a reference")
    }
}

fn decide<C>(judgement: &Judgement) -> Decision<C> {
    let mut decision = match judgement.winner() {
        Some(Match { answer: Answer::Deny, guard, reason, .. }) => Decision::deny(DENY, format!("{guard}: {reason}")),
        Some(Match { answer: Answer::Ask, guard, reason, .. }) => Decision::ask(AskRequest::new(ASK, format!("{guard}: {reason}"))),
        Some(Match { answer: Answer::Allow, .. }) | None => Decision::proceed(),
    };
    // The winner first: a record is cut before it loses the reason of the decision.
    let winner = judgement.winner();
    let others = judgement.matches.iter().filter(|found| winner.is_none_or(|winner| !std::ptr::eq(*found, winner)));
    for found in winner.into_iter().chain(others) {
        let evidence = json!({
            "guard": &*found.guard,
            "answer": found.answer.to_string(),
            "reason": &*found.reason,
            "place": found.place.to_string(),
            "certain": found.certain,
        });
        decision = with_evidence(decision, evidence);
    }
    for note in &judgement.notes {
        decision = decision.with_note(Arc::clone(&note.guard), format!("{} ({})", note.reason, note.place));
    }
    decision
}

/// Evidence that is over the bound is left out: the decision's own reason remains.
fn with_evidence<C>(decision: Decision<C>, evidence: Value) -> Decision<C> {
    match EvidenceRef::new(evidence) {
        Ok(evidence) => decision.with_evidence(evidence),
        Err(_too_long) => decision,
    }
}
