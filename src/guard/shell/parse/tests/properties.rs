//! Properties of any text.

use proptest::prelude::*;

use super::{notation, parse};
use crate::guard::shell::syntax::{
    Assignment, Base, Command, Kind, List, Operation, Parsed, Part, PartKind, Redirect, RedirectKind, Span, Value, Word,
};

/// Pieces of shell text, whole words and halves of constructs.
const PIECES: &[&str] = &[
    "a",
    "rm ",
    "if ",
    "then ",
    "fi ",
    "; ",
    "\n",
    "(",
    ")",
    "((",
    "))",
    "$(",
    "`",
    "\"",
    "'",
    "${",
    "}",
    "{ ",
    "$((",
    "<<E",
    "E\n",
    "\nE\n",
    "<(",
    ">",
    "<",
    ">&",
    "2>",
    "&",
    "&&",
    "||",
    "|",
    "|&",
    "case ",
    "in ",
    "esac ",
    ";;",
    "for ",
    "do ",
    "done ",
    "while ",
    "[[ ",
    "]] ",
    "! ",
    "time ",
    "\\",
    "\\\n",
    "$",
    "x",
    "=",
    "a=(",
    "[",
    "]",
    "#",
    " ",
    "\t",
    "function ",
    "f() ",
    "coproc ",
    "-p ",
    "x:-",
    "@(",
    "!(",
    "~",
    "*",
    "1",
    "é",
    "$[",
    "<<-E\n",
    "'E'",
    "\r",
    "\0",
    "$'",
    "\u{85}",
    "${x//",
    "a[",
    "]=",
    "echo ",
    "\"$x\"",
];

fn shell_text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..24).prop_map(|pieces| pieces.concat())
}

/// Text that is likelier to be read to its end.
fn commands() -> impl Strategy<Value = String> {
    let word = prop::sample::select(
        &["a", "'b c'", "\"$x\"", "$(d)", "`e`", "${f:-g}", "\\h", "x=1", "if", "é", "\"\\\"\"", "$((1))"][..],
    );
    let words = prop::collection::vec(word, 1..4).prop_map(|words| words.join(" "));
    let between = prop::sample::select(&["; ", "\n", " && ", " | ", " & ", " || "][..]);
    let text = prop::collection::vec((words, between), 1..4);
    text.prop_map(|parts| parts.into_iter().map(|(words, between)| format!("a {words}{between}")).collect::<String>() + "z")
}

fn read(text: &str) -> Option<List> {
    let Parsed { list, refused } = parse(text, Base::At(0), 0);
    refused.is_none().then_some(list)
}

proptest! {
    /// Every text has an answer, whose spans are parts of the text.
    #[test]
    fn any_text_has_an_answer_with_spans_of_its_own(text in prop_oneof![shell_text(), any::<String>()]) {
        let Parsed { list, refused } = parse(&text, Base::At(0), 0);
        let mut spans = Spans::default();
        spans.list(&list);
        spans.0.extend(refused.map(|refused| refused.at));
        for span in spans.0 {
            prop_assert!(text.get(span.clone()).is_some(), "{span:?} of {text:?}");
        }
    }

    /// A text that stands further on has the same tree further on; one that does not stand anywhere has the one span.
    #[test]
    fn spans_follow_the_base(text in prop_oneof![shell_text(), commands()]) {
        let spans = |base| {
            let mut spans = Spans::default();
            spans.list(&parse(&text, base, 0).list);
            spans.0
        };
        let moved = spans(Base::At(0)).into_iter().map(|span| span.start + 7..span.end + 7).collect::<Vec<_>>();
        prop_assert_eq!(spans(Base::At(7)), moved);
        prop_assert!(spans(Base::Within(3..5)).iter().all(|span| *span == (3..5)));
    }

    /// Another line after a text adds to its tree and changes nothing in it.
    #[test]
    fn a_further_line_only_adds(text in prop_oneof![shell_text(), commands()]) {
        prop_assume!(!text.contains("<<") && !text.ends_with('\\'));
        if let Some(list) = read(&text) {
            let longer = parse(&format!("{text}\nz"), Base::At(0), 0);
            prop_assert_eq!(longer.refused, None);
            prop_assert_eq!(&longer.list.0[..list.0.len()], &list.0[..]);
            prop_assert_eq!(longer.list.0.len(), list.0.len() + 1);
        }
    }

    /// What is read by itself is read alike within a group, a subshell, a substitution and backquotes.
    #[test]
    fn text_is_read_alike_within_other_text(text in prop_oneof![shell_text(), commands()]) {
        prop_assume!(!text.contains("<<") && !text.ends_with('\\'));
        let Some(list) = read(&text).filter(|list| !list.0.is_empty()) else { return Ok(()) };
        let inner = notation::list(&list);
        let within = |text: String| read(&text).map(|list| notation::list(&list));
        prop_assert_eq!(within(format!("{{ {text}\n}}")), Some(format!("{{{inner}}};")));
        prop_assert_eq!(within(format!("( {text}\n)")), Some(format!("({inner});")));
        prop_assert_eq!(within(format!("a $( :\n{text}\n)")), Some(format!("a $(:; {inner});")));
        let escaped = text.replace('\\', "\\\\").replace('`', "\\`").replace('$', "\\$");
        prop_assert_eq!(within(format!("a `{escaped}`")), Some(format!("a $({inner});")));
    }

    /// Text in single quotes is that text, at its place.
    #[test]
    fn quoted_text_stands_for_itself(text in "[^'\0]*") {
        let list = read(&format!("a '{text}'")).expect("it is read");
        let Kind::Simple { words, .. } = &list.0[0].commands[0].kind else { panic!("no simple command") };
        let expected = Part { kind: PartKind::Text(text.clone()), quoted: true, span: 3..3 + text.len() };
        prop_assert_eq!(&words[1].parts, &vec![expected]);
    }
}

/// All spans of a tree.
#[derive(Default)]
struct Spans(Vec<Span>);

impl Spans {
    fn list(&mut self, list: &List) {
        list.0.iter().flat_map(|item| &item.commands).for_each(|command| self.command(command));
    }

    fn command(&mut self, command: &Command) {
        self.0.push(command.span.clone());
        command.redirects.iter().for_each(|redirect| self.redirect(redirect));
        match &command.kind {
            Kind::Simple { assignments, words } => {
                assignments.iter().for_each(|assignment| self.assignment(assignment));
                self.words(words);
            }
            Kind::Group(list) | Kind::Subshell(list) => self.list(list),
            Kind::If { branches, otherwise } => {
                branches.iter().for_each(|(condition, body)| [condition, body].map(|list| self.list(list)).into_iter().collect());
                otherwise.iter().for_each(|list| self.list(list));
            }
            Kind::Loop { condition, body } => [condition, body].map(|list| self.list(list)).into_iter().collect(),
            Kind::For { values, body, .. } => {
                values.iter().for_each(|values| self.words(values));
                self.list(body);
            }
            Kind::ArithmeticFor { header, body } => {
                self.word(header);
                self.list(body);
            }
            Kind::Case { subject, arms } => {
                self.word(subject);
                for (patterns, body) in arms {
                    self.words(patterns);
                    self.list(body);
                }
            }
            Kind::Arithmetic(word) => self.word(word),
            Kind::Condition(words) => self.words(words),
            Kind::Function { body, .. } | Kind::Coprocess(body) => self.command(body),
        }
    }

    fn redirect(&mut self, redirect: &Redirect) {
        self.0.push(redirect.span.clone());
        match &redirect.kind {
            RedirectKind::Read(word)
            | RedirectKind::Write(word)
            | RedirectKind::WriteBoth(word)
            | RedirectKind::Duplicate(word)
            | RedirectKind::HereDocument(word)
            | RedirectKind::HereString(word) => self.word(word),
        }
    }

    fn assignment(&mut self, assignment: &Assignment) {
        self.0.push(assignment.span.clone());
        assignment.subscript.iter().for_each(|word| self.word(word));
        match &assignment.value {
            Value::Scalar(word) => self.word(word),
            Value::Array(words) => self.words(words),
        }
    }

    fn words(&mut self, words: &[Word]) {
        words.iter().for_each(|word| self.word(word));
    }

    fn word(&mut self, word: &Word) {
        self.0.push(word.span.clone());
        for Part { kind, span, .. } in &word.parts {
            self.0.push(span.clone());
            match kind {
                PartKind::Text(_) => {}
                PartKind::Parameter(parameter) => {
                    parameter.subscript.iter().for_each(|word| self.word(word));
                    self.operation(&parameter.operation);
                }
                PartKind::Command(list) | PartKind::Process { list, .. } => self.list(list),
                PartKind::Arithmetic(word) => self.word(word),
                PartKind::Array(words) => self.words(words),
            }
        }
    }

    fn operation(&mut self, operation: &Operation) {
        match operation {
            Operation::Default { word, .. }
            | Operation::Assign { word, .. }
            | Operation::Alternative { word, .. }
            | Operation::Error { word, .. } => self.word(word),
            Operation::Changed(words) => self.words(words),
            Operation::Value | Operation::Length | Operation::Evaluated => {}
        }
    }
}
