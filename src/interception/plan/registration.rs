//! Registrations: one interceptor at one stage.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::declare::{CallableRef, CallableRegistry};
use crate::interception::answer::{Admission, IntoAnswer, ResultDecision, Turn};
use crate::interception::decision::Decision;
use crate::interception::error::PlanError;
use crate::interception::evaluator::Evaluator;

/// One interceptor at one stage of a plan: a declaration and the code behind it.
pub struct Registration<C, R = ()> {
    pub(super) declaration: Declaration,
    pub(super) evaluator: Evaluator<C, R>,
}

/// A registration as data: what a persisted profile stores (I-7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    /// The name, unique in its plan.
    pub name: Arc<str>,
    /// The stage, by the name that the owner declares.
    pub stage: Arc<str>,
    /// The durable name of the code.
    pub callable: CallableRef,
    /// The explicit order inside the stage: smaller comes first.
    #[serde(default)]
    pub order: i32,
    /// The place among registrations of the same stage and order; without it, the place of arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub composition: Option<u32>,
    /// The registration's own bound inside the stage's deadline (I-3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Duration>,
}

impl Declaration {
    /// A declaration with order 0, at the place of its arrival, without a bound of its own.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, stage: impl Into<Arc<str>>, callable: CallableRef) -> Self {
        Self { name: name.into(), stage: stage.into(), callable, order: 0, composition: None, bound: None }
    }

    /// The registration, with the code that a registry holds for the reference.
    ///
    /// # Errors
    /// [`PlanError::Unresolved`] when the registry does not hold it: a guard that is declared is in force, or there is no plan (S22).
    pub fn resolve<C, R>(self, registry: &CallableRegistry<Evaluator<C, R>>) -> Result<Registration<C, R>, PlanError> {
        match registry.resolve(&self.callable) {
            Some(evaluator) => Ok(Registration { evaluator: evaluator.clone(), declaration: self }),
            None => Err(PlanError::Unresolved { registration: self.name, callable: self.callable }),
        }
    }
}

impl<C, R> Registration<C, R> {
    /// A registration of a declaration and its code.
    #[must_use]
    pub fn new(declaration: Declaration, evaluator: Evaluator<C, R>) -> Self {
        Self { declaration, evaluator }
    }

    /// Sets the explicit order inside the stage: smaller comes first. Without it, 0.
    #[must_use]
    pub fn order(mut self, order: i32) -> Self {
        self.declaration.order = order;
        self
    }

    /// Sets the place among registrations of the same stage and order, for compositions whose parts arrive in any order. Without it, the place of
    /// arrival.
    #[must_use]
    pub fn composed_at(mut self, place: u32) -> Self {
        self.declaration.composition = Some(place);
        self
    }

    /// Sets a bound of its own, inside the stage's deadline (I-3).
    #[must_use]
    pub fn bound(mut self, bound: Duration) -> Self {
        self.declaration.bound = Some(bound);
        self
    }

    /// The declaration.
    #[must_use]
    pub const fn declaration(&self) -> &Declaration {
        &self.declaration
    }
}

impl<C: 'static, R: 'static> Registration<C, R> {
    /// One that decides at once: see [`Evaluator::decide`].
    pub fn decide<A: IntoAnswer<Decision<C>>>(
        name: impl Into<Arc<str>>,
        stage: impl Into<Arc<str>>,
        callable: CallableRef,
        decide: impl Fn(&C, &Turn) -> A + Send + Sync + 'static,
    ) -> Self {
        Self::new(Declaration::new(name, stage, callable), Evaluator::decide(decide))
    }

    /// One that decides by a future: see [`Evaluator::decide_async`].
    pub fn decide_async<A, F>(
        name: impl Into<Arc<str>>,
        stage: impl Into<Arc<str>>,
        callable: CallableRef,
        decide: impl Fn(Arc<C>, Turn) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: IntoAnswer<Decision<C>>,
        F: Future<Output = A> + Send + 'static,
    {
        Self::new(Declaration::new(name, stage, callable), Evaluator::decide_async(decide))
    }

    /// One that admits or defers at once: see [`Evaluator::admit`].
    pub fn admit<A: IntoAnswer<Admission>>(
        name: impl Into<Arc<str>>,
        stage: impl Into<Arc<str>>,
        callable: CallableRef,
        admit: impl Fn(&C, &Turn) -> A + Send + Sync + 'static,
    ) -> Self {
        Self::new(Declaration::new(name, stage, callable), Evaluator::admit(admit))
    }

    /// One that admits or defers by a future: see [`Evaluator::admit_async`].
    pub fn admit_async<A, F>(
        name: impl Into<Arc<str>>,
        stage: impl Into<Arc<str>>,
        callable: CallableRef,
        admit: impl Fn(Arc<C>, Turn) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: IntoAnswer<Admission>,
        F: Future<Output = A> + Send + 'static,
    {
        Self::new(Declaration::new(name, stage, callable), Evaluator::admit_async(admit))
    }

    /// One that judges a result at once: see [`Evaluator::on_result`].
    pub fn on_result<A: IntoAnswer<ResultDecision<R>>>(
        name: impl Into<Arc<str>>,
        stage: impl Into<Arc<str>>,
        callable: CallableRef,
        judge: impl Fn(&C, &R, &Turn) -> A + Send + Sync + 'static,
    ) -> Self {
        Self::new(Declaration::new(name, stage, callable), Evaluator::on_result(judge))
    }

    /// One that judges a result by a future: see [`Evaluator::on_result_async`].
    pub fn on_result_async<A, F>(
        name: impl Into<Arc<str>>,
        stage: impl Into<Arc<str>>,
        callable: CallableRef,
        judge: impl Fn(Arc<C>, Arc<R>, Turn) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: IntoAnswer<ResultDecision<R>>,
        F: Future<Output = A> + Send + 'static,
    {
        Self::new(Declaration::new(name, stage, callable), Evaluator::on_result_async(judge))
    }
}

impl<C, R> std::fmt::Debug for Registration<C, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.declaration.fmt(f)
    }
}
