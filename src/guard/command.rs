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
use super::paths::{Folders, Inside};
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
    /// The argument that names a program which runs text or input.
    runner: Option<usize>,
}

/// A match, certain or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found<'l> {
    /// The word that it hangs on.
    pub(super) span: Range<usize>,
    /// The program word of the command.
    pub(super) program: Range<usize>,
    /// Why it is not certain; nothing when it is.
    pub(super) doubt: Option<Doubt<'l>>,
}

/// Why a call may match a guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt<'l> {
    /// The line is more than literal words.
    NotLiteral(Construct),
    /// The input is not of a known form.
    Input(&'static str),
    /// A program word that may be the guarded program.
    Program(&'l str),
    /// A word that may be the guarded subcommand.
    Subcommand(&'l str),
    /// A word that may be or hold a guarded option.
    Option(&'l str),
    /// A setting on the line may do what a guarded option does.
    Setting,
    /// An operand or path that may be outside.
    Folder(&'l str),
    /// A program that runs text.
    Runs(&'l str),
    /// A program (first) of which the words name the guarded one (second), so that it may run.
    Names(&'l str, &'l str),
    /// A program whose text may flow on, or that may run such text.
    Flow(&'l str),
    /// A word that cannot be replaced exactly.
    Rebuild,
}

/// The longest part of a word that a doubt repeats, in characters.
const EXCERPT: usize = 80;

/// The beginning of a word, for a message.
fn excerpt(word: &str) -> String {
    match word.char_indices().nth(EXCERPT) {
        None => word.to_owned(),
        Some((end, _)) => format!("{}...", &word[..end]),
    }
}

impl fmt::Display for Doubt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLiteral(what) => write!(f, "the line holds {what}, so that its text does not say what runs"),
            Self::Input(why) => f.write_str(why),
            Self::Program(word) => write!(f, "{:?} may be the guarded program", excerpt(word)),
            Self::Subcommand(word) => write!(f, "{:?} may be or hide the guarded subcommand", excerpt(word)),
            Self::Option(word) => write!(f, "{:?} may be or hold a guarded option", excerpt(word)),
            Self::Setting => f.write_str("a setting on the line may do what the guard is for"),
            Self::Folder(path) => write!(f, "where {:?} is cannot be told", excerpt(path)),
            Self::Runs(word) => write!(f, "{:?} runs what its words, its input or a file say", excerpt(word)),
            Self::Names(word, name) => write!(f, "the words of {:?} name {name:?}, and something may run them", excerpt(word)),
            Self::Flow(word) => {
                write!(f, "{:?} appears, and where its text comes from or goes to is not followed", excerpt(word))
            }
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
            let runner = match conduct {
                Conduct::Names => command.arguments().iter().position(|word| programs::mentions_runner(&word.text)),
                Conduct::Data | Conduct::Opaque => None,
            };
            judged.push(Judged { command, conduct, data: conduct == Conduct::Data, moved: before, runner });
        }
        for pipeline in judged.chunk_by_mut(|one, next| one.command.pipeline == next.command.pipeline) {
            let data = pipeline.iter().all(|judged| judged.data);
            pipeline.iter_mut().for_each(|judged| judged.data = data);
        }
        Self { commands: judged }
    }

    /// Every match of a command rule, in the order of the line.
    pub(super) fn matches<'l>(&'l self, rule: &'l CommandRule, folders: Folders<'l>) -> impl Iterator<Item = Found<'l>> + 'l {
        let inside = rule.outside.as_deref().map(|places| Inside::new(places, folders));
        self.commands.iter().filter_map(move |judged| {
            // After a change of the folder nobody knows where a relative path starts.
            let current = folders.current.filter(|_| !judged.moved);
            matched(rule, judged, inside.as_ref().map(|inside| (inside, current)))
                .or_else(|| judged.could_run(std::iter::once(rule.program.as_str())))
        })
    }

    /// Every command that has to do with the programs of a flow, in the order of the line.
    pub(super) fn flows<'l>(&'l self, from: &'l [String], to: &'l [String]) -> impl Iterator<Item = Found<'l>> + 'l {
        self.commands.iter().filter_map(move |judged| {
            let program = judged.command.program();
            let names = from.iter().chain(to).map(String::as_str);
            if names.clone().any(|name| programs::is_program(&program.text, name) != Holds::No) {
                return Some(judged.doubtful(program, Doubt::Flow(&program.text)));
            }
            judged.could_run(names)
        })
    }
}

impl Judged<'_> {
    /// Whether this command, though it is another, could run one of some programs.
    fn could_run<'l>(&'l self, names: impl IntoIterator<Item = &'l str>) -> Option<Found<'l>> {
        let program = self.command.program();
        if self.conduct == Conduct::Opaque {
            return Some(self.doubtful(program, Doubt::Runs(&program.text)));
        }
        if self.data {
            return None;
        }
        let arguments = self.command.arguments();
        let named =
            names.into_iter().find_map(|name| Some((arguments.iter().find(|word| programs::mentions(&word.text, name))?, name)));
        if let Some((word, name)) = named {
            return Some(self.doubtful(word, Doubt::Names(&program.text, name)));
        }
        let runner = &arguments[self.runner?];
        Some(self.doubtful(runner, Doubt::Runs(&runner.text)))
    }

    fn doubtful<'l>(&self, word: &Word<'_>, doubt: Doubt<'l>) -> Found<'l> {
        Found { span: word.span.clone(), program: self.command.program().span.clone(), doubt: Some(doubt) }
    }
}

/// One part of a rule on one command: how far it holds, on which word, and why not certainly.
struct Part<'w> {
    holds: Holds,
    word: &'w Word<'w>,
    doubt: fn(&'w str) -> Doubt<'w>,
}

/// The match of a rule with one command.
fn matched<'l>(rule: &CommandRule, judged: &'l Judged<'_>, outside: Option<(&Inside, Option<&str>)>) -> Option<Found<'l>> {
    let (program, arguments) = (judged.command.program(), judged.command.arguments());
    let is_program = programs::is_program(&program.text, &rule.program);
    if is_program == Holds::No {
        return None;
    }
    let grammar = grammar::program(&rule.program);
    let mut parts = vec![Part { holds: is_program, word: program, doubt: Doubt::Program }];

    let subcommand = options::subcommand(grammar, arguments);
    // What the user's settings, or settings on the line, add to the words is not seen.
    let open = grammar.is_some_and(|grammar| {
        let globals = &arguments[..subcommand.map_or(arguments.len(), |found| found.at)];
        let sets = |word: &Word<'_>| grammar.global_settings.iter().any(|option| options::names(&word.text, option));
        globals.iter().any(sets) || subcommand.is_some_and(|found| may_be_alias(grammar, &arguments[found.at].text))
    });

    let (mut from, mut options) = (0, grammar.and_then(|grammar| grammar.options_of("")));
    if !rule.subcommand.is_empty() {
        let found = subcommand?;
        let word = &arguments[found.at];
        let name = first_name(grammar, &word.text);
        let listed = |word: &str| rule.subcommand.iter().any(|listed| first_name(grammar, listed) == first_name(grammar, word));
        let rest = &arguments[found.at + 1..];
        let alias = grammar.is_some_and(|grammar| may_be_alias(grammar, &word.text));
        let holds = match (listed(&word.text), found.certain) {
            (true, true) => Holds::Yes,
            (true, false) => Holds::Maybe,
            (false, certain) if alias || (!certain && rest.iter().any(|word| listed(&word.text))) => Holds::Maybe,
            (false, _) => return None,
        };
        parts.push(Part { holds, word, doubt: Doubt::Subcommand });
        // What an alias stands for has options of its own: the other parts cannot clear it.
        if holds == Holds::Maybe {
            return strongest(parts).map(|part| found_at(&part, program));
        }
        (from, options) = (found.at + 1, grammar.and_then(|grammar| grammar.options_of(name)));
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
    if let Some((inside, current)) = outside {
        let operand = |(at, certain): &(usize, bool)| {
            let word = &arguments[*at];
            let outside = inside.excludes(current, &word.text);
            Part { holds: if *certain { outside } else { outside.min(Holds::Maybe) }, word, doubt: Doubt::Folder }
        };
        parts.push(most(sorted.operands.iter().map(operand), program));
    }
    match strongest(parts) {
        Some(part) => Some(found_at(&part, program)),
        None if open => Some(judged.doubtful(program, Doubt::Setting)),
        None => None,
    }
}

/// The name that a subcommand's other names stand for.
fn first_name<'n>(grammar: Option<&Program>, name: &'n str) -> &'n str {
    grammar.map_or(name, |grammar| grammar.unaliased(name))
}

/// Whether a subcommand is none of the program's own, so that the settings of a user may say what it is.
fn may_be_alias(grammar: &Program, name: &str) -> bool {
    grammar.user_aliases && !grammar::listed(GIT_DATA, name) && !grammar::listed(GIT_OTHER, name)
}

/// The part that holds most; with none, one that does not hold.
fn most<'w>(parts: impl Iterator<Item = Part<'w>>, program: &'w Word<'w>) -> Part<'w> {
    let mut best = Part { holds: Holds::No, word: program, doubt: Doubt::Program };
    for part in parts {
        if part.holds > best.holds {
            best = part;
        }
        if best.holds == Holds::Yes {
            break;
        }
    }
    best
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

fn found_at<'w>(part: &Part<'w>, program: &Word<'_>) -> Found<'w> {
    let doubt = (part.holds == Holds::Maybe).then(|| (part.doubt)(&part.word.text));
    Found { span: part.word.span.clone(), program: program.span.clone(), doubt }
}
