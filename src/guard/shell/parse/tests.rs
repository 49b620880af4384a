//! Programs and words of lines, written down in one notation.

use super::parse;
use crate::guard::shell::syntax::{Base, Why};

fn why(text: &str) -> Option<Why> {
    parse(text, Base::At(0), 0).refused.map(|refused| refused.why)
}

#[test]
fn a_mistake_is_refused_and_the_lines_before_it_stay() {
    let parsed = parse("ls\nrm; (", Base::At(0), 0);
    assert_eq!(parsed.list.0.len(), 1);
    assert_eq!(parsed.refused.map(|refused| refused.why), Some(Why::Unterminated));
    assert_eq!(why("ls; )"), Some(Why::Unexpected));
}
