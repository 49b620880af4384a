//! Evaluators: the code behind a registration.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::answer::{Admission, IntoAnswer, ResultDecision, Turn};
use super::decision::Decision;
use super::error::InterceptError;

/// The code behind a registration: a plain closure, or one that returns a future. Cheap to clone.
///
/// There is one pair of constructors per kind of answer, so that an interceptor cannot give an answer of another kind. A plain closure is called
/// without any allocation; use it for whatever only computes.
///
/// # Cancel safety
/// A future is dropped when its bound has passed or when the proposal is dropped (I-4). It must be correct when dropped at any await.
pub struct Evaluator<C, R = ()>(pub(super) Kind<C, R>);

pub(super) enum Kind<C, R> {
    Admit(AdmitCall<C>),
    Decide(DecideCall<C>),
    Result(ResultCall<C, R>),
}

/// A plain closure, or one that returns a future.
pub(super) enum Call<P: ?Sized, F: ?Sized> {
    Plain(Arc<P>),
    Future(Arc<F>),
}

type Answered<A> = Result<A, InterceptError>;
type Plain<C, A> = dyn Fn(&C, &Turn) -> Answered<A> + Send + Sync;
type Future<C, A> = dyn Fn(Arc<C>, Turn) -> BoxFuture<'static, Answered<A>> + Send + Sync;
type PlainOn<C, R> = dyn Fn(&C, &R, &Turn) -> Answered<ResultDecision<R>> + Send + Sync;
type FutureOn<C, R> = dyn Fn(Arc<C>, Arc<R>, Turn) -> BoxFuture<'static, Answered<ResultDecision<R>>> + Send + Sync;

pub(super) type AdmitCall<C> = Call<Plain<C, Admission>, Future<C, Admission>>;
pub(super) type DecidePlain<C> = Plain<C, Decision<C>>;
pub(super) type DecideFuture<C> = Future<C, Decision<C>>;
pub(super) type DecideCall<C> = Call<DecidePlain<C>, DecideFuture<C>>;
pub(super) type ResultCall<C, R> = Call<PlainOn<C, R>, FutureOn<C, R>>;

impl<C: 'static, R: 'static> Evaluator<C, R> {
    /// Decides at once: for guard, transform and advisory stages.
    pub fn decide<A: IntoAnswer<Decision<C>>>(decide: impl Fn(&C, &Turn) -> A + Send + Sync + 'static) -> Self {
        Self(Kind::Decide(Call::Plain(Arc::new(move |context, turn| decide(context, turn).into_answer()))))
    }

    /// Decides by a future: for guard, transform and advisory stages.
    pub fn decide_async<A, F>(decide: impl Fn(Arc<C>, Turn) -> F + Send + Sync + 'static) -> Self
    where
        A: IntoAnswer<Decision<C>>,
        F: std::future::Future<Output = A> + Send + 'static,
    {
        Self(Kind::Decide(Call::Future(Arc::new(move |context, turn| {
            let answer = decide(context, turn);
            Box::pin(async move { answer.await.into_answer() })
        }))))
    }

    /// Admits or defers at once.
    pub fn admit<A: IntoAnswer<Admission>>(admit: impl Fn(&C, &Turn) -> A + Send + Sync + 'static) -> Self {
        Self(Kind::Admit(Call::Plain(Arc::new(move |context, turn| admit(context, turn).into_answer()))))
    }

    /// Admits or defers by a future.
    pub fn admit_async<A, F>(admit: impl Fn(Arc<C>, Turn) -> F + Send + Sync + 'static) -> Self
    where
        A: IntoAnswer<Admission>,
        F: std::future::Future<Output = A> + Send + 'static,
    {
        Self(Kind::Admit(Call::Future(Arc::new(move |context, turn| {
            let answer = admit(context, turn);
            Box::pin(async move { answer.await.into_answer() })
        }))))
    }

    /// Judges a result at once. It sees the performed context and the result.
    pub fn on_result<A>(judge: impl Fn(&C, &R, &Turn) -> A + Send + Sync + 'static) -> Self
    where
        A: IntoAnswer<ResultDecision<R>>,
    {
        Self(Kind::Result(Call::Plain(Arc::new(move |context, result, turn| judge(context, result, turn).into_answer()))))
    }

    /// Judges a result by a future. It sees the performed context and the result.
    pub fn on_result_async<A, F>(judge: impl Fn(Arc<C>, Arc<R>, Turn) -> F + Send + Sync + 'static) -> Self
    where
        A: IntoAnswer<ResultDecision<R>>,
        F: std::future::Future<Output = A> + Send + 'static,
    {
        Self(Kind::Result(Call::Future(Arc::new(move |context, result, turn| {
            let answer = judge(context, result, turn);
            Box::pin(async move { answer.await.into_answer() })
        }))))
    }
}

impl<C, R> Evaluator<C, R> {
    /// What it does, for messages.
    pub(super) const fn verb(&self) -> &'static str {
        match self.0 {
            Kind::Admit(_) => "admits or defers",
            Kind::Decide(_) => "decides",
            Kind::Result(_) => "judges results",
        }
    }
}

impl<P: ?Sized, F: ?Sized> Clone for Call<P, F> {
    fn clone(&self) -> Self {
        match self {
            Self::Plain(call) => Self::Plain(Arc::clone(call)),
            Self::Future(call) => Self::Future(Arc::clone(call)),
        }
    }
}

impl<C, R> Clone for Evaluator<C, R> {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Kind::Admit(call) => Kind::Admit(call.clone()),
            Kind::Decide(call) => Kind::Decide(call.clone()),
            Kind::Result(call) => Kind::Result(call.clone()),
        })
    }
}

impl<C, R> fmt::Debug for Evaluator<C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Evaluator({})", self.verb())
    }
}
