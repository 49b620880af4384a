//! The fan-out kernel under policies other than `observation`: what each value does, shown on emissions.

mod cancellation;
mod deadlines;
mod depth;
mod detached;
mod diagnostics;
mod order;
mod ordered;
mod predicates;
mod raised;
mod support;
mod sync_entry;
mod threads;
