//! Which words of a command are its subcommand, options and operands.
//!
//! | word                                  | program known                               | program unknown                           |
//! |---------------------------------------|---------------------------------------------|-------------------------------------------|
//! | `--name`, `--name=value`              | that option                                 | that option                               |
//! | `--na`, a part of a name              | the option, if one name only begins so      | may be each that begins so                |
//! | `-x`                                  | that option                                 | that option                               |
//! | `-xyz`                                | `x`, `y`, `z` up to one that takes a value  | that option or `x`; may be `y`, `z`       |
//! | the word after an option with a value | its value, nothing else                     | an operand; may be a value                |
//! | `--`                                  | ends the options                            | ends the options                          |
//! | after `--`, `-`, any other word       | an operand                                  | an operand                                |
//! | a word that is not known              | may be any option or operand that begins with what is known of it                      |||

use super::grammar::{Options, Program};
use super::shell::field::{Field, Open};

/// Whether something holds. Ordered: a conjunction is the least, a disjunction the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holds {
    /// It does not.
    No,
    /// It may: the words can be read in two ways.
    Maybe,
    /// It does.
    Yes,
}

/// The subcommand of a command: its place among the arguments, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Subcommand {
    /// The number of the argument.
    pub(super) at: usize,
    /// Whether an option before it may have taken it as its value.
    pub(super) certain: bool,
}

/// Finds the subcommand: the first argument that is no option and no value of one.
pub(super) fn subcommand(program: Option<&Program>, arguments: &[Field]) -> Option<Subcommand> {
    let mut certain = true;
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        let text = word.text.as_str();
        let open = word.open != Open::No;
        if open || !text.starts_with('-') || text == "-" {
            return Some(Subcommand { at, certain: certain && !open });
        }
        let valued = program.is_some_and(|program| program.global_valued.contains(&text));
        certain &= valued || text.contains('=') || program.is_some_and(|program| program.global_complete);
        at += 1 + usize::from(valued);
    }
    None
}

/// The options and operands among some arguments.
#[derive(Debug)]
pub(super) struct Arguments<'w> {
    options: Vec<Given<'w>>,
    /// Every argument but the values of options, in order.
    pub(super) words: Vec<usize>,
    /// The operands, and whether each is certainly one.
    pub(super) operands: Vec<(usize, bool)>,
    known: bool,
}

/// One option as it was written.
#[derive(Debug)]
struct Given<'w> {
    /// The number of the argument that it stands in.
    at: usize,
    name: Name<'w>,
}

#[derive(Debug)]
enum Name<'w> {
    /// `--name`, as written, without its value.
    Long(&'w str),
    /// `--name`, of a program whose options are known.
    Resolved(&'static str),
    /// `--na` that begins several names.
    Ambiguous(&'w str),
    /// One letter of a group; `certain` unless an earlier letter of an unknown program may take the rest as its value.
    Letter { letter: char, certain: bool },
    /// `-xyz` of an unknown program, as written, without its value.
    Single(&'w str),
    /// A word, of which the beginning is known, that may be an option.
    Open(&'w str),
}

/// Sorts the arguments from number `from` on.
pub(super) fn sort<'w>(options: Option<&'static Options>, arguments: &'w [Field], from: usize) -> Arguments<'w> {
    let mut sorted = Arguments { options: Vec::new(), words: Vec::new(), operands: Vec::new(), known: options.is_some() };
    let mut ended = false;
    // The word before was an option of an unknown program, which may take this one as its value.
    let mut maybe_value = false;
    let mut at = from;
    while let Some(word) = arguments.get(at) {
        let text = word.text.as_str();
        sorted.words.push(at);
        if word.open != Open::No {
            if !ended && (text.is_empty() || text.starts_with('-')) {
                sorted.options.push(Given { at, name: Name::Open(text) });
            }
            // Words that are not known may end in an option that takes the next one.
            maybe_value |= word.open == Open::Many;
            sorted.operands.push((at, false));
        } else if ended || !text.starts_with('-') || text == "-" {
            sorted.operands.push((at, !maybe_value));
            maybe_value = false;
        } else if text == "--" {
            ended = true;
            maybe_value = false;
        } else {
            let takes_next = match options {
                Some(options) => sorted.known_option(options, text, at),
                None => {
                    sorted.unknown_option(text, at);
                    maybe_value = !text.contains('=');
                    false
                }
            };
            at += usize::from(takes_next);
        }
        at += 1;
    }
    sorted
}

impl<'w> Arguments<'w> {
    /// Notes an option of a known program. True when the next word is its value.
    fn known_option(&mut self, options: &'static Options, text: &'w str, at: usize) -> bool {
        if text.starts_with("--") {
            let (written, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
            let mut candidates = options.long.iter().filter(|name| name.starts_with(written));
            let exact = options.long.iter().find(|name| name.strip_suffix('=').unwrap_or(name) == written);
            let (name, takes_value) = match (exact, candidates.next(), candidates.next()) {
                (Some(name), ..) | (None, Some(name), None) => (Name::Resolved(name.trim_end_matches('=')), name.ends_with('=')),
                (None, None, _) => (Name::Long(written), false),
                (None, Some(_), Some(_)) => (Name::Ambiguous(written), false),
            };
            self.options.push(Given { at, name });
            return takes_value && value.is_none();
        }
        for (place, letter) in text.char_indices().skip(1) {
            self.options.push(Given { at, name: Name::Letter { letter, certain: true } });
            if options.short_valued.contains(letter) {
                return place + letter.len_utf8() == text.len();
            }
        }
        false
    }

    fn unknown_option(&mut self, text: &'w str, at: usize) {
        let written = text.split_once('=').map_or(text, |(name, _)| name);
        if text.starts_with("--") {
            self.options.push(Given { at, name: Name::Long(written) });
            return;
        }
        self.options.push(Given { at, name: Name::Single(written) });
        let letters = text.chars().skip(1).take_while(|letter| *letter != '=').enumerate();
        self.options.extend(letters.map(|(nth, letter)| Given { at, name: Name::Letter { letter, certain: nth == 0 } }));
    }

    /// How an option (`-x`, `--name`, `-name`) is given, and in which arguments.
    pub(super) fn has<'o>(&'o self, option: &'o str) -> impl Iterator<Item = (Holds, usize)> + 'o {
        self.options.iter().map(|given| (given.name.is(option, self.known), given.at)).filter(|(holds, _)| *holds != Holds::No)
    }
}

impl Name<'_> {
    fn is(&self, option: &str, known: bool) -> Holds {
        match *self {
            Self::Resolved(name) => holds(name == option),
            Self::Long(written) if written == option => Holds::Yes,
            // `--` and one letter at least: no program takes less for an abbreviation.
            Self::Long(written) if !known && written.len() > 2 && option.starts_with(written) => Holds::Maybe,
            Self::Long(_) => Holds::No,
            Self::Ambiguous(written) if option.starts_with(written) => Holds::Maybe,
            Self::Ambiguous(_) => Holds::No,
            Self::Single(written) => holds(written == option),
            Self::Open(known) if known.starts_with("--") && !option.starts_with(known) && !known.starts_with(option) => Holds::No,
            Self::Open(_) => Holds::Maybe,
            Self::Letter { letter, certain } => {
                let same = option.strip_prefix('-').and_then(|rest| rest.strip_prefix(letter)).is_some_and(str::is_empty);
                if certain { holds(same) } else { holds(same).min(Holds::Maybe) }
            }
        }
    }
}

fn holds(yes: bool) -> Holds {
    if yes { Holds::Yes } else { Holds::No }
}

/// Whether a word may be an option: `-x` also within a group of letters, `--name` also abbreviated or with a value.
pub(super) fn names(word: &str, option: &str) -> bool {
    if option.starts_with("--") {
        let written = word.split_once('=').map_or(word, |(name, _)| name);
        written.len() > 2 && written.starts_with("--") && option.starts_with(written)
    } else {
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        letters.zip(option.strip_prefix('-')).is_some_and(|(letters, letter)| letters.contains(letter))
    }
}

/// Whether a text of which the beginning is known may match a pattern.
pub(super) fn may_match(pattern: &str, beginning: &str) -> bool {
    let literal = pattern.split(['*', '?']).next().unwrap_or_default();
    literal.starts_with(beginning) || beginning.starts_with(literal)
}

/// Whether a text matches a pattern of literal characters, `*` (any characters) and `?` (one).
pub(super) fn glob(pattern: &str, text: &str) -> bool {
    let (mut rest, mut at) = (pattern, 0);
    // Where to go on after the last `*` when what follows does not fit: it takes one character more.
    let mut star: Option<(&str, usize)> = None;
    while let Some(character) = text[at..].chars().next() {
        let mut following = rest.chars();
        match following.next() {
            Some('*') => {
                rest = following.as_str();
                star = Some((rest, at));
            }
            Some(c) if c == '?' || c == character => {
                rest = following.as_str();
                at += character.len_utf8();
            }
            _ => match star {
                Some((after, taken)) => {
                    let skipped = text[taken..].chars().next().map_or(0, char::len_utf8);
                    at = taken + skipped;
                    star = Some((after, at));
                    rest = after;
                }
                None => return false,
            },
        }
    }
    rest.chars().all(|c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::grammar::program;

    fn words(line: &str) -> Vec<Field> {
        let word = |text: &str| match text.strip_suffix('?') {
            Some(known) => Field { text: known.to_owned(), ..Field::unknown(Open::One, 0..0) },
            None => Field::known(text, 0..0),
        };
        line.split(' ').map(word).collect()
    }

    fn has(options: Option<&'static Options>, line: &str, option: &str) -> Holds {
        sort(options, &words(line), 0).has(option).map(|(holds, _)| holds).max().unwrap_or(Holds::No)
    }

    fn push() -> Option<&'static Options> {
        program("git").unwrap().options_of("push")
    }

    #[test]
    fn options_of_a_known_program_are_read_as_it_reads_them() {
        for (line, option, expected) in [
            ("-f", "-f", Holds::Yes),
            ("-uf origin", "-f", Holds::Yes),
            ("-4fv", "-f", Holds::Yes),
            ("-of origin", "-f", Holds::No),
            ("-o f origin", "-f", Holds::No),
            ("-o -f origin", "-f", Holds::No),
            ("-uo -f -f", "-f", Holds::Yes),
            ("origin main -f", "-f", Holds::Yes),
            ("origin -- -f", "-f", Holds::No),
            ("--force", "--force", Holds::Yes),
            ("--force=x", "--force", Holds::Yes),
            ("--force-with-lease", "--force", Holds::No),
            ("--force-with-lease=a:b", "--force-with-lease", Holds::Yes),
            ("--force-w", "--force-with-lease", Holds::Yes),
            ("--forc", "--force", Holds::Maybe),
            ("--follow-tags", "--force", Holds::No),
            ("--no-force", "--force", Holds::No),
            ("--push-option --force", "--force", Holds::No),
            ("--push-option=x --force", "--force", Holds::Yes),
            ("--unheard-of --force", "--force", Holds::Yes),
            ("?", "--force", Holds::Maybe),
            ("--fo?", "--force", Holds::Maybe),
            ("--x?", "--force", Holds::No),
            ("-?", "-f", Holds::Maybe),
            ("x? -f", "-f", Holds::Yes),
            ("x?", "-f", Holds::No),
            ("-- ?", "-f", Holds::No),
        ] {
            assert_eq!(has(push(), line, option), expected, "{line} {option}");
        }
    }

    #[test]
    fn options_of_an_unknown_program_may_be_read_in_two_ways() {
        for (line, option, expected) in [
            ("-f", "-f", Holds::Yes),
            ("-fd", "-f", Holds::Yes),
            ("-df", "-f", Holds::Maybe),
            ("--fo", "--force", Holds::Maybe),
            ("--force=1", "--force", Holds::Yes),
            ("--forced", "--force", Holds::No),
            ("-auto-approve=true", "-auto-approve", Holds::Yes),
            ("-auto-approve", "--auto-approve", Holds::No),
            ("-- -f", "-f", Holds::No),
        ] {
            assert_eq!(has(None, line, option), expected, "{line} {option}");
        }
    }

    #[test]
    fn values_of_options_are_no_operands() {
        let line = words("-o f -- -x y");
        assert_eq!(sort(push(), &line, 0).operands, [(3, true), (4, true)]);
        assert_eq!(sort(None, &line, 0).operands, [(1, false), (3, true), (4, true)]);
        assert_eq!(sort(push(), &line, 0).words, [0, 2, 3, 4]);
    }

    #[test]
    fn the_subcommand_is_the_first_word_that_is_no_option_and_no_value() {
        let git = program("git");
        for (program, line, expected) in [
            (git, "push -f", Some((0, true))),
            (git, "-C push fetch", Some((2, true))),
            (git, "--git-dir=.git --no-pager push", Some((2, true))),
            (git, "--version", None),
            (None, "-n prod delete", Some((1, false))),
            (None, "--context=prod delete", Some((1, true))),
            (program("npm"), "--prefix web ci", Some((2, true))),
            (program("npm"), "--other web ci", Some((1, false))),
            (None, "delete", Some((0, true))),
        ] {
            let found = subcommand(program, &words(line)).map(|found| (found.at, found.certain));
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn patterns_match_whole_words() {
        for (pattern, text, expected) in [
            ("+*", "+main", true),
            ("+*", "main+", false),
            ("*", "", true),
            ("a*b*c", "axxbyybzc", true),
            ("a*b*c", "axxbyyb", false),
            ("?é", "éé", true),
            ("?", "", false),
        ] {
            assert_eq!(glob(pattern, text), expected, "{pattern} {text}");
        }
    }
}
