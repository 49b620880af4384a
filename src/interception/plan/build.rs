//! Compiling a plan: every refusal names the thing at fault.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::shape::{Registered, Shape, Stage, digest};
use super::{Approver, Calls, Compiled, Declaration, Plan, Registration};
use crate::declare::CallableRegistry;
use crate::interception::error::PlanError;
use crate::interception::evaluator::{Evaluator, Kind};
use crate::interception::outcome::Basis;
use crate::interception::stage::{OnFailure, StageKind, StageSpec};

/// The longest name, in bytes.
const MAX_NAME_BYTES: usize = 256;
/// How many stages an owner may declare.
const MAX_STAGES: usize = 256;
/// How many registrations a plan may hold.
const MAX_REGISTRATIONS: usize = 4096;

/// Compiles an owner's stages and the registrations at them.
///
/// # Examples
/// ```
/// use serde_json::{Value, json};
/// use tipstaff_core::declare::CallableRef;
/// use tipstaff_core::interception::{Decision, DenialCode, Plan, PlanBuilder, Registration, StageSpec};
///
/// const NO_ROOT: CallableRef = CallableRef::from_static("example::no_root@1");
/// let plan: Plan<Value> = PlanBuilder::new("tools", &[StageSpec::guard("policy"), StageSpec::own_step("perform")])
///     .register(Registration::decide("no-root", "policy", NO_ROOT, |call: &Value, _| {
///         if call["path"] == "/" {
///             Decision::deny(DenialCode::from_static("path.root"), "the root folder is off limits")
///         } else {
///             Decision::proceed()
///         }
///     }))
///     .build()?;
/// assert_eq!(plan.registrations().collect::<Vec<_>>(), ["no-root"]);
/// # Ok::<(), tipstaff_core::interception::PlanError>(())
/// ```
#[derive(Debug)]
#[must_use = "a builder is no plan until `build`"]
pub struct PlanBuilder<C, R = ()> {
    name: Arc<str>,
    stages: Vec<StageSpec>,
    registrations: Vec<Registration<C, R>>,
    unresolved: Option<PlanError>,
    approver: Approver,
    basis: Basis,
}

impl<C, R> PlanBuilder<C, R> {
    /// A plan by name over the stages that its owner declares, in their order. The kernel adds none (I-1).
    pub fn new(name: impl Into<Arc<str>>, owner_stages: &[StageSpec]) -> Self {
        Self {
            name: name.into(),
            stages: owner_stages.to_vec(),
            registrations: Vec::new(),
            unresolved: None,
            approver: Approver::None,
            basis: Basis::Enforced,
        }
    }

    /// Adds a registration.
    pub fn register(mut self, registration: Registration<C, R>) -> Self {
        self.registrations.push(registration);
        self
    }

    /// Adds the declarations of a persisted profile, resolved by what the composition root offers. One that is not resolved fails the build (I-7).
    pub fn resolve(
        mut self,
        profile: impl IntoIterator<Item = Declaration>,
        registry: &CallableRegistry<Evaluator<C, R>>,
    ) -> Self {
        for declaration in profile {
            match declaration.resolve(registry) {
                Ok(registration) => self.registrations.push(registration),
                Err(error) => {
                    self.unresolved.get_or_insert(error);
                }
            }
        }
        self
    }

    /// Says who decides what is left of an ask (I-10). Without it, nobody: an ask denies.
    pub fn approver(mut self, approver: Approver) -> Self {
        self.approver = approver;
        self
    }

    /// Declares that the plan only evaluates (I-22): everybody is asked and reported, nothing is replaced or refused, nobody is asked for an approval,
    /// and the permission says that it rests on nothing.
    pub fn evaluate_only(mut self) -> Self {
        self.basis = Basis::NotEnforced;
        self
    }

    /// Declares that the seam at which the plan stands cannot be enforced (I-21): the plan decides as always, and its decisions are on record as advisory.
    pub fn advisory_seam(mut self) -> Self {
        self.basis = Basis::Advisory;
        self
    }

    /// Compiles the plan.
    ///
    /// # Errors
    /// [`PlanError`], the first one found, naming the thing at fault. Nothing that was accepted is silently never called (I-18).
    pub fn build(self) -> Result<Plan<C, R>, PlanError> {
        let Self { name, stages, registrations, unresolved, approver, basis } = self;
        check_name("plan", &name)?;
        if let Approver::EndsAttempt(approver) = &approver {
            check_name("approver", approver)?;
        }
        bounded(&name, "stages", stages.len(), MAX_STAGES)?;
        bounded(&name, "registrations", registrations.len(), MAX_REGISTRATIONS)?;
        check_stages(&stages)?;
        if let Some(error) = unresolved {
            return Err(error);
        }
        check_registrations(&name, &stages, &registrations)?;
        let (stages, registered, calls) = compile(stages, in_plan_order(registrations)?)?;
        let before = stages.iter().find(|stage| is_result(stage.spec.kind)).map_or(registered.len(), |stage| stage.from);
        let last_transform = stages.iter().rposition(|stage| stage.spec.kind == StageKind::Transform && stage.from < stage.to);
        let digest = digest(&name, basis, &approver, &stages, &registered);
        let shape = Arc::new(Shape { name, digest, basis, approver, stages, registrations: registered, before, last_transform });
        Ok(Plan(Arc::new(Compiled { shape, calls })))
    }
}

fn is_result(kind: StageKind) -> bool {
    matches!(kind, StageKind::Result(_))
}

fn check_name(what: &'static str, name: &str) -> Result<(), PlanError> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control) {
        return Err(PlanError::Name { what, name: name.to_owned() });
    }
    Ok(())
}

fn bounded(plan: &Arc<str>, what: &'static str, count: usize, max: usize) -> Result<(), PlanError> {
    if count > max { Err(PlanError::TooMany { plan: Arc::clone(plan), what, count, max }) } else { Ok(()) }
}

/// Stages keep one order: admission, then what decides, then what judges results; own steps stand anywhere.
fn check_stages(stages: &[StageSpec]) -> Result<(), PlanError> {
    let phase = |kind| match kind {
        StageKind::OwnStep => None,
        StageKind::Admission => Some(0),
        StageKind::Guard | StageKind::Transform | StageKind::Advisory => Some(1),
        StageKind::Result(_) => Some(2),
    };
    let mut names = BTreeSet::new();
    let mut latest: Option<(i32, &StageSpec)> = None;
    for spec in stages {
        let (stage, kind) = (Arc::clone(&spec.name), spec.kind);
        check_name("stage", &stage)?;
        if !names.insert(&spec.name) {
            return Err(PlanError::DuplicateStage { stage });
        }
        if spec.on_failure == OnFailure::Isolate && !matches!(kind, StageKind::Advisory) {
            return Err(PlanError::IsolateWithVeto { stage, kind });
        }
        if spec.stop_ends_stage && kind != StageKind::Guard {
            return Err(PlanError::StopEndsStage { stage, kind });
        }
        if spec.shielded && kind != StageKind::OwnStep {
            return Err(PlanError::Shielded { stage, kind });
        }
        if spec.deadline.is_some_and(|deadline| deadline.is_zero()) {
            return Err(PlanError::ZeroDuration { what: "deadline", name: stage });
        }
        let Some(phase) = phase(kind) else { continue };
        match latest {
            Some((reached, after)) if phase < reached => {
                return Err(PlanError::StageOrder { stage, kind, after: Arc::clone(&after.name) });
            }
            _ => latest = Some((phase, spec)),
        }
    }
    Ok(())
}

fn check_registrations<C, R>(
    plan: &Arc<str>,
    stages: &[StageSpec],
    registrations: &[Registration<C, R>],
) -> Result<(), PlanError> {
    let mut names = BTreeSet::new();
    for registration in registrations {
        let Declaration { name, stage, bound, .. } = &registration.declaration;
        let registration = Arc::clone(name);
        check_name("registration", name)?;
        if !names.insert(name) {
            return Err(PlanError::DuplicateRegistration { plan: Arc::clone(plan), registration });
        }
        let Some(spec) = stages.iter().find(|spec| spec.name == *stage) else {
            return Err(PlanError::UnknownStage { registration, stage: Arc::clone(stage) });
        };
        let stage = Arc::clone(stage);
        if let Some(why) = &spec.unreachable {
            return Err(PlanError::Unreachable { registration, stage, why: Arc::clone(why) });
        }
        if bound.is_some_and(|bound| bound.is_zero()) {
            return Err(PlanError::ZeroDuration { what: "bound", name: registration });
        }
        if spec.kind == StageKind::OwnStep {
            return Err(PlanError::OwnStep { registration, stage });
        }
    }
    Ok(())
}

/// Sorts by (explicit order, composition order); stages are taken apart afterwards.
fn in_plan_order<C, R>(registrations: Vec<Registration<C, R>>) -> Result<Vec<Registration<C, R>>, PlanError> {
    let mut placed: Vec<_> = (0_u32..)
        .zip(registrations)
        .map(|(arrival, registration)| {
            let Declaration { order, composition, .. } = registration.declaration;
            ((order, composition.unwrap_or(arrival)), registration)
        })
        .collect();
    placed.sort_by(|one, other| one.1.declaration.stage.cmp(&other.1.declaration.stage).then_with(|| one.0.cmp(&other.0)));
    for pair in placed.windows(2) {
        let (one, other) = (&pair[0].1.declaration, &pair[1].1.declaration);
        if one.stage == other.stage && pair[0].0 == pair[1].0 {
            let (one, other, stage) = (Arc::clone(&one.name), Arc::clone(&other.name), Arc::clone(&one.stage));
            return Err(PlanError::SamePlace { one, other, stage });
        }
    }
    Ok(placed.into_iter().map(|(_, registration)| registration).collect())
}

type Parts<C, R> = (Vec<Stage>, Vec<Registered>, Vec<Calls<C, R>>);

fn compile<C, R>(specs: Vec<StageSpec>, mut sorted: Vec<Registration<C, R>>) -> Result<Parts<C, R>, PlanError> {
    let (mut stages, mut registered, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for spec in specs {
        let (own, others) = sorted.into_iter().partition(|registration| registration.declaration.stage == spec.name);
        sorted = others;
        let from = registered.len();
        calls.push(code(spec.kind, &mut registered, own)?);
        stages.push(Stage { spec, from, to: registered.len() });
    }
    Ok((stages, registered, calls))
}

/// Takes the code of one stage's registrations apart from their declarations.
fn code<C, R>(kind: StageKind, registered: &mut Vec<Registered>, own: Vec<Registration<C, R>>) -> Result<Calls<C, R>, PlanError> {
    let mut calls = match kind {
        StageKind::OwnStep => Calls::OwnStep,
        StageKind::Admission => Calls::Admission(Vec::new()),
        StageKind::Guard | StageKind::Transform | StageKind::Advisory => Calls::Deciding(Vec::new()),
        StageKind::Result(_) => Calls::Result(Vec::new()),
    };
    for Registration { declaration, evaluator } in own {
        let Declaration { name, stage, callable, order, composition: _, bound } = declaration;
        let verb = evaluator.verb();
        match (&mut calls, evaluator.0) {
            (Calls::Admission(calls), Kind::Admit(call)) => calls.push(call),
            (Calls::Deciding(calls), Kind::Decide(call)) => calls.push(call),
            (Calls::Result(calls), Kind::Result(call)) => calls.push(call),
            _ => return Err(PlanError::WrongEvaluator { registration: name, evaluator: verb, stage, kind }),
        }
        registered.push(Registered { name, stage, order, callable, bound });
    }
    Ok(calls)
}
