//! A tree in one line of text.
//!
//! | in the notation         | stands for                                              |
//! |-------------------------|---------------------------------------------------------|
//! | `'a'`                   | quoted text, also around what is expanded within quotes |
//! | `_`                     | an empty word without quotes                            |
//! | `[2>f]`                 | a redirection, after the words                          |
//! | `if[c][b] else[e]`      | lists of a compound command                             |
//! | `${x changed w}`        | an expansion that changes the value, with its words     |

use crate::guard::shell::syntax::{
    Assignment, Command, Kind, List, Operation, Part, PartKind, Redirect, RedirectKind, Then, Value, Word,
};

pub(super) fn list(list: &List) -> String {
    let item = |item: &crate::guard::shell::syntax::Item| {
        let then = match item.then {
            Then::And => " &&",
            Then::Or => " ||",
            Then::Next => ";",
            Then::Background => " &",
        };
        format!("{}{then}", join(&item.commands, " | ", command))
    };
    join(&list.0, " ", item)
}

fn join<T>(things: &[T], between: &str, one: impl Fn(&T) -> String) -> String {
    things.iter().map(one).collect::<Vec<_>>().join(between)
}

fn words(words: &[Word]) -> String {
    join(words, " ", word)
}

fn word(word: &Word) -> String {
    if word.parts.is_empty() { "_".to_owned() } else { join(&word.parts, "", part) }
}

fn part(part: &Part) -> String {
    let text = match &part.kind {
        PartKind::Text(text) => text.escape_debug().to_string(),
        PartKind::Parameter(parameter) => {
            let subscript = parameter.subscript.as_ref().map(|subscript| format!("[{}]", word(subscript)));
            format!("${{{}{}{}}}", parameter.name, subscript.unwrap_or_default(), operation(&parameter.operation))
        }
        PartKind::Command(commands) => format!("$({})", list(commands)),
        PartKind::Process { list: commands, output } => format!("{}({})", if *output { ">" } else { "<" }, list(commands)),
        PartKind::Arithmetic(text) => format!("$(({}))", word(text)),
        PartKind::Array(elements) => format!("({})", words(elements)),
    };
    if part.quoted { format!("'{text}'") } else { text }
}

fn operation(operation: &Operation) -> String {
    let conditional =
        |colon: bool, operator: &str, value: &Word| format!("{}{operator}{}", if colon { ":" } else { "" }, word(value));
    match operation {
        Operation::Value => String::new(),
        Operation::Default { colon, word } => conditional(*colon, "-", word),
        Operation::Assign { colon, word } => conditional(*colon, "=", word),
        Operation::Alternative { colon, word } => conditional(*colon, "+", word),
        Operation::Error { colon, word } => conditional(*colon, "?", word),
        Operation::Length => " length".to_owned(),
        Operation::Evaluated => " evaluated".to_owned(),
        Operation::Changed(values) => format!(" changed {}", words(values)),
    }
}

fn redirect(redirect: &Redirect) -> String {
    let (operator, target) = match &redirect.kind {
        RedirectKind::Read(target) => ("<", target),
        RedirectKind::Write(target) => (">", target),
        RedirectKind::WriteBoth(target) => ("&>", target),
        RedirectKind::Duplicate(target) => (">&", target),
        RedirectKind::HereDocument(target) => ("<<", target),
        RedirectKind::HereString(target) => ("<<<", target),
    };
    format!(" [{}{operator}{}]", redirect.descriptor.as_deref().unwrap_or_default(), word(target))
}

fn assignment(assignment: &Assignment) -> String {
    let subscript = assignment.subscript.as_ref().map(|subscript| format!("[{}]", word(subscript)));
    let value = match &assignment.value {
        Value::Scalar(value) => word(value),
        Value::Array(elements) => format!("({})", words(elements)),
    };
    let append = if assignment.append { "+" } else { "" };
    format!("{}{}{append}={value}", assignment.name, subscript.unwrap_or_default())
}

fn command(command: &Command) -> String {
    let kind = match &command.kind {
        Kind::Simple { assignments, words } => {
            assignments.iter().map(assignment).chain(words.iter().map(word)).collect::<Vec<_>>().join(" ")
        }
        Kind::Group(body) => format!("{{{}}}", list(body)),
        Kind::Subshell(body) => format!("({})", list(body)),
        Kind::If { branches, otherwise } => {
            let branches = join(branches, "", |(condition, body)| format!("[{}][{}]", list(condition), list(body)));
            let otherwise = otherwise.as_ref().map(|body| format!(" else[{}]", list(body)));
            format!("if{branches}{}", otherwise.unwrap_or_default())
        }
        Kind::Loop { condition, body } => format!("loop[{}][{}]", list(condition), list(body)),
        Kind::For { name, values, select, body } => {
            let values = values.as_ref().map(|values| format!(" in {}", words(values)));
            let keyword = if *select { "select" } else { "for" };
            format!("{keyword} {name}{}[{}]", values.unwrap_or_default(), list(body))
        }
        Kind::ArithmeticFor { header, body } => format!("for(({}))[{}]", word(header), list(body)),
        Kind::Case { subject, arms } => {
            let arms = join(arms, "", |(patterns, body)| format!(" {})[{}]", words(patterns), list(body)));
            format!("case {}{arms}", word(subject))
        }
        Kind::Arithmetic(text) => format!("(({}))", word(text)),
        Kind::Condition(terms) => format!("[[{}]]", words(terms)),
        Kind::Function { name, body } => format!("function {name} {}", self::command(body)),
        Kind::Coprocess(body) => format!("coproc {}", self::command(body)),
    };
    format!("{kind}{}", join(&command.redirects, "", redirect))
}
