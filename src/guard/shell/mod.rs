//! Reads shell text as bash does.
//!
//! | module    | from                             | to                                                     |
//! |-----------|----------------------------------|--------------------------------------------------------|
//! | `parse`   | text                             | the tree of `syntax`, or the place where reading stops |
//! | `syntax`  |                                  | lists, pipelines, commands, words and their parts      |
//! | `field`   |                                  | a word after its expansions, as far as it is known     |
//! | `run`     | a tree                           | every simple command that it may run, with its fields  |
//! | `wrapper` | a program with its fields        | the commands and program texts that it runs            |

pub(super) mod field;
pub(super) mod parse;
pub(super) mod run;
pub(super) mod syntax;
pub(super) mod wrapper;
