//! The recorded behaviour of the original system, replayed against the real dispatchers.
//!
//! The runner reads every file of a folder, builds the handlers that a scenario describes, takes the named profile, emits, and compares the trace by the
//! README's rules. It holds no policy, retries nothing, and knows no scenario by its name.
//!
//! | file | holds |
//! |------|-------|
//! | `scenario` | the files, strictly |
//! | `script`, `world` | handlers as data, and what they share |
//! | `run` | one scenario |
//! | `compare`, `deviations` | the comparison, and where ours differs on purpose, by rule |
//! | `drivers` | one file a mechanism: handlers, constructor, emission, facts |

mod compare;
mod corpus;
mod deviations;
mod drivers;
mod matrix;
mod run;
mod scenario;
mod script;
mod summary;
mod warnings;
mod world;
