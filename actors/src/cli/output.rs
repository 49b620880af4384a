//! Tables, colours and error texts.

use std::error::Error;
use std::io::IsTerminal;

use comfy_table::{ContentArrangement, Table, presets};

use super::args::Color;

/// An error with its causes, in one line.
pub(super) fn chain(error: &dyn Error) -> String {
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
