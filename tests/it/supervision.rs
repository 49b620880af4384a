//! Supervision, end to end: what crashes, what goes on meanwhile, and what is on record afterwards (P-8 to P-10, P-14; spec 2 "As actors").

mod authorizer;
mod hosts;
mod journal;
mod observers;
mod restarts;
mod world;
