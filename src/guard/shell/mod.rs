//! Reads shell text as bash does.
//!
//! | module    | from                             | to                                                     |
//! |-----------|----------------------------------|--------------------------------------------------------|
//! | `parse`   | text                             | the tree of `syntax`, or the place where reading stops |
//! | `syntax`  |                                  | lists, pipelines, commands, words and their parts      |
//! | `field`   |                                  | a word after its expansions, as far as it is known     |
//! | `run`     | a tree                           | every simple command that it may run, with its fields  |
//! | `wrapper` | a program with its fields        | the commands and program texts that it runs            |
//!
//! ## Why a parser of our own?
//!
//! A guard has to answer every text in time and may never look at a wrong tree. Four libraries were measured for it in 2026, on the same lines:
//!
//! | library                | against it                                                                                                  |
//! |------------------------|-------------------------------------------------------------------------------------------------------------|
//! | `brush-parser` 0.4     | time doubles with each open `((`: 8 take 5 ms, 16 over a minute; four constructs hide a program; 71 crates  |
//! | `shuck-parser` 0.2     | 3.9 s for 64 KiB of `()`; three constructs hide a program; needs a newer compiler than the rest of the crate |
//! | `rable` 0.2            | 9.6 s for 300 nested `$(`                                                                                   |
//! | `tree-sitter-bash` 0.25 | refuses 23 of 983 lines that bash takes; needs generated C                                                 |
//!
//! So the text is read here, in one pass with counted levels, and what is not surely read is refused. Nothing needs a stack of its own: full depth
//! fits the 2 MiB that a thread gets by default, in a debug build too.

pub(super) mod field;
pub(super) mod parse;
pub(super) mod run;
pub(super) mod syntax;
pub(super) mod wrapper;
