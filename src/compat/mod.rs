//! Hooks as the original system has them, for those who come from it. Feature `compat`; new code registers interceptors and subscribers instead.
//!
//! Both sorts of hooks are interceptor plans, not fan-out (I-13): they run one after the other, and what they raise reaches whoever runs into them.
//!
//! | profile           | plan                                     | an ordinary failure           | a stop         | a cancellation, or anything fatal |
//! |-------------------|------------------------------------------|-------------------------------|----------------|-----------------------------------|
//! | blocking point    | one guard stage, `stop = ends_stage`     | ends the chain and is raised  | ends the chain | ends the chain and is raised      |
//! | observational point | the same                               | logged, the chain goes on     | ends the chain | ends the chain and is raised      |
//! | service hook      | one handler per hook, [`ServiceHooks`]   | see there                     | a failure      | raised                            |
//!
//! A handler is awaited by what it returns at hook points, and by its declaration in service hooks, as recorded.
//!
//! # What cancelling means here
//! [`CancelHandle::cancel`] is an edge: it reaches the handler that is in flight, whose own end then counts, and nobody who starts after it. A handler
//! that has not ended within [`GRACE`] is dropped. Dropping the future of an emission is hard, as everywhere (F-12).
//!
//! # What differs from the original
//! A declared sync handler runs on the task of its emission, not on a worker thread: one that blocks holds that thread, and no deadline can end it.

mod edge;
mod event;
mod hook;
mod points;
mod policy;
mod run;
mod service;
mod stream;

pub use edge::CancelHandle;
pub use event::{HookEvent, HookResponse, HookStatus, HookedAnswer, HookedEnd};
pub use hook::{Hook, HookCanceller, HookError, HookReturn, HookReturned};
pub use points::{HookEmission, HookEmitted, HookEnd, HookPoints, HookRegistered, Isolated};
pub use policy::{HookFailure, HookPolicy, StopMeans};
pub use run::GRACE;
pub use service::{DEFAULT_HOOK_DEADLINE, HookedCall, HookedEvent, HookedRequest, ServiceHook, ServiceHooks};
pub use stream::{HookedChunks, HookedStream};

pub use crate::signal::legacy::{HookPoint, HookRecord};
