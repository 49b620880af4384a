//! Expansions: from words to fields.
//!
//! | part                           | known when                                              | else                                     |
//! |--------------------------------|---------------------------------------------------------|------------------------------------------|
//! | text                           | always                                                  |                                          |
//! | `~`, `$HOME` and their like    | never                                                   | one word, its end known                  |
//! | `$x`                           | the text assigned it, on every way that leads here      | one word when quoted, else any number    |
//! | `${x:-w}` and its like         | never, unless the value is                              | as above                                 |
//! | `$(..)`                        | its commands only print known text                      | as above                                 |
//! | `$((..))`, `$?`, `${#x}`       | never; a number, for which `0` stands                   |                                          |
//! | `* ? [`                        | never: a pattern, which stays as it is                  |                                          |

use super::super::field::{Field, Open};
use super::super::syntax::{List, Operation, Parameter, Part, PartKind, Span, Word};
use super::state::{Shell, Value};
use super::stream::{MAX_TEXT, Stream};
use super::{Cause, Runner, braces};

/// Variables of the environment whose value is a word without blanks.
const ONE_WORD: &[&str] =
    &["HOME", "HOSTNAME", "LOGNAME", "OLDPWD", "PWD", "SHELL", "TMPDIR", "USER", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"];

/// Parameters whose value is a number.
const NUMBERS: &[&str] = &["!", "#", "$", "?", "BASHPID", "EUID", "LINENO", "PPID", "RANDOM", "SECONDS", "UID"];

/// What splits words where nothing else is said.
const BLANKS: [char; 3] = [' ', '\t', '\n'];

/// Fields under construction.
struct Fields {
    span: Span,
    done: Vec<Field>,
    current: Option<Field>,
}

impl Fields {
    fn current(&mut self) -> &mut Field {
        let span = &self.span;
        self.current.get_or_insert_with(|| Field::known("", span.clone()))
    }

    fn end(&mut self) {
        self.done.extend(self.current.take());
    }

    /// Puts text behind what is there.
    fn push(&mut self, text: &str, pattern: bool) {
        let field = self.current();
        if field.text.len() + field.tail.len() + text.len() > MAX_TEXT {
            field.open = Open::Many;
        }
        match field.open {
            Open::No => field.text.push_str(text),
            Open::One => field.tail.push_str(text),
            Open::Many => {}
        }
        field.pattern |= pattern && text.contains(['*', '?', '[']);
        field.exact = None;
    }

    /// Puts unknown text behind what is there; `solid` text has no blanks.
    fn push_unknown(&mut self, open: Open, solid: bool) {
        let field = self.current();
        field.solid = solid && (field.solid || field.open == Open::No);
        field.open = field.open.max(open);
        field.tail.clear();
        field.exact = None;
    }

    /// Puts a value behind what is there; unquoted, it is split at blanks.
    fn push_value(&mut self, value: &Field, quoted: bool, splits: bool) {
        let open = match (value.open, quoted) {
            (open, true) => open,
            (Open::No, false) => Open::No,
            (Open::One, false) if value.solid && splits => Open::One,
            (Open::One | Open::Many, false) => Open::Many,
        };
        if quoted || !splits {
            self.push(&value.text, false);
        } else {
            let mut pieces = value.text.split(BLANKS);
            self.push_piece(pieces.next().unwrap_or_default());
            for piece in pieces {
                self.end();
                self.push_piece(piece);
            }
        }
        if open != Open::No {
            self.push_unknown(open, value.solid);
            if quoted || open == Open::One {
                self.push(&value.tail, false);
            }
        }
        if let Some(field) = self.current.as_mut().or(self.done.last_mut()) {
            field.from.add(&value.from);
        }
    }

    /// An empty piece makes no field of its own.
    fn push_piece(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.push(piece, true);
        }
    }
}

impl Runner<'_> {
    /// The fields of a command's words.
    pub(super) fn fields(&mut self, words: &[Word], shell: &mut Shell) -> Vec<Field> {
        let mut fields = Vec::with_capacity(words.len());
        for word in words {
            if !self.step(1 + word.parts.len(), &word.span) {
                return fields;
            }
            match braces::expand(word) {
                Some(words) => words.iter().for_each(|word| self.word(word, shell, true, &mut fields)),
                None => fields.push(Field::unknown(Open::Many, word.span.clone())),
            }
        }
        fields
    }

    /// One word that is neither split nor a pattern: a value, a target, a subject.
    pub(super) fn single(&mut self, word: &Word, shell: &mut Shell) -> Field {
        let mut fields = Vec::new();
        self.word(word, shell, false, &mut fields);
        let mut fields = fields.into_iter();
        let first = fields.next().unwrap_or_else(|| Field::known("", word.span.clone()));
        // `"$@"` as a value.
        fields.fold(Field { pattern: false, ..first }, |mut all, next| {
            all.from.add(&next.from);
            Field { open: Open::One, exact: None, ..all }
        })
    }

    fn word(&mut self, word: &Word, shell: &mut Shell, splits: bool, into: &mut Vec<Field>) {
        let mut fields = Fields { span: word.span.clone(), done: Vec::new(), current: None };
        if word.parts.is_empty() {
            fields.current();
        }
        for (nth, part) in word.parts.iter().enumerate() {
            self.part(part, nth == 0, shell, splits, &mut fields);
        }
        if let ([part], Some(field)) = (&word.parts[..], &mut fields.current)
            && let PartKind::Text(text) = &part.kind
            && field.open == Open::No
        {
            // Byte for byte in the outermost text, or not at all.
            field.pattern &= text != "[";
            field.exact = (self.source.get(part.span.clone()) == Some(text)).then_some(part.span.start);
        }
        fields.end();
        into.append(&mut fields.done);
    }

    fn part(&mut self, part: &Part, first: bool, shell: &mut Shell, splits: bool, fields: &mut Fields) {
        let quoted = part.quoted || !splits;
        match &part.kind {
            PartKind::Text(text) => self.literal(text, part, first, fields, shell),
            PartKind::Parameter(parameter) => self.parameter(parameter, part, shell, quoted, fields),
            PartKind::Command(list) => {
                let output = self.substitution(list, &part.span, shell);
                let value = output.substituted(part.span.clone());
                if quoted {
                    fields.current();
                }
                fields.push_value(&value, quoted, !shell.splits_oddly);
            }
            PartKind::Process { list, output } => {
                let moment = shell.now();
                if *output {
                    // What is written into it is not followed.
                    shell.input = Stream::unknown(super::Origins::default()).into();
                }
                let stream = self.deeper(&part.span, |runner| runner.list(list, shell));
                shell.back_to(&moment);
                self.pipes += 1;
                let path = format!("/dev/fd/{}", 63 + self.pipes);
                fields.push(&path, false);
                self.files.insert(path, if *output { Stream::empty() } else { stream });
            }
            PartKind::Arithmetic(text) => {
                self.arithmetic(text, shell);
                fields.push("0", false);
            }
            PartKind::Array(words) => {
                self.fields(words, shell);
                fields.push_unknown(Open::One, false);
            }
        }
    }

    fn literal(&mut self, text: &str, part: &Part, first: bool, fields: &mut Fields, shell: &Shell) {
        if part.quoted {
            if text.contains('[') && (text.contains("$(") || text.contains('`')) {
                self.holds_subscript.get_or_insert_with(|| part.span.clone());
            }
            fields.push(text, false);
            return;
        }
        let tilde = first && text.starts_with('~');
        if !tilde {
            fields.push(text, true);
            return;
        }
        let name_ends = text.find('/').unwrap_or(text.len());
        match (&text[..name_ends], &shell.folder) {
            ("~+", Some(folder)) => fields.push(folder, false),
            _ => fields.push_unknown(Open::One, true),
        }
        fields.push(&text[name_ends..], true);
    }

    /// Runs a substitution in a shell of its own.
    pub(super) fn substitution(&mut self, list: &List, at: &Span, shell: &mut Shell) -> Stream {
        let moment = shell.now();
        let output = self.deeper(at, |runner| runner.list(list, shell));
        shell.back_to(&moment);
        output
    }

    /// Looks at what stands in an arithmetic text.
    pub(super) fn arithmetic(&mut self, text: &Word, shell: &mut Shell) {
        let text = self.single(text, shell);
        self.calculation(&text, shell);
    }

    /// Follows a text that is calculated: names in it are evaluated, and may be assigned.
    pub(super) fn calculation(&mut self, text: &Field, shell: &mut Shell) {
        self.evaluates = true;
        let assigns = ["=", "++", "--"].iter().any(|operator| text.text.contains(operator));
        match text.literal() {
            Some(text) if assigns => {
                let names = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|name| !name.is_empty());
                for name in names.filter(|name| !name.starts_with(|c: char| c.is_ascii_digit())) {
                    shell.assign(name, Value::unknown(super::Origins::default()));
                }
            }
            Some(_) => {}
            None => shell.forget_all(),
        }
    }

    fn parameter(&mut self, parameter: &Parameter, part: &Part, shell: &mut Shell, quoted: bool, fields: &mut Fields) {
        let Parameter { name, subscript, operation } = parameter;
        let mut index = None;
        if let Some(subscript) = subscript {
            self.evaluates = true;
            index = Some(self.single(subscript, shell));
        }
        let mut operands = super::Origins::default();
        let mut changed = false;
        match operation {
            Operation::Value => {}
            Operation::Length => return fields.push("0", false),
            Operation::Evaluated => {
                self.evaluates = true;
                self.unclear(&part.span, Cause::Runs(format!("${{{name}}}")));
                changed = true;
            }
            Operation::Default { word, .. } | Operation::Alternative { word, .. } | Operation::Error { word, .. } => {
                operands = self.single(word, shell).from;
                let known = matches!(shell.value(name), Some(Value::Text(field)) if !field.text.is_empty());
                changed = !known || matches!(operation, Operation::Alternative { .. });
            }
            Operation::Assign { word, .. } => {
                let value = self.single(word, shell);
                operands = value.from.clone();
                shell.assign(name, Value::unknown(value.from));
                changed = true;
            }
            Operation::Changed(words) => {
                self.evaluates = true;
                for word in words {
                    operands.add(&self.single(word, shell).from);
                }
                changed = true;
            }
        }
        let index = index.as_ref().map(|index| index.literal().unwrap_or("?"));
        let mut values = match value_of(name, index, shell) {
            Found::Number => return fields.push("0", false),
            Found::Values(values) => values,
        };
        let solid = ONE_WORD.contains(&name.as_str()) && shell.is_from_outside(name);
        for value in &mut values {
            value.solid |= solid;
            value.from.add(&operands);
            if changed {
                *value = Field { open: Open::One, solid: false, text: String::new(), tail: String::new(), ..value.clone() };
            }
        }
        let cost = values.iter().map(|value| 1 + value.text.len() / 64).sum();
        if !self.step(cost, &part.span) {
            return fields.push_unknown(Open::Many, false);
        }
        if quoted && values.is_empty() && name != "@" && index != Some("@") {
            fields.current();
        }
        let together = quoted && (name == "*" || index == Some("*"));
        for (nth, value) in values.iter().enumerate() {
            if nth > 0 {
                match together {
                    true if shell.splits_oddly => fields.push_unknown(Open::One, false),
                    true => fields.push(" ", false),
                    false => fields.end(),
                }
            }
            if quoted {
                fields.current();
            }
            fields.push_value(value, quoted, !shell.splits_oddly);
            if shell.splits_oddly && !quoted {
                fields.push_unknown(Open::Many, false);
            }
        }
    }
}

enum Found {
    Number,
    Values(Vec<Field>),
}

/// The values of a parameter. One that is not known is an open field: of `$@` and `${x[@]}` it may be many.
fn value_of(name: &str, index: Option<&str>, shell: &Shell) -> Found {
    let all = |index: Option<&str>| matches!(index, Some("@" | "*"));
    let unknown = |open| vec![Field { open, ..Field::default() }];
    if NUMBERS.contains(&name) && shell.is_from_outside(name) {
        return Found::Number;
    }
    Found::Values(match (name, shell.value(name)) {
        ("@" | "*", _) => match &shell.positional {
            Some(words) => words.iter().skip(1).cloned().collect(),
            None => unknown(Open::Many),
        },
        (number, _) if number.bytes().all(|byte| byte.is_ascii_digit()) => match (&shell.positional, number.parse::<usize>()) {
            (Some(words), Ok(at)) if at > 0 || words.first().is_some_and(|zero| zero.open == Open::No) => {
                words.get(at).cloned().into_iter().collect()
            }
            _ => unknown(Open::One),
        },
        ("IFS", None) if shell.is_from_outside(name) => vec![Field::known(" \t\n", 0..0)],
        ("PWD", None) if shell.is_from_outside(name) => match &shell.folder {
            Some(folder) => vec![Field::known(&**folder, 0..0)],
            None => unknown(Open::One),
        },
        (_, Some(Value::Text(field))) if index.is_none_or(|index| index == "0" || all(Some(index))) => vec![field.clone()],
        (_, Some(Value::Array(fields))) => match index {
            index if all(index) => fields.clone(),
            index => match index.unwrap_or("0").parse::<usize>() {
                Ok(at) => fields.get(at).cloned().into_iter().collect(),
                Err(_) => unknown(Open::One),
            },
        },
        _ => unknown(if all(index) { Open::Many } else { Open::One }),
    })
}
