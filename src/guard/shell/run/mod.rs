//! What a text may run: every simple command with its fields, where unknown text would run, and what text moves into shells.
//!
//! | in the tree                                  | what is taken to run                                                                |
//! |----------------------------------------------|-------------------------------------------------------------------------------------|
//! | lists, pipelines, subshells, groups          | every command of them                                                               |
//! | `&&`, `\|\|`, `if`, `case`, `while`          | every branch, whatever the condition says                                           |
//! | `for` over known words                       | the body once for each, while they are few                                          |
//! | functions                                    | the body at each call; without a call once, with unknown words                      |
//! | substitutions, here-documents, redirections  | what stands in them; a known output becomes text of the line                        |
//! | `sh -c`, `eval`, wrappers (see `wrapper`)    | the command or text that they run, with the folder and input that it has            |
//!
//! Everything is an over-approximation: a command that is listed may not run, one that is not listed does not. Where that cannot be held, an
//! [`Unclear`] says so. Steps, depth and sizes are bounded; at a bound the rest is unclear.

mod braces;
mod builtins;
mod commands;
mod expand;
mod invoke;
pub(super) mod origin;
mod output;
mod state;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::collections::HashSet;
use std::rc::Rc;

use super::field::Field;
use super::parse::{MAX_DEPTH, parse};
use super::syntax::{Base, Parsed, Span, Why};
use origin::Origins;
use state::{Function, Shell};
use stream::Stream;

/// The most unclear places that are told.
const MAX_UNCLEAR: usize = 64;

/// Steps for any text, and more for each of its bytes. A step is a small bounded amount of work.
const STEPS: usize = 4_096;
const STEPS_PER_BYTE: usize = 2;

/// A simple command that may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::guard) struct Invocation {
    /// The program and its words. Of the program at least the base name is known.
    pub(in crate::guard) fields: Vec<Field>,
    /// The absolute folder in which it runs, if it is known.
    pub(in crate::guard) folder: Option<Rc<str>>,
    /// What it reads.
    pub(in crate::guard) input: Rc<Stream>,
    /// It is a known wrapper or a function of the text: what it runs is listed by itself.
    pub(in crate::guard) wrapper: bool,
    /// It runs where no path means what it means here.
    pub(in crate::guard) elsewhere: bool,
}

/// Something may run here that the text does not tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::guard) struct Unclear {
    pub(in crate::guard) at: Span,
    pub(in crate::guard) why: Cause,
}

/// Why it is not told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::guard) enum Cause {
    /// The text could not be read.
    Unread(Why),
    /// The program's name is not known.
    Program,
    /// This program or builtin runs text, words or input that are not known.
    Runs(String),
    /// This name changes what other words mean.
    Changes(String),
    /// There is more to follow than is followed.
    TooMuch,
}

/// Text is run as a shell's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::guard) struct Flow {
    /// Whose output it holds.
    pub(in crate::guard) from: Origins,
    /// The program or builtin that runs it.
    pub(in crate::guard) to: String,
    pub(in crate::guard) at: Span,
}

/// All that a text may run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::guard) struct Trace {
    pub(in crate::guard) invocations: Vec<Invocation>,
    pub(in crate::guard) unclear: Vec<Unclear>,
    pub(in crate::guard) flows: Vec<Flow>,
}

/// Follows a line that starts in a folder.
pub(in crate::guard) fn line(text: &str, folder: Option<&str>) -> Trace {
    let mut runner = Runner::new(text);
    let mut shell = Shell::new(folder);
    let parsed = parse(text, Base::At(0), 0);
    runner.text(&parsed, &mut shell);
    runner.finish(&mut shell)
}

/// Follows one command whose words no shell reads.
pub(in crate::guard) fn words(words: Vec<Field>, folder: Option<&str>) -> Trace {
    let length: usize = words.iter().map(|word| word.text.len()).sum();
    let mut runner = Runner { steps: STEPS + STEPS_PER_BYTE * length, ..Runner::new("") };
    let mut shell = Shell::new(folder);
    runner.invoke(invoke::Call::new(words), &mut shell);
    runner.finish(&mut shell)
}

/// Follows one line.
struct Runner<'s> {
    /// The outermost text.
    source: &'s str,
    trace: Trace,
    steps: usize,
    depth: usize,
    /// What was written where within the line; by absolute path.
    files: HashMap<String, Stream>,
    /// How many pipes were made into files.
    pipes: usize,
    called: HashSet<Span>,
    defined: Vec<Rc<Function>>,
    /// A quoted text holds a subscript with a substitution, which some builtins evaluate.
    holds_subscript: Option<Span>,
    /// Something evaluates names of variables.
    evaluates: bool,
}

impl<'s> Runner<'s> {
    fn new(source: &'s str) -> Self {
        Self {
            source,
            trace: Trace::default(),
            steps: STEPS + STEPS_PER_BYTE * source.len(),
            depth: 0,
            files: HashMap::new(),
            pipes: 0,
            called: HashSet::new(),
            defined: Vec::new(),
            holds_subscript: None,
            evaluates: false,
        }
    }

    /// Runs a text that was read, as far as it was.
    fn text(&mut self, parsed: &Parsed, shell: &mut Shell) -> Stream {
        let output = self.list(&parsed.list, shell);
        if let Some(refused) = &parsed.refused {
            self.unclear(&refused.at, Cause::Unread(refused.why));
        }
        output
    }

    /// What is left to look at after the last command.
    fn finish(mut self, shell: &mut Shell) -> Trace {
        // A function that nothing calls by its name may be called by the shell or through an alias.
        let mut next = 0;
        while let Some(function) = self.defined.get(next).map(Rc::clone) {
            next += 1;
            if self.called.insert(function.at.clone()) {
                let moment = shell.now();
                shell.positional = None;
                self.command(&function.body, shell);
                shell.back_to(&moment);
            }
        }
        if let Some(at) = self.holds_subscript.take().filter(|_| self.evaluates) {
            self.unclear(&at, Cause::Runs("a subscript".to_owned()));
        }
        self.trace
    }

    /// Takes steps. False when there are none left, which is said once.
    fn step(&mut self, steps: usize, at: &Span) -> bool {
        match self.steps.checked_sub(steps) {
            Some(left) => {
                self.steps = left;
                true
            }
            None => {
                if self.steps > 0 || self.trace.unclear.is_empty() {
                    self.steps = 0;
                    self.unclear(at, Cause::TooMuch);
                }
                false
            }
        }
    }

    /// Does something one level deeper, if there is one.
    fn deeper<T: Default>(&mut self, at: &Span, inside: impl FnOnce(&mut Self) -> T) -> T {
        if self.depth >= MAX_DEPTH {
            self.unclear(at, Cause::Unread(Why::TooDeep));
            return T::default();
        }
        self.depth += 1;
        let done = inside(self);
        self.depth -= 1;
        done
    }

    fn unclear(&mut self, at: &Span, why: Cause) {
        let unclear = Unclear { at: at.clone(), why };
        // One is enough to ask; some more say where to look.
        if self.trace.unclear.len() < MAX_UNCLEAR && !self.trace.unclear.contains(&unclear) {
            self.trace.unclear.push(unclear);
        }
    }
}
