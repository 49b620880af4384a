//! The recorded lines: bash's own parser says which of them it takes.

use std::fs;

use serde::Deserialize;

use super::why;
use crate::guard::shell::syntax::Why;

#[expect(dead_code, reason = "the integration tests use more of it")]
#[path = "../../../../../tests/it/data.rs"]
mod data;

#[derive(Deserialize)]
struct Recorded {
    lines: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    id: String,
    line: String,
    parse_ok: bool,
}

/// Lines where the answer is another than bash's, on purpose.
const OTHERWISE: &[(&str, Option<Why>)] = &[
    // Carriage returns and escapes in unquoted text, and a NUL: what is shown is not what runs.
    ("control-001", Some(Why::Control)),
    ("control-003", Some(Why::Control)),
    ("control-004", Some(Why::Control)),
    ("control-006", Some(Why::Control)),
    // Thousands of levels.
    ("deep-nesting-004", Some(Why::TooDeep)),
    ("deep-nesting-006", Some(Why::TooDeep)),
    ("deep-nesting-007", Some(Why::TooDeep)),
    ("deep-nesting-009", Some(Why::TooDeep)),
    ("deep-nesting-010", Some(Why::TooDeep)),
];

/// What bash takes is read to its end, what it refuses is refused; the exceptions stand in a list, and each of them is one.
#[test]
fn recorded_lines_are_read_where_bash_takes_them() {
    let Some(folder) = data::folder("TIPSTAFF_SHELL_LINES_DIR", "../shared/shell-lines") else { return };
    let text = fs::read_to_string(folder.join("lines.json")).expect("the file is there");
    let recorded: Recorded = serde_json::from_str(&text).expect("the file is as its README says");
    assert!(!recorded.lines.is_empty());
    for Line { id, line, parse_ok } in &recorded.lines {
        let why = why(line);
        match OTHERWISE.iter().find(|(other, _)| other == id) {
            Some((_, expected)) => assert_eq!(why, *expected, "{id}"),
            None => assert_eq!(why.is_none(), *parse_ok, "{id}: {why:?}"),
        }
    }
}
