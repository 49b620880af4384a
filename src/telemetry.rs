//! Names of what the program says about itself: the targets of `tracing` events, and the page of all events.
//!
//! Payloads and arguments are never recorded; identifiers are fields, never parts of a name. Counters are read through the API: ports
//! (`Runtime::ports`), losses (`Runtime::losses`, `Session::losses`), undelivered emissions (`Session::undelivered`), dispatchers
//! (`Dispatcher::counts`, `Dispatcher::discarding`), supervision (`Runtime::status`).
//!
//! | target                     | level | event                                                              | fields                                  |
//! |----------------------------|-------|--------------------------------------------------------------------|-----------------------------------------|
//! | `tipstaff::operation`      | error | a second end of one attempt was refused (I-19)                     | `refused`                               |
//! | `tipstaff::operation`      | warn  | a teardown did not finish (I-4)                                    | `ending`, `end`                         |
//! | `tipstaff::operation`      | warn  | the source of a stream panicked while it was dropped               | `panic`                                 |
//! | `tipstaff::compat`         | error | a handler of an observational hook point failed                    | `point`, `hook`, `code`                 |
//! | `tipstaff::compat`         | warn  | a hook of a stream or of a chunk did not return; the data stands   | `hook`, `error`                         |
//! | `tipstaff::authorization`  | error | a proposal's task, or what was left of an attempt, broke off       | `owner`, `error`                        |
//! | `tipstaff::authorization`  | debug | an owner was not stopped in time                                   | `error`                                 |
//! | `tipstaff::authorization`  | trace | a permit was completed                                             | `owner`, `attempt`, `status`            |
//! | `tipstaff::interception`   | warn  | an interceptor failed and its stage isolates that (I-3)            | `plan`, `stage`, `registration`, `reason` |
//! | `tipstaff::interception`   | warn  | an interceptor panicked while its future was dropped               |                                         |
//! | `tipstaff::dispatch`       | warn  | a subscriber failed; others are not touched                        | `registration`, `code`                  |
//! | `tipstaff::dispatch`       | warn  | a condition failed; its subscriber was not called                  | `registration`, `code`                  |
//! | `tipstaff::dispatch`       | warn  | a subscriber failed beside a refusal of the store, which is raised instead | `registration`, `code`          |
//! | `tipstaff::dispatch`       | warn  | the budget of an emission was spent, where its profile logs that   |                                         |
//! | `tipstaff::dispatch`       | info  | a returned awaitable was discarded or dropped unawaited            | `registration`                          |
//! | `tipstaff::observation`    | debug | a session's observer was not stopped in time                       | `error`                                 |
//! | `tipstaff::journal`        | warn  | a fact is lost                                                     | `session`, `kind`, `reason`             |
//! | `tipstaff::journal`        | warn  | a group was not committed and is written once more                 | `error`                                 |
//! | `tipstaff::journal`        | error | the store refuses writes                                           | `reason`                                |
//! | `tipstaff::journal`        | info  | the store takes writes again                                       |                                         |
//! | `tipstaff::journal`        | error | the queue was not written within the time of an orderly stop       |                                         |
//! | `tipstaff::journal`        | warn  | the record of this instance was not closed                         | `error`                                 |
//! | `tipstaff::journal`        | debug | recovery closed what dead instances left open (P-9)                | `recovered`                             |
//! | `tipstaff::journal`        | debug | upkeep failed and is tried again                                   | `what`, `error`                         |
//! | `tipstaff::port`           | warn  | a wait on a port is long; both ends are named                      | `port`, `waiter`, `waited`              |
//! | `tipstaff::port`           | error | a handler would wait for its own port; refused at once             | `port`, `what`                          |
//! | `tipstaff::port`           | error | messages with a key are set aside as poison                        | `port`, `key`                           |
//! | `tipstaff::supervision`    | debug | a child started, ended in order, stopped or finished               | `supervisor`, `child`, `id`, ...        |
//! | `tipstaff::supervision`    | warn  | a child ended abnormally                                           | `supervisor`, `child`, `id`, `end`      |
//! | `tipstaff::supervision`    | info  | a child backs off, or has recovered                                | `supervisor`, `child`, `id`, ...        |
//! | `tipstaff::supervision`    | error | a child is degraded, has spent its budget, or does not end         | `supervisor`, `child`, `id`, ...        |

/// Operations and their status.
pub const OPERATION: &str = "tipstaff::operation";
/// Hooks of the original system (feature `compat`).
pub const COMPAT: &str = "tipstaff::compat";
/// The authorization actors.
pub const AUTHORIZATION: &str = "tipstaff::authorization";
/// The interception kernel.
pub const INTERCEPTION: &str = "tipstaff::interception";
/// The fan-out kernel.
pub const DISPATCH: &str = "tipstaff::dispatch";
/// The observation actors.
pub const OBSERVATION: &str = "tipstaff::observation";
/// The journal's writer.
pub const JOURNAL: &str = "tipstaff::journal";
/// Bounded ports.
pub const PORT: &str = "tipstaff::port";
/// Supervisors.
pub const SUPERVISION: &str = "tipstaff::supervision";
