//! What programs write: known text for those that only repeat their words, else the names of the programs that had a part in it.
//!
//! | program                        | output                                              | file                    |
//! |--------------------------------|-----------------------------------------------------|-------------------------|
//! | `echo`, `printf`               | its words, where they are known                     |                         |
//! | `cat`, `tee`                   | the files and the input, where they are known       | `tee`: the input        |
//! | `cp`, `mv`, `ln`, `install`    | none                                                | what the first one held |
//! | `curl -o F`, `wget -O F`       | unknown                                             | unknown, of the program |
//! | builtins that print nothing    | none                                                |                         |
//! | every other                    | unknown, of the program, its input and its words    |                         |

use super::super::field::{Field, Open};
use super::Runner;
use super::invoke::all_origins;
use super::origin::Origins;
use super::state::Shell;
use super::stream::Stream;

/// Programs that print nothing.
const SILENT: &[&str] = &[
    ":",
    "[",
    "alias",
    "break",
    "cd",
    "chmod",
    "continue",
    "declare",
    "exit",
    "export",
    "false",
    "hash",
    "let",
    "local",
    "mapfile",
    "mkdir",
    "readonly",
    "readarray",
    "read",
    "return",
    "rm",
    "rmdir",
    "set",
    "shift",
    "shopt",
    "sleep",
    "test",
    "touch",
    "trap",
    "true",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
];

impl Runner<'_> {
    /// What a program writes to its standard output; what it writes into files is noted.
    pub(super) fn output(&mut self, name: &str, fields: &[Field], shell: &mut Shell) -> Stream {
        let words = &fields[1..];
        let own = |runner: &Self| {
            let mut from = Origins::of(name);
            from.add(&all_origins(fields));
            from.add(shell.input.from());
            for word in words {
                if word.literal().is_some_and(|path| runner.is_written(path, shell)) {
                    from.add(runner.read(word, shell).from());
                }
            }
            Stream::unknown(from)
        };
        match name {
            _ if SILENT.contains(&name) => Stream::empty(),
            "echo" => echo(words).map_or_else(|| own(self), Stream::known),
            "printf" => printf(words).map_or_else(|| own(self), Stream::known),
            "cat" if words.iter().all(|word| word.literal().is_some_and(|text| text == "-" || !text.starts_with('-'))) => {
                if words.is_empty() {
                    // What the host gives is a text that nobody knows.
                    return if shell.input.is_outside() { own(self) } else { (*shell.input).clone() };
                }
                let mut all = Stream::empty();
                for word in words {
                    all.append(self.read(word, shell));
                }
                all
            }
            "tee" => {
                let input = (*shell.input).clone();
                for path in operands(words) {
                    self.write_text(path, without_place(&input), shell);
                }
                without_place(&input)
            }
            "cp" | "mv" | "ln" | "install" => {
                if let [source, .., target] = &operands(words)[..] {
                    let text = self.read(&Field::known(*source, 0..0), shell);
                    if self.is_written(source, shell) {
                        self.write_text(target, without_place(&text), shell);
                    }
                }
                Stream::empty()
            }
            "curl" | "wget" => {
                let output = own(self);
                let (letter, long) = if name == "curl" { ('o', "--output") } else { ('O', "--output-document") };
                for path in values_of(words, letter, long) {
                    self.write_text(path, output.clone(), shell);
                }
                for url in operands(words) {
                    let remote = url.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                    self.write_text(remote, output.clone(), shell);
                }
                output
            }
            _ => own(self),
        }
    }
}

/// The same text, not as it stands in the line: it is used in several places.
fn without_place(text: &Stream) -> Stream {
    match text.text() {
        Some(_) => {
            let mut field = text.whole(0..0);
            field.exact = None;
            Stream::known(field)
        }
        None => text.clone(),
    }
}

fn operands(words: &[Field]) -> Vec<&str> {
    words.iter().filter_map(Field::literal).filter(|text| !text.starts_with('-')).collect()
}

/// The values of an option: `-o F`, `-oF`, `-sSo F`, `--output F`, `--output=F`.
fn values_of<'w>(words: &'w [Field], letter: char, long: &str) -> Vec<&'w str> {
    let mut values = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let Some(text) = word.literal() else { continue };
        let next = || words.get(at + 1).and_then(Field::literal);
        if text == long {
            values.extend(next());
        } else if let Some(value) = text.strip_prefix(long).and_then(|rest| rest.strip_prefix('=')) {
            values.push(value);
        } else if let Some((_, value)) =
            text.strip_prefix('-').filter(|rest| !rest.starts_with('-')).and_then(|rest| rest.split_once(letter))
        {
            if value.is_empty() { values.extend(next()) } else { values.push(value) }
        }
    }
    values
}

/// What `echo` prints, if no option or escape changes it.
fn echo(words: &[Field]) -> Option<Field> {
    let (mut words, mut line_feed) = (words, true);
    while let Some(option) = words.first().and_then(Field::literal).filter(|text| is_echo_option(text)) {
        if option.contains('e') && words.iter().any(|word| word.text.contains('\\')) {
            return None;
        }
        line_feed &= !option.contains('n');
        words = &words[1..];
    }
    let texts = words.iter().map(Field::literal).collect::<Option<Vec<&str>>>()?;
    let mut field = match words {
        [only] => only.clone(),
        _ => Field {
            from: all_origins(words),
            ..Field::known(texts.join(" "), words.first().map_or(0..0, |word| word.span.clone()))
        },
    };
    if line_feed {
        field.text.push('\n');
    }
    Some(field)
}

fn is_echo_option(text: &str) -> bool {
    text.len() > 1 && text.starts_with('-') && text[1..].bytes().all(|byte| matches!(byte, b'n' | b'e' | b'E'))
}

/// What `printf` prints, if its format only repeats texts.
fn printf(words: &[Field]) -> Option<Field> {
    let words = if words.first().and_then(Field::literal) == Some("--") { &words[1..] } else { words };
    let (format, arguments) = words.split_first()?;
    let texts = arguments.iter().map(Field::literal).collect::<Option<Vec<&str>>>()?;
    let mut arguments = texts.into_iter();
    let (pattern, mut text) = (format.literal().filter(|pattern| !pattern.starts_with('-'))?, String::new());
    loop {
        let before = arguments.len();
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            match character {
                '%' => match characters.next()? {
                    '%' => text.push('%'),
                    's' => text.push_str(arguments.next().unwrap_or_default()),
                    _ => return None,
                },
                '\\' => text.push(match characters.next()? {
                    'n' => '\n',
                    't' => '\t',
                    '\\' => '\\',
                    _ => return None,
                }),
                other => text.push(other),
            }
        }
        if arguments.len() == 0 || arguments.len() == before {
            break;
        }
        if text.len() > super::stream::MAX_TEXT {
            return None;
        }
    }
    Some(Field { from: all_origins(words), open: Open::No, ..Field::known(text, format.span.clone()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(words: &[&str]) -> Vec<Field> {
        words.iter().map(|word| Field::known(*word, 0..0)).collect()
    }

    #[test]
    fn what_only_repeats_its_words_is_known() {
        for (words, text) in [
            (&["a", "b"][..], Some("a b\n")),
            (&["-n", "a"], Some("a")),
            (&["-e", "a\\n"], None),
            (&["-x", "a"], Some("-x a\n")),
            (&[], Some("\n")),
        ] {
            assert_eq!(echo(&fields(words)).map(|field| field.text).as_deref(), text, "{words:?}");
        }
        for (words, text) in [
            (&["r%s", "m"][..], Some("rm")),
            (&["%s\\n", "a", "b"], Some("a\nb\n")),
            (&["a"], Some("a")),
            (&["%d", "1"], None),
            (&["-v", "x", "y"], None),
            (&["a", "b"], Some("a")),
        ] {
            assert_eq!(printf(&fields(words)).map(|field| field.text).as_deref(), text, "{words:?}");
        }
    }

    #[test]
    fn the_values_of_an_option_are_found() {
        for words in [&["-o", "f"][..], &["-of"], &["-sSLo", "f"], &["--output", "f"], &["--output=f"]] {
            assert_eq!(values_of(&fields(words), 'o', "--output"), ["f"], "{words:?}");
        }
        assert!(values_of(&fields(&["-s", "f"]), 'o', "--output").is_empty());
    }
}
