//! Texts of a transcript as people may see them. What could steer a terminal, or hide and turn what it shows, is written as an escape.

#[cfg(feature = "cli")]
use std::borrow::Cow;

use serde_json::Value;

/// The longest text of a call that a decision shows, in bytes.
const MAX_CALL: usize = 240;

/// A text without control characters. Line feeds are such.
#[cfg(feature = "cli")]
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_hidden) { Cow::Owned(escaped(text, usize::MAX)) } else { Cow::Borrowed(text) }
}

/// Control characters, and characters that have no width or turn the direction of others.
pub(crate) fn is_hidden(c: char) -> bool {
    let turns_or_has_no_width = matches!(c,
        '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
    c.is_control() || turns_or_has_no_width
}

/// A call as people read it: the one text of a shell call, or its JSON; cut between two characters.
pub(super) fn call(arguments: Option<&Value>) -> String {
    let Some(arguments) = arguments else { return String::new() };
    let told = ["command", "cmd", "file_path", "path", "query", "url"].into_iter().find_map(|name| arguments.get(name)?.as_str());
    match told.or_else(|| arguments.as_str()) {
        Some(text) => escaped(text, MAX_CALL),
        None => escaped(&arguments.to_string(), MAX_CALL),
    }
}

fn escaped(text: &str, limit: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(limit.saturating_add(8)));
    for c in text.chars() {
        if shown.len() >= limit {
            shown.push('…');
            break;
        }
        if is_hidden(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[cfg(feature = "cli")]
    #[test]
    fn a_text_cannot_steer_a_terminal() {
        assert_eq!(plain("ls \u{1b}[2J\u{9b}1m\r\n"), "ls \\u{1b}[2J\\u{9b}1m\\r\\n");
        assert_eq!(plain("abc\u{202e}txt\u{200b}"), "abc\\u{202e}txt\\u{200b}");
        assert!(matches!(plain("häufig 東"), Cow::Borrowed("häufig 東")));
    }

    #[test]
    fn a_call_is_shown_by_its_text_and_cut_between_characters() {
        assert_eq!(call(Some(&json!({ "command": "ls\n-l", "description": "x" }))), "ls\\n-l");
        assert_eq!(call(Some(&json!({ "command": ["ls", "-l"] }))), r#"{"command":["ls","-l"]}"#);
        assert_eq!(call(Some(&json!("*** Begin Patch"))), "*** Begin Patch");
        let long = call(Some(&json!({ "cmd": "é".repeat(1_000) })));
        assert_eq!(long, format!("{}…", "é".repeat(MAX_CALL / 2)));
        assert_eq!(call(None), "");
    }
}
