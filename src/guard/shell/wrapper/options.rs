//! Reads options as getopt does, as far as the words are known.
//!
//! | the word                    | with `x`, `name` in the table        | with `x:`, `name:`             | with `x::`, `name::`       |
//! |-----------------------------|--------------------------------------|--------------------------------|----------------------------|
//! | `-x`                        | the option                           | the value is the next word     | the option without value   |
//! | `-xREST`                    | the option, `REST` are more letters  | the value is `REST`            | the value is `REST`        |
//! | `--name`, `--na` if unique  | the option                           | the value is the next word     | the option without value   |
//! | `--name=REST`               | stop                                 | the value is `REST`            | the value is `REST`        |
//!
//! `--` ends the options, as does the first word that is none.

use super::super::field::{Field, Open};
use super::super::syntax::Span;

/// The options of a program, in getopt's notation.
#[derive(Clone, Copy)]
pub(super) struct Grammar {
    short: &'static str,
    long: &'static [&'static str],
    /// Whether `-10`, `--10` and `-+10` are options.
    numbers: bool,
    /// Whether `-` is an option.
    dash: bool,
    /// Options after which reading ends.
    last: &'static [&'static str],
}

impl Grammar {
    pub(super) const fn new(short: &'static str, long: &'static [&'static str]) -> Self {
        Self { short, long, numbers: false, dash: false, last: &[] }
    }

    pub(super) const fn numbers(self) -> Self {
        Self { numbers: true, ..self }
    }

    pub(super) const fn dash(self) -> Self {
        Self { dash: true, ..self }
    }

    pub(super) const fn last(self, names: &'static [&'static str]) -> Self {
        Self { last: names, ..self }
    }

    /// A one-letter option, and what of a value it takes.
    fn letter(&self, letter: char) -> Option<(&'static str, Takes)> {
        let at = self.short.find(letter).filter(|_| letter != ':')?;
        let end = at + letter.len_utf8();
        let rest = &self.short[end..];
        let takes = if rest.starts_with("::") {
            Takes::Joined
        } else if rest.starts_with(':') {
            Takes::Value
        } else {
            Takes::Nothing
        };
        Some((&self.short[at..end], takes))
    }

    /// A long option by its name or by a part of it with which no other begins.
    fn word(&self, written: &str) -> Option<(&'static str, Takes)> {
        let named = |entry: &'static str| {
            let name = entry.trim_end_matches(':');
            let takes = [Takes::Nothing, Takes::Value, Takes::Joined][entry.len() - name.len()];
            (name, takes)
        };
        let all = || self.long.iter().map(|entry| named(entry));
        let mut begun = all().filter(|(name, _)| name.starts_with(written));
        all().find(|(name, _)| *name == written).or_else(|| begun.next().filter(|_| begun.next().is_none()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    Value,
    Joined,
}

/// One option that is given.
#[derive(Debug)]
pub(super) struct Given {
    /// Its letter or long name.
    pub(super) name: &'static str,
    pub(super) value: Option<Field>,
}

/// The options up to the first operand.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) given: Vec<Given>,
    /// The number of the first word after them.
    pub(super) rest: usize,
    /// Whether `--` ended them.
    pub(super) ended: bool,
}

impl Options {
    /// Whether one of these options is given.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.given.iter().any(|given| names.contains(&given.name))
    }

    /// The last value of these options.
    pub(super) fn value(&self, names: &[&str]) -> Option<&Field> {
        self.given.iter().rev().filter(|given| names.contains(&given.name)).find_map(|given| given.value.as_ref())
    }

    /// Every value of these options.
    pub(super) fn values<'o>(&'o self, names: &'o [&'o str]) -> impl Iterator<Item = &'o Field> {
        self.given.iter().filter(|given| names.contains(&given.name)).filter_map(|given| given.value.as_ref())
    }
}

/// Why reading ended before the child was found.
#[derive(Debug)]
pub(super) struct Stop {
    /// Where.
    pub(super) span: Span,
    /// Whether the word is computed; else it is an option that is not in the table.
    pub(super) computed: bool,
}

/// The words of one call, and the first of them that may be others than they are taken for.
pub(super) struct Call<'f> {
    pub(super) fields: &'f [Field],
    pub(super) doubt: Option<Span>,
}

impl<'f> Call<'f> {
    pub(super) fn new(fields: &'f [Field]) -> Self {
        Self { fields, doubt: None }
    }

    /// The words from a number on.
    pub(super) fn rest(&self, from: usize) -> Vec<Field> {
        self.fields.get(from..).unwrap_or_default().to_vec()
    }

    /// The text of a word, if all of it is known.
    pub(super) fn literal(&self, at: usize) -> Option<&'f str> {
        self.fields.get(at).and_then(Field::literal)
    }

    /// Notes a word that may be another than it is taken for.
    pub(super) fn doubt(&mut self, field: &Field) {
        self.doubt.get_or_insert_with(|| field.span.clone());
    }

    /// Notes an operand that may be none, an option, or several words.
    pub(super) fn operand(&mut self, at: usize) {
        if let Some(field) = self.fields.get(at)
            && (several(field) || (field.open == Open::One && field.text.is_empty()))
        {
            self.doubt(field);
        }
    }

    pub(super) fn stop(&self, at: usize, computed: bool) -> Stop {
        let field = self.fields.get(at).or(self.fields.last());
        Stop { span: field.map_or(0..0, |field| field.span.clone()), computed }
    }

    /// Reads options from a word on, up to the first operand.
    pub(super) fn leading(&mut self, grammar: &Grammar, from: usize) -> Result<Options, Stop> {
        let mut options = Options { given: Vec::new(), rest: from, ended: false };
        while let Some(field) = self.fields.get(options.rest) {
            let text = field.text.as_str();
            match field.literal() {
                Some("--") => {
                    options.rest += 1;
                    options.ended = true;
                    break;
                }
                Some("-") if grammar.dash => {
                    options.given.push(Given { name: "-", value: None });
                    options.rest += 1;
                    continue;
                }
                Some("-" | "") => break,
                _ if text.is_empty() => {
                    self.operand(options.rest);
                    break;
                }
                _ if !text.starts_with('-') => break,
                _ => {}
            }
            self.option(grammar, &mut options)?;
            if options.given.last().is_some_and(|given| grammar.last.contains(&given.name)) {
                break;
            }
        }
        Ok(options)
    }

    /// Reads options wherever they stand, and gives the numbers of the operands.
    pub(super) fn permuted(&mut self, grammar: &Grammar, from: usize) -> Result<(Options, Vec<usize>), Stop> {
        let mut options = self.leading(grammar, from)?;
        let mut operands = Vec::new();
        while options.rest < self.fields.len() {
            if options.ended {
                operands.extend(options.rest..self.fields.len());
                break;
            }
            self.operand(options.rest);
            operands.push(options.rest);
            let more = self.leading(grammar, options.rest + 1)?;
            options.given.extend(more.given);
            (options.rest, options.ended) = (more.rest, more.ended);
        }
        Ok((options, operands))
    }

    /// Reads one word of options, with its value.
    fn option(&mut self, grammar: &Grammar, options: &mut Options) -> Result<(), Stop> {
        let at = options.rest;
        let field = &self.fields[at];
        options.rest += 1;
        if grammar.numbers && field.literal().is_some_and(is_number) {
            options.given.push(Given { name: "0", value: Some(field.clone()) });
            return Ok(());
        }
        if let Some(long) = field.text.strip_prefix("--") {
            return self.long(grammar, options, at, long);
        }
        for (place, letter) in field.text.char_indices().skip(1) {
            let (name, takes) = grammar.letter(letter).ok_or_else(|| self.stop(at, false))?;
            let end = place + letter.len_utf8();
            let joined = end < field.text.len() || field.open != Open::No;
            let value = match takes {
                Takes::Nothing => None,
                Takes::Value | Takes::Joined if joined => Some(self.joined(field, end)),
                Takes::Value => self.next(options),
                Takes::Joined => None,
            };
            options.given.push(Given { name, value });
            if takes != Takes::Nothing {
                return Ok(());
            }
        }
        // The known letters are all options without a value: what follows them may be any.
        if field.open == Open::No { Ok(()) } else { Err(self.stop(at, true)) }
    }

    fn long(&mut self, grammar: &Grammar, options: &mut Options, at: usize, long: &str) -> Result<(), Stop> {
        let field = &self.fields[at];
        let (written, joined) = long.split_once('=').map_or((long, false), |(name, _)| (name, true));
        if !joined && field.open != Open::No {
            return Err(self.stop(at, true));
        }
        let (name, takes) = grammar.word(written).ok_or_else(|| self.stop(at, false))?;
        let value = match takes {
            Takes::Nothing if joined => return Err(self.stop(at, false)),
            _ if joined => Some(self.joined(field, "--=".len() + written.len())),
            Takes::Value => self.next(options),
            Takes::Nothing | Takes::Joined => None,
        };
        options.given.push(Given { name, value });
        Ok(())
    }

    /// The value in the same word. A pattern would have to find files that are named as the option.
    fn joined(&mut self, field: &Field, from: usize) -> Field {
        if field.open == Open::Many {
            self.doubt(field);
        }
        tail(field, from)
    }

    /// The value in the next word.
    fn next(&mut self, options: &mut Options) -> Option<Field> {
        let value = self.fields.get(options.rest)?;
        options.rest += 1;
        if several(value) {
            self.doubt(value);
        }
        Some(value.clone())
    }
}

/// Whether a word may be several.
pub(super) fn several(field: &Field) -> bool {
    field.open == Open::Many || field.pattern
}

fn is_number(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    text.strip_prefix(['-', '+']).unwrap_or(text).starts_with(|first: char| first.is_ascii_digit())
}

/// A field without the first bytes of its known text.
pub(super) fn tail(field: &Field, from: usize) -> Field {
    let exact = field.exact.map(|offset| offset + from);
    let made = made(field, field.text[from..].to_owned(), field.open, exact);
    Field { tail: field.tail.clone(), solid: field.solid, pattern: field.pattern, ..made }
}

/// The first bytes of a field's known text, followed by what is not known.
pub(super) fn head(field: &Field, to: usize, open: Open) -> Field {
    Field { pattern: field.pattern, ..made(field, field.text[..to].to_owned(), open, field.exact) }
}

/// A field with unknown text in place of its bytes `from..to`; what it does not tell itself stays so.
pub(super) fn gap(field: &Field, from: usize, to: usize) -> Field {
    let tail = match field.open {
        Open::No => field.text[to..].to_owned(),
        Open::One => field.tail.clone(),
        Open::Many => String::new(),
    };
    Field { tail, ..head(field, from, field.open.max(Open::One)) }
}

/// Another text in the place of a field's.
pub(super) fn made(field: &Field, text: String, open: Open, exact: Option<usize>) -> Field {
    Field { text, open, exact, span: field.span.clone(), from: field.from.clone(), ..Field::default() }
}

/// A word that stands nowhere in the text, in the place of another.
pub(super) fn word(text: &str, of: &Field) -> Field {
    Field::known(text, of.span.clone())
}

/// `NAME=VALUE` as its two parts.
pub(super) fn assignment(field: &Field) -> Option<(String, Field)> {
    let at = field.text.find('=')?;
    Some((field.text[..at].to_owned(), tail(field, at + 1)))
}

/// Words joined by a space, as text that a shell reads.
pub(super) fn joined(fields: &[Field]) -> Option<Field> {
    let mut text = fields.first()?.clone();
    text.open = text.open.min(Open::One);
    for field in &fields[1..] {
        text.from.add(&field.from);
        text.span = text.span.start.min(field.span.start)..text.span.end.max(field.span.end);
        text.pattern |= field.pattern;
        text.solid &= field.open == Open::No;
        match (text.open, field.open) {
            (Open::No, open) => {
                // One byte between two words that stand there as they are is a space or a tab.
                let next = text.exact.map(|offset| offset + text.text.len() + 1);
                text.exact = text.exact.filter(|_| next == field.exact);
                text.text.push(' ');
                text.text.push_str(&field.text);
                text.open = open.min(Open::One);
                text.tail.clone_from(&field.tail);
                text.solid = field.solid;
            }
            (_, Open::No) => {
                text.tail.push(' ');
                text.tail.push_str(&field.text);
            }
            _ => text.tail.clone_from(&field.tail),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::shell::wrapper::tests::words;

    const GRAMMAR: Grammar = Grammar::new("ab:c::", &["all", "base:", "bare", "colour::"]);

    fn read(line: &str) -> String {
        let fields = words(line);
        let mut call = Call::new(&fields);
        match call.leading(&GRAMMAR, 0) {
            Ok(options) => {
                let given = options.given.iter().map(|given| match &given.value {
                    Some(value) => format!("{}={} ", given.name, value.text),
                    None => format!("{} ", given.name),
                });
                format!("{}{}{}", given.collect::<String>(), options.rest, if call.doubt.is_some() { "?" } else { "" })
            }
            Err(stop) => format!("stop {}", if stop.computed { "computed" } else { "unknown" }),
        }
    }

    #[test]
    fn options_are_read_as_getopt_reads_them() {
        for (line, expected) in [
            ("-a x", "a 1"),
            ("-ab x y", "a b=x 2"),
            ("-abx y", "a b=x 1"),
            ("-c x", "c 1"),
            ("-cx -a", "c=x a 2"),
            ("--all x", "all 1"),
            ("--al x", "all 1"),
            ("--ba x", "stop unknown"),
            ("--bas x y", "base=x 2"),
            ("--base=x y", "base=x 1"),
            ("--base=", "base= 1"),
            ("--colour x", "colour 1"),
            ("--colour=x y", "colour=x 1"),
            ("--all=x", "stop unknown"),
            ("-d", "stop unknown"),
            ("-a -- -b", "a 2"),
            ("- -a", "0"),
            ("-b", "b 1"),
            ("-:", "stop unknown"),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }

    #[test]
    fn words_that_are_not_known_raise_a_doubt_or_stop() {
        for (line, expected) in [
            ("<1>", "0?"),
            ("x<1>", "0"),
            ("-b <1> x", "b= 2"),
            ("-b <> x", "b= 2?"),
            ("-bx<1> x", "b=x 1"),
            ("-b<> x", "b= 1?"),
            ("-a<1> x", "stop computed"),
            ("-<1> x", "stop computed"),
            ("--base=<1> x", "base= 1"),
            ("--ba<1> x", "stop computed"),
            ("-b * x", "b=* 2?"),
            ("-b* x", "b=* 1"),
            ("* x", "0"),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }

    #[test]
    fn joined_words_stand_where_they_stood_if_they_are_next_to_each_other() {
        let field = |text: &str, at: usize| Field { exact: Some(at), ..Field::known(text, at..at + text.len()) };
        let near = joined(&[field("rm", 5), field("-rf", 8), field("src", 12)]).unwrap();
        assert_eq!((near.text.as_str(), near.exact, near.span), ("rm -rf src", Some(5), 5..15));
        let apart = joined(&[field("rm", 5), field("-rf", 9)]).unwrap();
        assert_eq!((apart.text.as_str(), apart.exact), ("rm -rf", None));
        let open = joined(&[field("rm", 5), Field::unknown(Open::Many, 8..10), field("x", 11)]).unwrap();
        assert_eq!((open.text.as_str(), open.open, open.span), ("rm ", Open::One, 5..12));
    }
}
