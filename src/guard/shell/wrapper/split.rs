//! The words of a text, as programs other than a shell split it.
//!
//! | in the text          | `env -S`                        | git (aliases)                  | rsync (`-e`)                  |
//! |----------------------|---------------------------------|--------------------------------|-------------------------------|
//! | blanks               | end a word                      | each run of them begins a word | spaces end a word             |
//! | `'..'`               | quotes; `\\` and `\'` are escapes | quotes                       | quotes; `''` is a quote       |
//! | `".."`               | quotes                          | quotes                         | quotes; `""` is a quote       |
//! | `\_`                 | ends a word; in `".."` a space  | `_`                            | itself                        |
//! | `\c`                 | the end                         | `c`                            | itself                        |
//! | `\f \n \r \t \v`     | that control character          | the letter                     | itself                        |
//! | `\" \# \$ \' \\`     | the character                   | the character                  | itself                        |
//! | any other `\`        | refused                         | the character after it         | itself                        |
//! | `#` before a word    | the end                         | itself                         | itself                        |
//! | `${NAME}`            | unknown text                    | itself                         | itself                        |
//! | any other `$`        | refused                         | itself                         | itself                        |
//! | a quote without end  | refused                         | refused                        | refused                       |

use super::super::field::{Field, Open};
use super::options::made;

/// The words of a text by the rules of `env -S`; nothing where it refuses the text or the text is not known.
pub(super) fn env(whole: &Field) -> Option<Vec<Field>> {
    let mut words = Words::new(whole);
    let mut chars = whole.literal()?.char_indices().peekable();
    let mut quote = None;
    while let Some((at, c)) = chars.next() {
        match (c, quote) {
            ('\'' | '"', None) => {
                quote = Some(c);
                words.begin();
            }
            (_, Some(open)) if c == open => quote = None,
            ('\\', Some('\'')) => match chars.next_if(|(_, next)| matches!(next, '\\' | '\'')) {
                Some((at, next)) => words.push(at, next),
                None => words.push(at, c),
            },
            ('\\', _) => match chars.next()? {
                (at, '_') if quote.is_some() => words.push(at, ' '),
                (_, '_') => words.end(),
                (_, 'c') if quote.is_none() => break,
                (at, 'f') => words.push(at, '\x0c'),
                (at, 'n') => words.push(at, '\n'),
                (at, 'r') => words.push(at, '\r'),
                (at, 't') => words.push(at, '\t'),
                (at, 'v') => words.push(at, '\x0b'),
                (at, next @ ('"' | '#' | '$' | '\'' | '\\')) => words.push(at, next),
                _ => return None,
            },
            ('$', None | Some('"')) => {
                chars.next_if(|(_, next)| *next == '{')?;
                chars.by_ref().find(|(_, next)| *next == '}')?;
                words.unknown();
            }
            (' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r', None) => words.end(),
            ('#', None) if !words.begun => break,
            _ => words.push(at, c),
        }
    }
    words.finish(quote.is_some())
}

/// The words of a text by the rules of git; nothing where it refuses the text or the text is not known.
pub(super) fn git(whole: &Field) -> Option<Vec<Field>> {
    let mut words = Words::new(whole);
    words.begin();
    let mut chars = whole.literal()?.char_indices().peekable();
    let mut quote = None;
    while let Some((at, c)) = chars.next() {
        match (c, quote) {
            ('\'' | '"', None) => {
                quote = Some(c);
                words.begin();
            }
            (_, Some(open)) if c == open => quote = None,
            ('\\', None | Some('"')) => {
                let (at, next) = chars.next()?;
                words.push(at, next);
            }
            (_, None) if blank(c) => {
                while chars.next_if(|(_, next)| blank(*next)).is_some() {}
                words.end();
                words.begin();
            }
            _ => words.push(at, c),
        }
    }
    words.finish(quote.is_some())
}

fn blank(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b'
}

/// The words of a text by the rules of rsync; nothing where it refuses the text or the text is not known.
pub(super) fn rsync(whole: &Field) -> Option<Vec<Field>> {
    let mut words = Words::new(whole);
    let mut chars = whole.literal()?.char_indices().peekable();
    let mut quote = None;
    while let Some((at, c)) = chars.next() {
        match (c, quote) {
            ('\'' | '"', None) => {
                quote = Some(c);
                words.begin();
            }
            (_, Some(open)) if c == open => match chars.next_if(|(_, next)| *next == open) {
                Some((at, next)) => words.push(at, next),
                None => quote = None,
            },
            (' ', None) => words.end(),
            _ => words.push(at, c),
        }
    }
    words.finish(quote.is_some())
}

/// The words so far, and the one that is being read.
struct Words<'f> {
    whole: &'f Field,
    words: Vec<Field>,
    text: String,
    begun: bool,
    open: Open,
    /// Where the word begins in the whole text, while it stands there byte for byte.
    start: Option<usize>,
}

impl<'f> Words<'f> {
    fn new(whole: &'f Field) -> Self {
        Self { whole, words: Vec::new(), text: String::new(), begun: false, open: Open::No, start: None }
    }

    fn begin(&mut self) {
        self.begun = true;
    }

    fn push(&mut self, at: usize, c: char) {
        self.begun = true;
        if self.open != Open::No {
            return;
        }
        let source = self.whole.text[at..].starts_with(c);
        self.start = match self.start {
            _ if !source => None,
            None if self.text.is_empty() => Some(at),
            start => start.filter(|start| start + self.text.len() == at),
        };
        self.text.push(c);
    }

    fn unknown(&mut self) {
        self.begun = true;
        self.open = Open::One;
    }

    fn end(&mut self) {
        if !self.begun {
            return;
        }
        let exact = self.start.take().zip(self.whole.exact).map(|(start, offset)| offset + start);
        self.words.push(made(self.whole, std::mem::take(&mut self.text), std::mem::take(&mut self.open), exact));
        self.begun = false;
    }

    fn finish(mut self, refused: bool) -> Option<Vec<Field>> {
        self.end();
        (!refused).then_some(self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(words: Option<Vec<Field>>) -> Option<Vec<String>> {
        let show = |field: Field| match (field.exact, field.open) {
            (Some(at), Open::No) => format!("{}@{at}", field.text),
            (_, Open::No) => field.text,
            _ => format!("{}..", field.text),
        };
        words.map(|words| words.into_iter().map(show).collect())
    }

    fn text(text: &str) -> Field {
        Field { exact: Some(100), ..Field::known(text, 100..100 + text.len()) }
    }

    #[test]
    fn a_text_of_env_is_split_as_env_splits_it() {
        for (line, expected) in [
            ("rm -rf src", Some(&["rm@100", "-rf@103", "src@107"][..])),
            (r"rm\_-rf\_src", Some(&["rm@100", "-rf@104", "src@109"])),
            (r#"a "b\_c" 'd e'f"#, Some(&["a@100", "b c", "d ef"])),
            ("'rm' ''", Some(&["rm@101", ""])),
            (r"'a\'\\\n'", Some(&["a'\\\\n"])),
            (r"a\tb a\cb c", Some(&["a\tb", "a@105"])),
            ("a#b #c", Some(&["a#b@100"])),
            ("a${HOME}b c", Some(&["a..", "c@110"])),
            ("'$x'", Some(&["$x@101"])),
            ("$x", None),
            (r"\q", None),
            ("'a", None),
            ("a\\", None),
            ("", Some(&[])),
        ] {
            let expected = expected.map(|words| words.iter().map(|word| (*word).to_owned()).collect());
            assert_eq!(show(env(&text(line))), expected, "{line}");
        }
    }

    #[test]
    fn a_text_of_rsync_is_split_as_rsync_splits_it() {
        for (line, expected) in [
            (" ssh  -p 2", Some(&["ssh@101", "-p@106", "2@109"][..])),
            (r#"'a b'c "d""e" \f"#, Some(&["a bc", "d\"e", "\\f@114"])),
            ("'a", None),
        ] {
            let expected = expected.map(|words| words.iter().map(|word| (*word).to_owned()).collect());
            assert_eq!(show(rsync(&text(line))), expected, "{line}");
        }
    }

    #[test]
    fn a_text_of_git_is_split_as_git_splits_it() {
        for (line, expected) in [
            ("push  --force", Some(&["push@100", "--force@106"][..])),
            (r#"a"b c"'d\'\e "#, Some(&["ab cd\\e", ""])),
            ("$x #y", Some(&["$x@100", "#y@103"])),
            (" a ", Some(&["", "a@101", ""])),
            ("'a", None),
            ("a\\", None),
        ] {
            let expected = expected.map(|words| words.iter().map(|word| (*word).to_owned()).collect());
            assert_eq!(show(git(&text(line))), expected, "{line}");
        }
    }
}
