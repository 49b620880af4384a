//! Whether a command guard matches a line.
//!
//! | part of the guard    | certain                                  | may be                                                                   |
//! |----------------------|------------------------------------------|--------------------------------------------------------------------------|
//! | `program`            | the base name                            | a relative path, another case; a command that could run the program      |
//! | `subcommand`         | the first word that is no option         | it is not known, or stands behind an unknown option; an alias of the user |
//! | `options`, `words`   | one of them is given                     | a word is not known; a setting on the line may add it                    |
//! | `options_all`        | one of each group is given               | as above                                                                 |
//! | `operands`           | one resolves outside                     | the path or the folder is not known                                      |
//! | `flow`               | output of the one runs as program text   | text that is not known runs                                              |
//!
//! A guard matches with the least certain of its parts. Over the commands of a line, the most certain match counts. What is unclear in the
//! line may match every guard.

use super::doubt::Doubt;
use super::grammar::{self, GIT_DATA, GIT_OTHER, Program, SHELLS};
use super::options::{self, Holds};
use super::paths::{Folders, Inside};
use super::programs::{self, Conduct};
use super::rule::CommandRule;
use super::shell::field::{Field, Open};
use super::shell::run::{Invocation, Trace};
use super::shell::syntax::Span;

/// What a line may run, with what is asked of each command by several guards.
#[derive(Debug)]
pub(super) struct Line {
    trace: Trace,
    /// Of each invocation.
    conducts: Vec<Conduct>,
}

/// A match, certain or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The word that it hangs on.
    pub(super) span: Span,
    /// The program word of the command, if there is a command.
    pub(super) program: Option<Span>,
    /// Why it is not certain; nothing when it is.
    pub(super) doubt: Option<Doubt>,
}

impl Line {
    /// Looks at each command once.
    pub(super) fn new(trace: Trace) -> Self {
        let conduct = |invocation: &Invocation| match invocation.wrapper {
            true => Conduct::Data,
            false => programs::conduct(&invocation.fields),
        };
        Self { conducts: trace.invocations.iter().map(conduct).collect(), trace }
    }

    /// Every match of a command rule, in the order in which the commands would run; then what is unclear.
    pub(super) fn matches<'l>(&'l self, rule: &'l CommandRule, folders: Folders<'l>) -> impl Iterator<Item = Found> + 'l {
        let inside = rule.outside.as_deref().map(|places| Inside::new(places, folders));
        let found = self.trace.invocations.iter().zip(&self.conducts).filter_map(move |(invocation, conduct)| {
            matched(rule, invocation, inside.as_ref())
                .or_else(|| could_run(invocation, *conduct, |word| names(word, rule).then_some(&*rule.program)))
        });
        found.chain(self.unclear())
    }

    /// Every text of one program that another runs, in the order in which they would run; then what is unclear.
    pub(super) fn flows<'l>(&'l self, from: &'l [String], to: &'l [String]) -> impl Iterator<Item = Found> + 'l {
        let flows = self.trace.flows.iter().filter_map(move |flow| {
            flow.from.names().find(|name| from.iter().any(|from| from == name))?;
            // A builtin, or a program that hands the text to a shell, is not named by a guard.
            let guarded = to.contains(&flow.to) || !grammar::listed(SHELLS, &flow.to);
            guarded.then(|| Found { span: flow.at.clone(), program: None, doubt: None })
        });
        let both = move |word: &str| {
            let from = from.iter().find(|name| programs::mentions(word, name))?;
            to.iter().any(|name| programs::mentions(word, name)).then_some(from.as_str())
        };
        let named = self.trace.invocations.iter().zip(&self.conducts);
        flows.chain(named.filter_map(move |(invocation, conduct)| could_run(invocation, *conduct, both))).chain(self.unclear())
    }

    fn unclear(&self) -> impl Iterator<Item = Found> + '_ {
        let found = |unclear: &super::shell::run::Unclear| Found {
            span: unclear.at.clone(),
            program: None,
            doubt: Some(Doubt::Unclear(unclear.why.clone())),
        };
        self.trace.unclear.iter().map(found)
    }
}

/// Whether a word of a program that nobody knows names what a guard is for.
fn names(word: &str, rule: &CommandRule) -> bool {
    programs::mentions(word, &rule.program)
}

/// Whether a command, though it is another, could run what a guard is for.
fn could_run<'n>(invocation: &Invocation, conduct: Conduct, named: impl Fn(&str) -> Option<&'n str>) -> Option<Found> {
    let (program, arguments) = invocation.fields.split_first()?;
    let own = programs::program_word(program);
    let doubtful = |span: &Span, doubt| Some(Found { span: span.clone(), program: Some(program.span.clone()), doubt: Some(doubt) });
    match conduct {
        Conduct::Data => return None,
        Conduct::Opaque => return doubtful(&program.span, Doubt::Runs(own.to_owned())),
        Conduct::Names => {}
    }
    let texts = arguments.iter().flat_map(|word| [(word, &word.text), (word, &word.tail)]);
    if let Some((word, name)) = texts.clone().find_map(|(word, text)| Some((word, named(text)?))) {
        return doubtful(&word.span, Doubt::Names(own.to_owned(), name.to_owned()));
    }
    let runner = texts.clone().find(|(_, text)| programs::mentions_runner(text));
    runner.and_then(|(word, text)| doubtful(&word.span, Doubt::Runs(text.clone())))
}

/// One part of a rule on one command: how far it holds, on which words.
struct Part<'w> {
    holds: Holds,
    /// The word that it hangs on, and its number among the arguments.
    word: &'w Field,
    /// Every argument by which it may hold.
    by: Vec<usize>,
    doubt: fn(String) -> Doubt,
}

/// The match of a rule with one command.
fn matched(rule: &CommandRule, invocation: &Invocation, inside: Option<&Inside>) -> Option<Found> {
    let (program, arguments) = invocation.fields.split_first()?;
    let is_program = programs::is_program(programs::program_word(program), &rule.program);
    if is_program == Holds::No {
        return None;
    }
    let grammar = grammar::program(&rule.program);
    let mut parts = vec![Part { holds: is_program, word: program, by: Vec::new(), doubt: Doubt::Program }];

    let subcommand = options::subcommand(grammar, arguments);
    // What the user's settings, or settings on the line, add to the words is not seen.
    let open = grammar.is_some_and(|grammar| {
        let globals = &arguments[..subcommand.map_or(arguments.len(), |found| found.at)];
        let sets = |word: &Field| grammar.global_settings.iter().any(|option| options::names(&word.text, option));
        globals.iter().any(sets) || subcommand.is_some_and(|found| may_be_alias(grammar, &arguments[found.at]))
    });

    let (mut from, mut options) = (0, grammar.and_then(|grammar| grammar.options_of("")));
    if !rule.subcommand.is_empty() {
        let found = subcommand?;
        let word = &arguments[found.at];
        let holds = is_subcommand(rule, grammar, word, found.certain, &arguments[found.at + 1..]);
        if holds == Holds::No {
            return None;
        }
        parts.push(Part { holds, word, by: Vec::new(), doubt: Doubt::Subcommand });
        // What an alias stands for has options of its own: the other parts cannot clear it.
        if holds == Holds::Maybe {
            return strongest(parts).map(|part| found_at(&part, program));
        }
        let name = grammar.map_or(word.text.as_str(), |grammar| grammar.unaliased(&word.text));
        (from, options) = (found.at + 1, grammar.and_then(|grammar| grammar.options_of(name)));
    }

    let sorted = options::sort(options, arguments, from);
    let given = |option: &str| sorted.has(option).collect::<Vec<_>>();
    if !rule.options.is_empty() || !rule.words.is_empty() {
        let mut hits: Vec<(Holds, usize)> = rule.options.iter().flat_map(|option| given(option)).collect();
        hits.extend(sorted.words.iter().filter_map(|at| Some((is_word(rule, &arguments[*at])?, *at))));
        parts.push(part(hits, arguments, program, Doubt::Option));
    }
    for group in &rule.options_all {
        parts.push(part(group.iter().flat_map(|option| given(option)).collect(), arguments, program, Doubt::Option));
    }
    if let Some(inside) = inside {
        let operand = |(at, certain): &(usize, bool)| {
            let outside = is_outside(inside, invocation, &arguments[*at]);
            (if *certain { outside } else { outside.min(Holds::Maybe) }, *at)
        };
        let mut operands = part(sorted.operands.iter().map(operand).collect(), arguments, program, Doubt::Folder);
        // One word that is not known is an option or an operand, not both.
        let both = |part: &Part<'_>| part.holds == Holds::Maybe && part.by == operands.by && !part.by.is_empty();
        if operands.holds == Holds::Maybe
            && parts.iter().any(both)
            && let [at] = operands.by[..]
            && arguments[at].open == Open::One
        {
            operands.holds = Holds::No;
        }
        parts.push(operands);
    }
    match strongest(parts) {
        Some(part) => Some(found_at(&part, program)),
        None if open => Some(Found { span: program.span.clone(), program: Some(program.span.clone()), doubt: Some(Doubt::Setting) }),
        None => None,
    }
}

/// Whether the word in the place of the subcommand is a guarded one.
fn is_subcommand(rule: &CommandRule, grammar: Option<&Program>, word: &Field, certain: bool, rest: &[Field]) -> Holds {
    let name = |word: &'_ str| grammar.map_or(word.to_owned(), |grammar| grammar.unaliased(word).to_owned());
    let listed = |word: &str| rule.subcommand.iter().any(|listed| name(listed) == name(word));
    if word.open != Open::No {
        // Options may come out of it, and another word be the subcommand.
        let may_be = word.text.is_empty() || word.text.starts_with('-') || rule.subcommand.iter().any(|name| name.starts_with(&word.text));
        return if may_be { Holds::Maybe } else { Holds::No };
    }
    match (listed(&word.text), certain) {
        (true, true) => Holds::Yes,
        (true, false) => Holds::Maybe,
        (false, certain) => {
            let alias = grammar.is_some_and(|grammar| may_be_alias(grammar, word));
            let behind = !certain && rest.iter().any(|word| word.open != Open::No || listed(&word.text));
            if alias || behind { Holds::Maybe } else { Holds::No }
        }
    }
}

/// Whether a subcommand is none of the program's own, so that the settings of a user may say what it is.
fn may_be_alias(grammar: &Program, word: &Field) -> bool {
    let known = |list: &[&str]| grammar::listed(list, &word.text);
    grammar.user_aliases && word.open == Open::No && !known(GIT_DATA) && !known(GIT_OTHER)
}

/// Whether a word matches one of the patterns of a rule.
fn is_word(rule: &CommandRule, word: &Field) -> Option<Holds> {
    let matches = |pattern: &String| match word.open {
        Open::No if options::glob(pattern, &word.text) => Some(Holds::Yes),
        Open::No => None,
        Open::One | Open::Many => options::may_match(pattern, &word.text).then_some(Holds::Maybe),
    };
    rule.words.iter().filter_map(matches).max()
}

/// Whether an operand is in none of some places.
fn is_outside(inside: &Inside, invocation: &Invocation, word: &Field) -> Holds {
    let folder = invocation.folder.as_deref();
    if word.open != Open::No || invocation.elsewhere {
        return Holds::Maybe;
    }
    if !word.pattern {
        return inside.excludes(folder, &word.text);
    }
    // Whatever the pattern finds stands where its folders are: a name found is neither `.` nor `..` unless it begins with a dot.
    let found = |part: &str| part.contains(['*', '?', '[']);
    let parts: Vec<&str> = word.text.split('/').map(|part| if found(part) { "x" } else { part }).collect();
    let outside = inside.excludes(folder, &parts.join("/"));
    let dotted = word.text.split('/').any(|part| part.starts_with(['.', '[', '?', '@']) && found(part));
    if dotted { outside.max(Holds::Maybe) } else { outside }
}

/// The part that some hits make: it holds as the strongest of them does.
fn part<'w>(hits: Vec<(Holds, usize)>, arguments: &'w [Field], program: &'w Field, doubt: fn(String) -> Doubt) -> Part<'w> {
    let mut by: Vec<usize> = hits.iter().filter(|(holds, _)| *holds != Holds::No).map(|(_, at)| *at).collect();
    by.dedup();
    let best = hits.into_iter().reduce(|best, next| if next.0 > best.0 { next } else { best });
    let (holds, word) = best.map_or((Holds::No, program), |(holds, at)| (holds, &arguments[at]));
    Part { holds, word, by, doubt }
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

fn found_at(part: &Part<'_>, program: &Field) -> Found {
    let doubt = (part.holds == Holds::Maybe).then(|| (part.doubt)(format!("{}{}", part.word.text, part.word.tail)));
    Found { span: part.word.span.clone(), program: Some(program.span.clone()), doubt }
}
