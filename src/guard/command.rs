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
                .or_else(|| could_run(invocation, *conduct, std::slice::from_ref(&rule.program), &rule.subcommand))
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
        let named = self.trace.invocations.iter().zip(&self.conducts);
        let could_run = move |(invocation, conduct): (_, &Conduct)| could_run(invocation, *conduct, from, to);
        flows.chain(named.filter_map(could_run)).chain(self.unclear())
    }

    /// Whether another line runs what this one runs, but for the programs (first) that others (second) took the place of.
    pub(super) fn runs_as(&self, other: &Self, replaced: &[(&str, &str)]) -> bool {
        let program = |one: &Field, other: &Field| {
            let (one, other) = (programs::program_word(one), programs::program_word(other));
            let put = |(from, to): &(&str, &str)| {
                one.strip_suffix(from).zip(other.strip_suffix(to)).is_some_and(|(one, other)| one == other)
            };
            one == other || replaced.iter().any(put)
        };
        let same = |(one, other): (&Invocation, &Invocation)| {
            // The words of a wrapper may hold the program; what it runs is compared by itself.
            let words = |invocation: &Invocation| {
                invocation.fields[1..].iter().map(|field| (field.text.clone(), field.open)).collect::<Vec<_>>()
            };
            program(&one.fields[0], &other.fields[0]) && (one.wrapper && other.wrapper || words(one) == words(other))
        };
        let (ones, others) = (&self.trace.invocations, &other.trace.invocations);
        ones.len() == others.len() && ones.iter().zip(others).all(same) && self.trace.unclear.len() == other.trace.unclear.len()
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

/// Whether a command, though it is another, could run a guarded program: where its words name one of some programs and, unless nothing
/// else is asked for, one of some further names.
fn could_run(invocation: &Invocation, conduct: Conduct, programs: &[String], further: &[String]) -> Option<Found> {
    let (program, arguments) = invocation.fields.split_first()?;
    let own = programs::program_word(program);
    let doubtful =
        |span: &Span, doubt| Some(Found { span: span.clone(), program: Some(program.span.clone()), doubt: Some(doubt) });
    match conduct {
        Conduct::Data => return None,
        Conduct::Opaque => return doubtful(&program.span, Doubt::Runs(own.to_owned())),
        Conduct::Names => {}
    }
    let words = arguments.iter().flat_map(|word| [(&word.span, word.text.as_str()), (&word.span, word.tail.as_str())]);
    let input = invocation.input.text().filter(|_| programs::is_interpreter(own)).map(|text| (&program.span, text));
    let texts: Vec<(&Span, &str)> = words.chain(input).filter(|(_, text)| !text.is_empty()).collect();
    let mentioned = |names: &[String]| {
        let named = |(span, text): &(&Span, &str)| {
            Some(((*span).clone(), names.iter().find(|name| programs::mentions(text, name))?.clone()))
        };
        texts.iter().find_map(named)
    };
    if let Some((span, name)) = mentioned(programs)
        && (further.is_empty() || mentioned(further).is_some())
    {
        return doubtful(&span, Doubt::Names(own.to_owned(), name));
    }
    let runner = texts.iter().find(|(_, text)| programs::mentions_runner(text));
    runner.and_then(|(span, text)| doubtful(span, Doubt::Runs((*text).to_owned())))
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
        None if open => {
            Some(Found { span: program.span.clone(), program: Some(program.span.clone()), doubt: Some(Doubt::Setting) })
        }
        None => None,
    }
}

/// Whether the word in the place of the subcommand is a guarded one.
fn is_subcommand(rule: &CommandRule, grammar: Option<&Program>, word: &Field, certain: bool, rest: &[Field]) -> Holds {
    let name = |word: &'_ str| grammar.map_or(word.to_owned(), |grammar| grammar.unaliased(word).to_owned());
    let listed = |word: &str| rule.subcommand.iter().any(|listed| name(listed) == name(word));
    if word.open != Open::No {
        // Options may come out of it, and another word be the subcommand.
        let may_be =
            word.text.is_empty() || word.text.starts_with('-') || rule.subcommand.iter().any(|name| name.starts_with(&word.text));
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
    let doubt = (part.holds == Holds::Maybe).then(|| (part.doubt)(part.word.shown()));
    Found { span: part.word.span.clone(), program: Some(program.span.clone()), doubt }
}
