//! From a line to simple commands of literal words, or the reason why the line is more than that.
//!
//! | in the line                                                    | read as                                 |
//! |----------------------------------------------------------------|-----------------------------------------|
//! | unquoted text, `'..'`, `".."` without expansion, `\x`          | a literal word                          |
//! | `\` and a line feed                                            | nothing                                 |
//! | `;`, a line feed, `&&`, `\|\|`, `\|`                           | the end of a simple command             |
//! | `2>&1`, `>/dev/null`, `2>>/dev/null`, `</dev/null`             | nothing: no data moves within the line  |
//! | `$`, a backquote, `* ? [`, `{ }`, `~`, `=` or `#` before a word | not literal                             |
//! | `( )`, `&`, here-documents, redirections to files, comments    | not literal                             |
//! | a reserved word or an assignment in the place of the program   | not literal                             |
//! | an unterminated quote, a missing command                       | not literal                             |
//!
//! ## Why is so much refused?
//!
//! A refusal is an `ask`, a wrong reading is a bypass. What a shell does with the refused constructs differs between shells and settings; each
//! construct leaves the table's lower half when this module can say what it runs.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// The longest line that is read, in bytes.
pub(super) const MAX_LINE_BYTES: usize = 64 * 1024;

/// Reads a line. Linear in its length; never fails otherwise than by [`Reading::NotLiteral`].
pub(super) fn read(line: &str) -> Reading<'_> {
    if line.len() > MAX_LINE_BYTES {
        return Reading::NotLiteral(NotLiteral { at: MAX_LINE_BYTES, what: Construct::TooLong });
    }
    let mut reader = Reader { line, bytes: line.as_bytes(), at: 0, commands: Vec::new(), words: Vec::new(), pipeline: 0 };
    match reader.commands() {
        Ok(()) => Reading::Commands(reader.commands),
        Err(refused) => Reading::NotLiteral(refused),
    }
}

/// What a line holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reading<'a> {
    /// A list of pipelines of simple commands, in the order of the text.
    Commands(Vec<SimpleCommand<'a>>),
    /// Something whose meaning is not its text.
    NotLiteral(NotLiteral),
}

/// A program with its words. There is always at least one word.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SimpleCommand<'a> {
    /// The program and its words, unquoted.
    pub(super) words: Vec<Word<'a>>,
    /// Commands with the same number are joined by `|`.
    pub(super) pipeline: usize,
}

impl<'a> SimpleCommand<'a> {
    /// The word in the place of the program.
    pub(super) fn program(&self) -> &Word<'a> {
        &self.words[0]
    }

    /// The words after the program.
    pub(super) fn arguments(&self) -> &[Word<'a>] {
        &self.words[1..]
    }
}

/// A literal word.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word<'a> {
    /// The text that the program gets.
    pub(super) text: Cow<'a, str>,
    /// Where it stands: bytes of the line, or for an argument list the number of the argument.
    pub(super) span: Range<usize>,
}

/// Why a line is not only literal words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotLiteral {
    /// The byte where it begins.
    pub(super) at: usize,
    /// What stands there.
    pub(super) what: Construct,
}

/// A construct that is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Construct {
    /// `$` or a backquote.
    Expansion,
    /// `* ? [`, `~`, braces, `=` before a word.
    Pattern,
    /// `( )`: a subshell, a function, arithmetic, a process substitution.
    Parenthesis,
    /// `&` that ends a command, `|&`, `&>`.
    Background,
    /// A redirection from or to a file, a here-document or here-string.
    Redirection,
    /// `#` before a word.
    Comment,
    /// An assignment before a command.
    Assignment,
    /// A reserved word in the place of the program.
    Reserved,
    /// A control character or an unusual space.
    Control,
    /// A program word that is not printable ASCII.
    ForeignProgram,
    /// A quote that is not closed, or a backslash at the end.
    Unterminated,
    /// An operator without a command beside it.
    MissingCommand,
    /// More than [`MAX_LINE_BYTES`].
    TooLong,
}

impl fmt::Display for Construct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expansion => "an expansion or substitution",
            Self::Pattern => "a pattern, brace or tilde that the shell expands",
            Self::Parenthesis => "parentheses",
            Self::Background => "a command in the background or a combined redirection",
            Self::Redirection => "a redirection from or to a file",
            Self::Comment => "a comment",
            Self::Assignment => "an assignment",
            Self::Reserved => "a reserved word of the shell",
            Self::Control => "a control character or an unusual space",
            Self::ForeignProgram => "a program whose name is not printable ASCII",
            Self::Unterminated => "a quote or escape without an end",
            Self::MissingCommand => "an operator without a command",
            Self::TooLong => "more text than is read",
        })
    }
}

/// Words that are no program where a program is expected, in bash or zsh. Quoting one makes it a program; a quoted one is refused all the same.
const RESERVED: &[&str] = &[
    "!",
    "-",
    "always",
    "case",
    "coproc",
    "do",
    "done",
    "elif",
    "else",
    "end",
    "esac",
    "fi",
    "for",
    "foreach",
    "function",
    "if",
    "in",
    "nocorrect",
    "noglob",
    "repeat",
    "select",
    "then",
    "time",
    "until",
    "while",
];

/// The only file that a redirection may name.
const NULL_DEVICE: &str = "/dev/null";

struct Reader<'a> {
    line: &'a str,
    bytes: &'a [u8],
    at: usize,
    commands: Vec<SimpleCommand<'a>>,
    words: Vec<Word<'a>>,
    pipeline: usize,
}

type Step<T> = Result<T, NotLiteral>;

impl<'a> Reader<'a> {
    /// The whole line.
    fn commands(&mut self) -> Step<()> {
        // An operator that waits for the command after it: `&&`, `||`, `|`.
        let mut waiting = None;
        // A redirection was read and no word yet.
        let mut redirected = None;
        loop {
            self.skip_blanks();
            let start = self.at;
            let Some(byte) = self.peek() else { break };
            match byte {
                b'\n' | b';' | b'|' | b'&' => {
                    let joined = self.operator()?;
                    match (self.words.is_empty(), redirected, byte) {
                        (true, None, b'\n') => continue,
                        (true, _, _) => return refuse(start, Construct::MissingCommand),
                        (false, ..) => self.end_command(),
                    }
                    redirected = None;
                    waiting = (byte != b'\n' && byte != b';').then_some(start);
                    if !joined {
                        self.pipeline += 1;
                    }
                }
                b'<' | b'>' => {
                    self.redirection()?;
                    redirected = Some(start);
                }
                b'(' | b')' => return refuse(start, Construct::Parenthesis),
                b'#' => return refuse(start, Construct::Comment),
                _ => {
                    let word = self.word()?;
                    // Digits next to `<` or `>` are the number of a descriptor, unless they are quoted.
                    if matches!(self.peek(), Some(b'<' | b'>')) && is_number(&word.text) {
                        if word.text.len() == word.span.len() {
                            continue;
                        }
                        return refuse(start, Construct::Redirection);
                    }
                    if self.words.is_empty() {
                        check_program(&word)?;
                    }
                    self.words.push(word);
                }
            }
        }
        if !self.words.is_empty() {
            self.end_command();
            return Ok(());
        }
        match waiting.or(redirected) {
            Some(at) => refuse(at, Construct::MissingCommand),
            None => Ok(()),
        }
    }

    fn end_command(&mut self) {
        let words = std::mem::take(&mut self.words);
        self.commands.push(SimpleCommand { words, pipeline: self.pipeline });
    }

    /// Reads `;`, a line feed, `&&`, `||` or `|`. True for `|`, which joins two commands.
    fn operator(&mut self) -> Step<bool> {
        let start = self.at;
        let (byte, next) = (self.bytes[start], self.bytes.get(start + 1).copied());
        let (length, joined) = match (byte, next) {
            (b'\n', _) => (1, false),
            (b';', Some(b';' | b'&')) => return refuse(start, Construct::MissingCommand),
            (b';', _) => (1, false),
            (b'&', Some(b'&')) | (b'|', Some(b'|')) => (2, false),
            (b'|', Some(b'&')) | (b'&', _) => return refuse(start, Construct::Background),
            _ => (1, true),
        };
        self.at += length;
        Ok(joined)
    }

    /// Reads `<` or `>` with its target: a duplicated descriptor or the null device.
    fn redirection(&mut self) -> Step<()> {
        let start = self.at;
        let output = self.bytes[start] == b'>';
        self.at += 1;
        match self.peek() {
            Some(b'>') if output => self.at += 1,
            Some(b'&') if output => {
                self.at += 1;
                let digits = self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                self.at += digits;
                return if digits > 0 && self.at_boundary() { Ok(()) } else { refuse(start, Construct::Redirection) };
            }
            _ => {}
        }
        self.skip_blanks();
        if self.at_boundary() || self.word()?.text != NULL_DEVICE {
            return refuse(start, Construct::Redirection);
        }
        Ok(())
    }

    /// Reads one word; the reader stands on its first byte.
    fn word(&mut self) -> Step<Word<'a>> {
        let start = self.at;
        // The text up to here, once it is no longer a slice of the line.
        let mut text: Option<String> = None;
        let mut slice = start;
        // Where a tilde would be expanded: at the start, and after `=` or `:` as in an assignment.
        let mut tilde = true;
        while !self.at_boundary() {
            let at = self.at;
            let byte = self.bytes[at];
            let after_separator = std::mem::take(&mut tilde);
            match byte {
                b'\\' | b'\'' | b'"' => {
                    let text = text.get_or_insert_default();
                    text.push_str(&self.line[slice..at]);
                    match byte {
                        b'\\' => tilde = self.escaped(text)? && after_separator,
                        b'\'' => self.single_quoted(text)?,
                        _ => self.double_quoted(text)?,
                    }
                    slice = self.at;
                }
                b'$' | b'`' => return refuse(at, Construct::Expansion),
                b'[' if at == start && matches!(self.bytes.get(at + 1), None | Some(b' ' | b'\t')) => self.at += 1,
                b'*' | b'?' | b'[' | b'{' | b'}' => return refuse(at, Construct::Pattern),
                b'~' if after_separator => return refuse(at, Construct::Pattern),
                b'=' if at == start => return refuse(at, Construct::Pattern),
                b'=' | b':' => {
                    tilde = true;
                    self.at += 1;
                }
                _ => self.character()?,
            }
        }
        let span = start..self.at;
        let text = match text {
            None => Cow::Borrowed(&self.line[span.clone()]),
            Some(mut text) => {
                text.push_str(&self.line[slice..self.at]);
                Cow::Owned(text)
            }
        };
        Ok(Word { text, span })
    }

    /// A backslash outside quotes. True when it only continues the line.
    fn escaped(&mut self, text: &mut String) -> Step<bool> {
        let start = self.at;
        self.at += 1;
        match self.peek() {
            None => refuse(start, Construct::Unterminated),
            Some(b'\n') => {
                self.at += 1;
                Ok(true)
            }
            Some(_) => self.copy(text).map(|()| false),
        }
    }

    /// `'..'`.
    fn single_quoted(&mut self, text: &mut String) -> Step<()> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None => return refuse(start, Construct::Unterminated),
                Some(b'\'') => break,
                Some(_) => self.copy(text)?,
            }
        }
        self.at += 1;
        Ok(())
    }

    /// `".."` without expansions.
    fn double_quoted(&mut self, text: &mut String) -> Step<()> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None => return refuse(start, Construct::Unterminated),
                Some(b'"') => break,
                Some(b'$' | b'`') => return refuse(self.at, Construct::Expansion),
                Some(b'\\') => match self.bytes.get(self.at + 1) {
                    Some(b'\n') => self.at += 2,
                    Some(b'$' | b'`' | b'"' | b'\\') => {
                        self.at += 1;
                        self.copy(text)?;
                    }
                    _ => self.copy(text)?,
                },
                Some(_) => self.copy(text)?,
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Appends the character here, quoted, to a text.
    fn copy(&mut self, text: &mut String) -> Step<()> {
        let start = self.at;
        if matches!(self.bytes[start], b'\n' | b'\t') {
            self.at += 1;
        } else {
            self.character()?;
        }
        text.push_str(&self.line[start..self.at]);
        Ok(())
    }

    /// Steps over one character of a word, unless it is one that a reader of the line would not see.
    fn character(&mut self) -> Step<()> {
        let at = self.at;
        let character = self.line[at..].chars().next().expect("the reader stands on a character of the line");
        if character.is_control() || (!character.is_ascii() && character.is_whitespace()) {
            return refuse(at, Construct::Control);
        }
        self.at += character.len_utf8();
        Ok(())
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.bytes[self.at..] {
                [b' ' | b'\t', ..] => self.at += 1,
                [b'\\', b'\n', ..] => self.at += 2,
                _ => return,
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Whether a word ends here.
    fn at_boundary(&self) -> bool {
        matches!(self.peek(), None | Some(b' ' | b'\t' | b'\n' | b';' | b'|' | b'&' | b'<' | b'>' | b'(' | b')'))
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn refuse<T>(at: usize, what: Construct) -> Step<T> {
    Err(NotLiteral { at, what })
}

/// Refuses a first word that is no program's name.
fn check_program(word: &Word<'_>) -> Step<()> {
    let text = word.text.as_ref();
    let name = text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    let what = if RESERVED.contains(&text) {
        Construct::Reserved
    } else if name > 0
        && !text.as_bytes()[0].is_ascii_digit()
        && (text[name..].starts_with('=') || text[name..].starts_with("+="))
    {
        Construct::Assignment
    } else if !text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
        Construct::ForeignProgram
    } else {
        return Ok(());
    };
    refuse(word.span.start, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<(usize, Vec<String>)> {
        match read(line) {
            Reading::Commands(commands) => commands
                .iter()
                .map(|command| (command.pipeline, command.words.iter().map(|word| word.text.clone().into_owned()).collect()))
                .collect(),
            Reading::NotLiteral(refused) => panic!("{line:?} is refused: {refused:?}"),
        }
    }

    fn refused(line: &str) -> (usize, Construct) {
        match read(line) {
            Reading::NotLiteral(NotLiteral { at, what }) => (at, what),
            Reading::Commands(commands) => panic!("{line:?} is read as {commands:?}"),
        }
    }

    fn command(pipeline: usize, words: &[&str]) -> (usize, Vec<String>) {
        (pipeline, words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn quotes_and_escapes_become_the_text_that_the_program_gets() {
        for (line, expected) in [
            (r#"c""at 'x'"y"\z"#, ["cat", "xyz"]),
            (r"c\at a\ b", ["cat", "a b"]),
            (r#"cat "a\"b\\c\d\$e""#, ["cat", r#"a"b\c\d$e"#]),
            ("cat 'a\nb'", ["cat", "a\nb"]),
            ("ca\\\nt \\\n x", ["cat", "x"]),
            ("cat \"a\\\nb\"", ["cat", "ab"]),
            ("cat ''", ["cat", ""]),
            ("cat x#y", ["cat", "x#y"]),
            ("cat \\#y", ["cat", "#y"]),
            ("cat a!b", ["cat", "a!b"]),
            ("cat HEAD~2", ["cat", "HEAD~2"]),
            ("cat é→", ["cat", "é→"]),
        ] {
            assert_eq!(words(line), [command(0, &expected)], "{line:?}");
        }
    }

    #[test]
    fn lists_and_pipelines_are_split() {
        assert_eq!(
            words("a 1&&b|c||d;e\n\nf |\n g ;\n"),
            [
                command(0, &["a", "1"]),
                command(1, &["b"]),
                command(1, &["c"]),
                command(2, &["d"]),
                command(3, &["e"]),
                command(4, &["f"]),
                command(4, &["g"]),
            ]
        );
        assert!(words(" \t\n ").is_empty());
    }

    #[test]
    fn redirections_to_nowhere_are_read_over() {
        for line in ["a b 2>&1", "a 2>/dev/null b", ">/dev/null a b", "a b >> /dev/null 2>&1", "a b </dev/null", "a b >&2"] {
            assert_eq!(words(line), [command(0, &["a", "b"])], "{line:?}");
        }
        assert_eq!(words("a b2>&1"), [command(0, &["a", "b2"])]);
        assert_eq!(words("a 2 >&1"), [command(0, &["a", "2"])]);
        assert_eq!(words("a 2>&1|b"), [command(0, &["a"]), command(0, &["b"])]);
    }

    #[test]
    fn spans_are_bytes_of_the_line() {
        let line = "é 'a b' && git\\\n push";
        let Reading::NotLiteral(NotLiteral { at: 0, what: Construct::ForeignProgram }) = read(line) else {
            panic!("é is no program")
        };
        let Reading::Commands(commands) = read(&line[3..]) else { panic!("the rest is literal") };
        assert_eq!(commands[0].program().span, 0..5);
        assert_eq!(commands[1].arguments()[0].span, 15..19);
    }

    #[test]
    fn what_is_not_literal_is_named_with_its_place() {
        for (line, at, what) in [
            ("a $x", 2, Construct::Expansion),
            ("a \"b$(c)\"", 4, Construct::Expansion),
            ("a `b`", 2, Construct::Expansion),
            ("a $'b'", 2, Construct::Expansion),
            ("a *.rs", 2, Construct::Pattern),
            ("a [b]", 2, Construct::Pattern),
            ("a x?", 3, Construct::Pattern),
            ("a {b,c}", 2, Construct::Pattern),
            ("a ~/b", 2, Construct::Pattern),
            ("a x=~/b", 4, Construct::Pattern),
            ("a =b", 2, Construct::Pattern),
            ("(a)", 0, Construct::Parenthesis),
            ("a() b", 1, Construct::Parenthesis),
            ("a <(b)", 2, Construct::Redirection),
            ("a & b", 2, Construct::Background),
            ("a |& b", 2, Construct::Background),
            ("a &>b", 2, Construct::Background),
            ("a >b", 2, Construct::Redirection),
            ("a >&b", 2, Construct::Redirection),
            ("a >&1b", 2, Construct::Redirection),
            ("a <<E\nE", 2, Construct::Redirection),
            ("a <<<b", 2, Construct::Redirection),
            ("a >|/dev/null", 2, Construct::Redirection),
            ("a >", 2, Construct::Redirection),
            ("2\\\n>/dev/null a", 0, Construct::Redirection),
            ("a x=\\\n~", 6, Construct::Pattern),
            ("a # b", 2, Construct::Comment),
            ("A=1 b", 0, Construct::Assignment),
            ("A+=1", 0, Construct::Assignment),
            ("a; if b", 3, Construct::Reserved),
            ("time a", 0, Construct::Reserved),
            ("! a", 0, Construct::Reserved),
            ("a \u{1b}b", 2, Construct::Control),
            ("a b\r", 3, Construct::Control),
            ("a '\0'", 3, Construct::Control),
            ("a\u{a0}b", 1, Construct::Control),
            ("r\u{200b}m", 0, Construct::ForeignProgram),
            ("a 'b", 2, Construct::Unterminated),
            ("a \"b", 2, Construct::Unterminated),
            ("a \\", 2, Construct::Unterminated),
            ("| a", 0, Construct::MissingCommand),
            ("a ;; b", 2, Construct::MissingCommand),
            ("a;\n;b", 3, Construct::MissingCommand),
            ("a &&", 2, Construct::MissingCommand),
            ("a | | b", 4, Construct::MissingCommand),
            (">/dev/null", 0, Construct::MissingCommand),
            (">/dev/null\na", 10, Construct::MissingCommand),
        ] {
            assert_eq!(refused(line), (at, what), "{line:?}");
        }
    }

    #[test]
    fn a_line_beyond_the_bound_is_refused_unread() {
        assert_eq!(refused(&"a ".repeat(MAX_LINE_BYTES)), (MAX_LINE_BYTES, Construct::TooLong));
        assert_eq!(words(&"a ".repeat(MAX_LINE_BYTES / 2))[0].1.len(), MAX_LINE_BYTES / 2);
    }
}
