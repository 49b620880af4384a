//! `awk`: the texts of `system("..")` and of pipes.
//!
//! | in the program                               | read as                                               |
//! |----------------------------------------------|-------------------------------------------------------|
//! | `system("TEXT")`, `print .. \| "TEXT"`       | text of a shell                                       |
//! | `"TEXT" \| getline`                          | text of a shell                                       |
//! | `system`, `\|` with anything else, `@`       | unclear                                               |
//! | strings, `/../`, comments, `\|\|`            | data                                                  |
//!
//! A program in a file is out of sight.

use super::super::field::{Field, Open};
use super::options::{Call, Grammar, made};
use super::{Child, Found};

const OPTIONS: Grammar = Grammar::new(
    "F:f:v:e:E:i:l:W:m:bcCgIhMNnOPrsStVd::D::L::o::p::",
    &[
        "file:",
        "field-separator:",
        "assign:",
        "characters-as-bytes",
        "traditional",
        "copyright",
        "dump-variables::",
        "debug::",
        "source:",
        "exec:",
        "gen-pot",
        "help",
        "include:",
        "trace",
        "load:",
        "lint::",
        "bignum",
        "use-lc-numeric",
        "non-decimal-data",
        "pretty-print::",
        "optimize",
        "profile::",
        "posix",
        "re-interval",
        "no-optimize",
        "sandbox",
        "lint-old",
        "version",
        "csv",
    ],
);

pub(super) fn awk(call: &mut Call<'_>) -> Found {
    let options = call.leading(&OPTIONS, 1)?;
    let mut programs: Vec<&Field> = options.values(&["e", "source"]).collect();
    let elsewhere = options.has(&["f", "file", "E", "exec"]);
    if programs.is_empty() && !elsewhere {
        programs.extend(call.fields.get(options.rest));
    }
    Ok(programs.into_iter().flat_map(texts).collect::<Vec<_>>().into())
}

/// A token of a program, as far as it matters.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// A string, and where it begins if it holds no escape.
    Text(String, Option<usize>),
    /// A name or number.
    Word(String),
    Pipe,
    Sign(char),
}

fn texts(program: &Field) -> Vec<Child> {
    let unclear = || Child::Unclear(program.span.clone());
    let Some(tokens) = program.literal().and_then(tokens) else { return vec![unclear()] };
    let mut list = Vec::new();
    let mut commands = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let get = |at: usize| tokens.get(at);
        let command = match token {
            Token::Word(name) if name == "system" => match (get(at + 1), get(at + 2), get(at + 3)) {
                (Some(Token::Sign('(')), Some(text), Some(Token::Sign(')'))) => Some(text),
                _ => None,
            },
            Token::Pipe if matches!(get(at + 1), Some(Token::Word(name)) if name == "getline") => {
                let alone = at < 2 || matches!(get(at - 2), Some(Token::Sign('{' | '(' | ';' | '\n' | ')')));
                at.checked_sub(1).and_then(get).filter(|_| alone)
            }
            Token::Pipe => {
                let alone = matches!(get(at + 2), None | Some(Token::Sign('}' | ';' | '\n')));
                get(at + 1).filter(|_| alone)
            }
            Token::Sign('@') => None,
            _ => continue,
        };
        commands.push(command);
    }
    for command in commands {
        list.push(match command {
            Some(Token::Text(text, start)) => {
                let exact = start.zip(program.exact).map(|(start, offset)| offset + start);
                Child::text(made(program, text.clone(), Open::No, exact))
            }
            _ => unclear(),
        });
    }
    list
}

/// The tokens of a program; nothing if a string or pattern does not end.
fn tokens(program: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut chars = program.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => tokens.push(string(&mut chars, at + 1)?),
            '#' => while chars.next_if(|(_, next)| *next != '\n').is_some() {},
            '/' if begins_pattern(tokens.last()) => pattern(&mut chars, &mut tokens)?,
            '|' if chars.next_if(|(_, next)| *next == '|').is_some() => tokens.push(Token::Sign('&')),
            '|' => {
                chars.next_if(|(_, next)| *next == '&');
                tokens.push(Token::Pipe);
            }
            '\\' if chars.next_if(|(_, next)| *next == '\n').is_some() => {}
            '\n' => tokens.push(Token::Sign(c)),
            _ if c.is_whitespace() => {}
            _ if c.is_alphanumeric() || c == '_' => {
                let mut word = String::from(c);
                while let Some((_, next)) = chars.next_if(|(_, next)| next.is_alphanumeric() || *next == '_') {
                    word.push(next);
                }
                tokens.push(Token::Word(word));
            }
            _ => tokens.push(Token::Sign(c)),
        }
    }
    Some(tokens)
}

type Chars<'p> = std::iter::Peekable<std::str::CharIndices<'p>>;

fn string(chars: &mut Chars<'_>, from: usize) -> Option<Token> {
    let mut text = String::new();
    let mut exact = Some(from);
    loop {
        match chars.next()?.1 {
            '"' => return Some(Token::Text(text, exact)),
            '\\' => {
                exact = None;
                match chars.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    c @ ('"' | '\\' | '/') => text.push(c),
                    '\n' => {}
                    _ => return None,
                }
            }
            c => text.push(c),
        }
    }
}

/// Whether a slash after this token begins a pattern rather than divides.
fn begins_pattern(before: Option<&Token>) -> bool {
    match before {
        Some(Token::Text(..)) => false,
        Some(Token::Word(word)) => matches!(word.as_str(), "return" | "in" | "print" | "printf" | "case" | "getline"),
        Some(Token::Sign(c)) => !matches!(c, ')' | ']' | '$' | '+' | '-'),
        Some(Token::Pipe) | None => true,
    }
}

fn pattern(chars: &mut Chars<'_>, tokens: &mut Vec<Token>) -> Option<()> {
    let mut class = false;
    loop {
        match chars.next()?.1 {
            '\\' => drop(chars.next()?),
            '[' => class = true,
            ']' => class = false,
            '/' if !class => break,
            '\n' => return None,
            _ => {}
        }
    }
    // It stands for a value.
    tokens.push(Token::Word(String::new()));
    Some(())
}
