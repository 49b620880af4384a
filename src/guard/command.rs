//! Whether a command guard matches a line.
//!
//! | part of the guard    | certain                                  | may be                                                                   |
//! |----------------------|------------------------------------------|--------------------------------------------------------------------------|
//! | `program`            | the base name                            | a relative path, another case; a command that could run the program      |
//! | `subcommand`         | the first word that is no option         | a value of an unknown option stands before it; an alias of the user      |
//! | `options`, `words`   | one of them is given                     | the options of the program are unknown; a setting on the line may add it |
//! | `options_all`        | one of each group is given               | as above                                                                 |
//! | `operands`           | one resolves outside                     | the folder is unknown or was changed on the line                         |
//! | `flow`               | never: flows are not followed            | one of its programs appears                                              |
//!
//! A guard matches with the least certain of its parts. Over the commands of a line, the most certain match counts.

use std::fmt;
use std::ops::Range;

use super::grammar::{self, CHANGES_FOLDER, GIT_DATA, GIT_OTHER, Program};
use super::options::{self, Holds};
use super::paths::{self, Folders};
use super::programs::{self, Conduct};
use super::rule::CommandRule;
use super::words::{Construct, SimpleCommand, Word};

/// The commands of a line, with what is asked of each by several guards.
#[derive(Debug)]
pub(super) struct Line<'a> {
    commands: Vec<Judged<'a>>,
}

#[derive(Debug)]
struct Judged<'a> {
    command: SimpleCommand<'a>,
    conduct: Conduct,
    /// Every command of its pipeline takes words and input as data.
    data: bool,
    /// An earlier command may have changed the folder.
    moved: bool,
}

/// A match, certain or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The word that it hangs on.
    pub(super) span: Range<usize>,
    /// The program word of the command.
    pub(super) program: Range<usize>,
    /// Why it is not certain; nothing when it is.
    pub(super) doubt: Option<Doubt>,
}

/// Why a call may match a guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Doubt {
    /// The line is more than literal words.
    NotLiteral(Construct),
    /// The input is not of a known form.
    Input(&'static str),
    /// A program word that may be the guarded program.
    Program(String),
    /// A word that may be the guarded subcommand.
    Subcommand(String),
    /// A word that may be or hold a guarded option.
    Option(String),
    /// A setting on the line may do what a guarded option does.
    Setting,
    /// An operand or path that may be outside.
    Folder(String),
    /// A program that runs text.
    Runs(String),
    /// A program (first) of which the words name the guarded one (second), so that it may run.
    Names(String, String),
    /// A program whose text may flow on, or that may run such text.
    Flow(String),
    /// A word that cannot be replaced exactly.
    Rebuild,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLiteral(what) => write!(f, "the line holds {what}, so that its text does not say what runs"),
            Self::Input(why) => f.write_str(why),
            Self::Program(word) => write!(f, "{word:?} may be the guarded program"),
            Self::Subcommand(word) => write!(f, "{word:?} may be or hide the guarded subcommand"),
            Self::Option(word) => write!(f, "{word:?} may be or hold a guarded option"),
            Self::Setting => f.write_str("a setting on the line may do what the guard is for"),
            Self::Folder(path) => write!(f, "where {path:?} is cannot be told"),
            Self::Runs(word) => write!(f, "{word:?} runs what its words, its input or a file say"),
            Self::Names(word, name) => write!(f, "the words of {word:?} name {name:?}, and something may run them"),
            Self::Flow(word) => write!(f, "{word:?} appears, and where its text comes from or goes to is not followed"),
            Self::Rebuild => f.write_str("the program word is quoted or a path, so that it cannot be replaced exactly"),
        }
    }
}

impl<'a> Line<'a> {
    /// Looks at each command once.
    pub(super) fn new(commands: Vec<SimpleCommand<'a>>) -> Self {
        let mut moved = false;
        let mut judged: Vec<Judged<'a>> = Vec::with_capacity(commands.len());
        for command in commands {
            let (conduct, before) = (programs::conduct(&command), moved);
            moved |= CHANGES_FOLDER.contains(&command.program().text.as_ref());
            judged.push(Judged { command, conduct, data: conduct == Conduct::Data, moved: before });
        }
        for pipeline in judged.chunk_by_mut(|one, next| one.command.pipeline == next.command.pipeline) {
            let data = pipeline.iter().all(|judged| judged.data);
            pipeline.iter_mut().for_each(|judged| judged.data = data);
        }
        Self { commands: judged }
    }

    /// Every match of a command rule, in the order of the line.
    pub(super) fn matches<'l>(&'l self, rule: &'l CommandRule, folders: Folders<'l>) -> impl Iterator<Item = Found> + 'l {
        self.commands.iter().filter_map(move |judged| {
            matched(rule, judged, folders).or_else(|| judged.could_run(std::iter::once(rule.program.as_str())))
        })
    }

    /// Every command that has to do with the programs of a flow, in the order of the line.
    pub(super) fn flows<'l>(&'l self, from: &'l [String], to: &'l [String]) -> impl Iterator<Item = Found> + 'l {
        self.commands.iter().filter_map(move |judged| {
            let program = judged.command.program();
            let names = from.iter().chain(to).map(String::as_str);
            if names.clone().any(|name| programs::is_program(&program.text, name) != Holds::No) {
                return Some(judged.doubtful(program, Doubt::Flow(program.text.to_string())));
            }
            judged.could_run(names)
        })
    }
}

impl Judged<'_> {
    /// Whether this command, though it is another, could run one of some programs.
    fn could_run<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Option<Found> {
        let program = self.command.program();
        if self.conduct == Conduct::Opaque {
            return Some(self.doubtful(program, Doubt::Runs(program.text.to_string())));
        }
        if self.data {
            return None;
        }
        let arguments = self.command.arguments();
        let named =
            names.into_iter().find_map(|name| Some((arguments.iter().find(|word| programs::mentions(&word.text, name))?, name)));
        if let Some((word, name)) = named {
            return Some(self.doubtful(word, Doubt::Names(program.text.to_string(), name.to_owned())));
        }
        let runner = arguments.iter().find(|word| self.conduct != Conduct::Data && programs::mentions_runner(&word.text))?;
        Some(self.doubtful(runner, Doubt::Runs(runner.text.to_string())))
    }

    fn doubtful(&self, word: &Word<'_>, doubt: Doubt) -> Found {
        Found { span: word.span.clone(), program: self.command.program().span.clone(), doubt: Some(doubt) }
    }
}

/// One part of a rule on one command: how far it holds, on which word, and why not certainly.
struct Part<'w> {
    holds: Holds,
    word: &'w Word<'w>,
    doubt: fn(String) -> Doubt,
}

/// The match of a rule with one command.
fn matched(rule: &CommandRule, judged: &Judged<'_>, folders: Folders<'_>) -> Option<Found> {
    let (program, arguments) = (judged.command.program(), judged.command.arguments());
    let is_program = programs::is_program(&program.text, &rule.program);
    if is_program == Holds::No {
        return None;
    }
    let grammar = grammar::program(&rule.program);
    let mut parts = vec![Part { holds: is_program, word: program, doubt: Doubt::Program }];

    let (mut from, mut options, mut set) = (0, grammar.and_then(|grammar| grammar.options_of("")), false);
    if !rule.subcommand.is_empty() {
        let found = options::subcommand(grammar, arguments)?;
        let word = &arguments[found.at];
        let name = first_name(grammar, &word.text);
        let listed = |word: &str| rule.subcommand.iter().any(|listed| first_name(grammar, listed) == first_name(grammar, word));
        let rest = &arguments[found.at + 1..];
        let holds = match (listed(&word.text), found.certain) {
            (true, true) => Holds::Yes,
            (true, false) => Holds::Maybe,
            (false, _) if may_be_alias(grammar, &word.text) => Holds::Maybe,
            (false, false) if rest.iter().any(|word| listed(&word.text)) => Holds::Maybe,
            (false, _) => Holds::No,
        };
        let part = Part { holds, word, doubt: Doubt::Subcommand };
        match part.holds {
            Holds::No => return None,
            // What an alias stands for has options of its own: the other parts cannot clear it.
            Holds::Maybe => return Some(found_at(&part, program)),
            Holds::Yes => parts.push(part),
        }
        (from, options) = (found.at + 1, grammar.and_then(|grammar| grammar.options_of(name)));
        set = grammar.is_some_and(|grammar| {
            arguments[..found.at]
                .iter()
                .any(|word| grammar.global_settings.iter().any(|option| options::names(&word.text, option)))
        });
    }

    let sorted = options::sort(options, arguments, from);
    let option = |option: &String| {
        let (holds, at) = sorted.has(option);
        Part { holds, word: at.map_or(program, |at| &arguments[at]), doubt: Doubt::Option }
    };
    if !rule.options.is_empty() || !rule.words.is_empty() {
        let given = sorted.words.iter().map(|at| &arguments[*at]);
        let word = given.filter(|word| rule.words.iter().any(|pattern| options::glob(pattern, &word.text))).map(|word| Part {
            holds: Holds::Yes,
            word,
            doubt: Doubt::Option,
        });
        parts.push(most(rule.options.iter().map(option).chain(word), program));
    }
    for group in &rule.options_all {
        parts.push(most(group.iter().map(option), program));
    }
    if let Some(places) = &rule.outside {
        let current = if judged.moved { None } else { folders.current };
        let operand = |(at, certain): &(usize, bool)| {
            let word = &arguments[*at];
            let outside = paths::outside(places, &word.text, Folders { current, ..folders });
            Part { holds: if *certain { outside } else { outside.min(Holds::Maybe) }, word, doubt: Doubt::Folder }
        };
        parts.push(most(sorted.operands.iter().map(operand), program));
    }
    match strongest(parts) {
        Some(part) => Some(found_at(&part, program)),
        None if set => Some(judged.doubtful(program, Doubt::Setting)),
        None => None,
    }
}

/// The name that a subcommand's other names stand for.
fn first_name<'n>(grammar: Option<&Program>, name: &'n str) -> &'n str {
    grammar.map_or(name, |grammar| grammar.unaliased(name))
}

/// Whether a subcommand is none of the program's own, so that the settings of a user may say what it is.
fn may_be_alias(grammar: Option<&Program>, name: &str) -> bool {
    grammar.is_some_and(|grammar| grammar.user_aliases && !GIT_DATA.contains(&name) && !GIT_OTHER.contains(&name))
}

/// The part that holds most; with none, one that does not hold.
fn most<'w>(parts: impl Iterator<Item = Part<'w>>, program: &'w Word<'w>) -> Part<'w> {
    let none = Part { holds: Holds::No, word: program, doubt: Doubt::Program };
    parts.fold(none, |best, part| if part.holds > best.holds { part } else { best })
}

/// The part that a match hangs on, if every part holds: the first doubtful one, else the last.
fn strongest(mut parts: Vec<Part<'_>>) -> Option<Part<'_>> {
    let least = parts.iter().map(|part| part.holds).min()?;
    match least {
        Holds::No => None,
        Holds::Maybe => parts.into_iter().find(|part| part.holds == Holds::Maybe),
        Holds::Yes => parts.pop(),
    }
}

fn found_at(part: &Part<'_>, program: &Word<'_>) -> Found {
    let doubt = (part.holds == Holds::Maybe).then(|| (part.doubt)(part.word.text.to_string()));
    Found { span: part.word.span.clone(), program: program.span.clone(), doubt }
}
