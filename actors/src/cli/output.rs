//! Tables, colours and error texts.

use std::error::Error;
use std::io::{self, IsTerminal, Write};

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use serde_json::ser::Formatter;

use super::args::Color;
use crate::replay::{is_hidden, plain};

/// An error with its causes, without control characters but its line feeds.
pub(super) fn chain(error: &dyn Error) -> String {
    let text = causes(error);
    let lines: Vec<_> = text.lines().map(plain).collect();
    lines.join("\n")
}

fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // A transparent error repeats its source's text.
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// A plain table: readable in a terminal, and line by line in a pipe.
pub(super) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_header(header.iter().copied());
    table
}

/// Writes a value as JSON. Characters that could steer a terminal, or hide what it shows, are written as escapes, which any reader takes back.
pub(super) fn json(out: &mut dyn Write, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(out, Plain))
}

/// JSON without white space and without hidden characters.
struct Plain;

impl Formatter for Plain {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, hidden)) = rest.char_indices().find(|(_, c)| is_hidden(*c)) {
            writer.write_all(&rest.as_bytes()[..at])?;
            hidden.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(writer, "\\u{unit:04x}"))?;
            rest = &rest[at + hidden.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }
}

/// Takes everything, also when whoever reads has gone: what was found is still to be told by the exit code.
pub(super) struct Heedless<'w> {
    out: &'w mut dyn Write,
    is_gone: bool,
}

impl<'w> Heedless<'w> {
    pub(super) fn new(out: &'w mut dyn Write) -> Self {
        Self { out, is_gone: false }
    }

    fn heed<T>(&mut self, done: io::Result<T>, otherwise: T) -> io::Result<T> {
        match done {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_gone = true;
                Ok(otherwise)
            }
            done => done,
        }
    }
}

impl Write for Heedless<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_gone {
            return Ok(bytes.len());
        }
        let written = self.out.write(bytes);
        self.heed(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_gone {
            return Ok(());
        }
        let flushed = self.out.flush();
        self.heed(flushed, ())
    }
}

/// Paints words of a decision, where colours are wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint(bool);

impl Paint {
    pub(super) fn new(color: Color) -> Self {
        Self(match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => std::io::stdout().is_terminal(),
        })
    }

    pub(super) fn decision(self, decision: &str) -> String {
        let code = match decision {
            "deny" | "failed" => "31",
            "ask" => "33",
            "rewrite" => "36",
            _ => return decision.to_owned(),
        };
        if self.0 { format!("\u{1b}[{code}m{decision}\u{1b}[0m") } else { decision.to_owned() }
    }
}
