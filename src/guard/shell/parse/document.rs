//! Here-documents: announced within a line, read after its line feed.
//!
//! | delimiter          | body                                                                                       |
//! |--------------------|--------------------------------------------------------------------------------------------|
//! | any part quoted    | text as it stands                                                                          |
//! | unquoted           | lines joined at backslashes, also before the delimiter is looked for; expansions           |
//! | `<<-`              | without leading tabs                                                                       |
//! | with an expansion  | refused, ambiguous: shells differ in what the delimiter is                                 |
//! | within `$(..)`     | bash also ends it at a line that begins with the delimiter and holds a `)`: read so where nothing but blanks is between, else refused |

use std::borrow::Cow;
use std::ops::Range;

use super::Read;
use super::cursor::Parser;
use super::parts::Parts;
use super::quote::{Context, End};
use crate::guard::shell::syntax::{Command, Kind, List, Part, PartKind, RedirectKind, Why, Word};

/// The here-documents of one text or substitution.
#[derive(Debug, Default)]
pub(super) struct Documents {
    waiting: Vec<Waiting>,
    /// The bodies that are read; a redirection holds the place of its own until the list is complete.
    bodies: Vec<Word>,
    within_substitution: bool,
}

#[derive(Debug)]
struct Waiting {
    place: usize,
    delimiter: String,
    quoted: bool,
    tabs: bool,
}

impl Documents {
    pub(super) fn of_substitution() -> Self {
        Self { within_substitution: true, ..Self::default() }
    }

    /// Whether a body is still to come.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

impl<'t> Parser<'t> {
    /// Notes a here-document by the word after its operator. What is returned stands for its body until [`fill`].
    pub(super) fn await_document(&mut self, word: &Word, start: usize, tabs: bool) -> Read<Word> {
        self.count()?;
        let mut delimiter = String::new();
        for part in &word.parts {
            match &part.kind {
                PartKind::Text(text) if !text.contains('\n') => delimiter.push_str(text),
                _ => return Err(self.refuse_since(start, Why::Ambiguous)),
            }
        }
        let quoted = self.text[start..self.at].replace("\\\n", "").contains(['\'', '"', '\\']);
        let place = self.documents.bodies.len();
        self.documents.bodies.push(Word::default());
        self.documents.waiting.push(Waiting { place, delimiter, quoted, tabs });
        Ok(Word { span: place..place, parts: Vec::new() })
    }

    /// Reads the bodies that begin here.
    pub(super) fn read_documents(&mut self) -> Read<()> {
        for waiting in std::mem::take(&mut self.documents.waiting) {
            let body = self.document(&waiting)?;
            self.documents.bodies[waiting.place] = body;
        }
        Ok(())
    }

    fn document(&mut self, waiting: &Waiting) -> Read<Word> {
        let start = self.at;
        let mut body = Body::default();
        while self.at < self.text.len() {
            let line_start = self.at;
            let line = self.document_line(waiting.quoted);
            let stripped = if waiting.tabs { &*line } else { line.trim_start_matches('\t') };
            let ends = [&*line, stripped].map(|line| line.strip_suffix('\n').unwrap_or(line)).contains(&&*waiting.delimiter);
            if ends || self.ends_within(stripped, matches!(line, Cow::Borrowed(_)), &waiting.delimiter, line_start)? {
                return self.document_word(start..line_start, &body, waiting.quoted);
            }
            body.differs |= matches!(line, Cow::Owned(_)) || stripped.len() < line.len();
            body.text.push_str(stripped);
        }
        self.document_word(start..self.at, &body, waiting.quoted)
    }

    /// The next line with its line feed; without quotes the next ones too, if backslashes join them.
    fn document_line(&mut self, quoted: bool) -> Cow<'t, str> {
        let text = self.text;
        let (start, mut line) = (self.at, None::<String>);
        loop {
            let from = self.at;
            self.at = text[from..].find('\n').map_or(text.len(), |length| from + length + 1);
            let physical = &text[from..self.at];
            let joins = !quoted && physical.strip_suffix('\n').is_some_and(ends_with_backslash);
            match &mut line {
                None if !joins => return Cow::Borrowed(&text[start..self.at]),
                line => line.get_or_insert_default().push_str(if joins { &physical[..physical.len() - 2] } else { physical }),
            }
            if !joins || self.at >= text.len() {
                return Cow::Owned(line.unwrap_or_default());
            }
        }
    }

    /// Whether a line that begins with the delimiter ends the body, and goes on with the substitution around it.
    fn ends_within(&mut self, line: &str, exact: bool, delimiter: &str, start: usize) -> Read<bool> {
        let rest = line.strip_prefix(delimiter).filter(|rest| self.documents.within_substitution && rest.contains(')'));
        let Some(rest) = rest else { return Ok(false) };
        if !exact || !rest.trim_start_matches([' ', '\t']).starts_with(')') {
            return Err(self.refuse_since(start, Why::Ambiguous));
        }
        self.at -= rest.len();
        Ok(true)
    }

    fn document_word(&mut self, bytes: Range<usize>, body: &Body, quoted: bool) -> Read<Word> {
        let span = self.span(bytes.clone());
        if quoted {
            let text = Part { kind: PartKind::Text(body.text.clone()), quoted: true, span: span.clone() };
            return Ok(Word { span, parts: if body.text.is_empty() { Vec::new() } else { vec![text] } });
        }
        let (base, text) = (self.base(bytes.clone(), !body.differs), if body.differs { &body.text } else { &self.text[bytes] });
        self.deeper(|parser| {
            let (mut nested, mut parts) = (parser.within(text, base), Parts::default());
            nested.quoted(&mut parts, End::Text, Context::Document)?;
            Ok(Word { span, ..parts.word(&nested, 0..text.len()) })
        })
    }
}

/// The lines of a body.
#[derive(Default)]
struct Body {
    text: String,
    /// Whether the text does not stand so in the source.
    differs: bool,
}

/// Whether a line ends with a backslash that no backslash takes the meaning of.
fn ends_with_backslash(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// Puts the bodies that were read into the redirections of a list.
pub(super) fn fill(list: &mut List, documents: &mut Documents) {
    if documents.bodies.is_empty() {
        return;
    }
    fill_list(list, &mut documents.bodies);
    documents.bodies.clear();
}

fn fill_list(list: &mut List, bodies: &mut [Word]) {
    for command in list.0.iter_mut().flat_map(|item| &mut item.commands) {
        fill_command(command, bodies);
    }
}

fn fill_command(command: &mut Command, bodies: &mut [Word]) {
    for redirect in &mut command.redirects {
        if let RedirectKind::HereDocument(word) = &mut redirect.kind {
            *word = std::mem::take(&mut bodies[word.span.start]);
        }
    }
    match &mut command.kind {
        Kind::Group(list) | Kind::Subshell(list) => fill_list(list, bodies),
        Kind::For { body, .. } | Kind::ArithmeticFor { body, .. } => fill_list(body, bodies),
        Kind::Loop { condition, body } => {
            fill_list(condition, bodies);
            fill_list(body, bodies);
        }
        Kind::If { branches, otherwise } => {
            for (condition, body) in branches {
                fill_list(condition, bodies);
                fill_list(body, bodies);
            }
            otherwise.iter_mut().for_each(|list| fill_list(list, bodies));
        }
        Kind::Case { arms, .. } => arms.iter_mut().for_each(|(_, body)| fill_list(body, bodies)),
        Kind::Function { body, .. } | Kind::Coprocess(body) => fill_command(body, bodies),
        Kind::Simple { .. } | Kind::Arithmetic(_) | Kind::Condition(_) => {}
    }
}
