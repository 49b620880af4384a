//! From text to its tree, as bash 5.2 reads it without `extglob`, aliases and history expansion.
//!
//! | module       | reads                                                                                               |
//! |--------------|-----------------------------------------------------------------------------------------------------|
//! | `cursor`     | bytes: blanks, comments, joined lines, spans, levels                                                |
//! | `list`       | lines, `;` `&` `&&` `\|\|`, pipelines, `!`, `time`                                                  |
//! | `command`    | simple commands, functions, `coproc`; which kind of command begins here                             |
//! | `compound`   | `{ }`, `( )`, `(( ))`, `if`, `while`, `until`, `case`                                               |
//! | `repeat`     | `for`, `for (( ))`, `select`                                                                        |
//! | `condition`  | `[[ ]]`                                                                                             |
//! | `reserved`   | the reserved words                                                                                  |
//! | `redirect`   | redirections                                                                                        |
//! | `document`   | here-documents                                                                                      |
//! | `assignment` | `a=b`, `a[..]=b`, `a=(..)`                                                                          |
//! | `word`       | unquoted text, patterns with parentheses, process substitutions                                     |
//! | `quote`      | `'..'`, `".."`, `$'..'`, backquotes, the text of a here-document                                    |
//! | `dollar`     | `$x`, `$(..)`, `$((..))`, `$[..]`, `${ ..; }`                                                       |
//! | `parameter`  | `${..}`                                                                                             |
//! | `arithmetic` | text that ends at its closing bracket                                                               |
//! | `parts`      | the parts of a word while it is read                                                                |
//!
//! ## What is read how
//!
//! | text                                      | read as                                                                               |
//! |-------------------------------------------|---------------------------------------------------------------------------------------|
//! | `\` and a line feed                       | nothing, wherever bash removes it: also within operators, names and reserved words    |
//! | `#` where a word could begin              | a comment up to the line feed                                                         |
//! | a reserved word                           | such only as a command's first word, whole and unquoted                               |
//! | `time` after `\|`                         | a program                                                                             |
//! | `((`                                      | arithmetic, if the `)` that closes the second `(` is followed by `)`; else subshells  |
//! | `$((`                                     | the same; else a substitution, which has to end where its parentheses do              |
//! | `@(..)` and its like                       | refused: with `extglob` a pattern, without an error; in `[[ ]]` a pattern             |
//! | `a[..]` without `=` at a command's start  | a word, if its subscript is plain text; else refused, ambiguous                       |
//! | `'..'` in arithmetic or in `"${x:-'..'}"` | text whose expansions are made, since bash makes them                                 |
//! | `"${x:-$y"z"}"`                           | refused, ambiguous: without the inner quotes, as bash sees it, it is another name     |
//! | backquotes                                | nested text without one level of backslashes; at its place if it has none             |
//! | `$(..)`, a bracket in brackets            | has to have as many opening as closing brackets where bash only counts them           |
//! | a here-document without its end           | goes on to the end of the text, as in bash                                            |
//! | a here-document, open at its `)`          | refused, ambiguous: its place differs between versions                                |
//! | a carriage return or other control        | refused outside quotes, and in a program's word                                       |
//! | NUL                                       | refused: what runs has none                                                           |
//! | a line with a mistake                     | refused; the lines before it stay                                                     |
//!
//! ## Bounds
//!
//! A text has at most [`MAX_BYTES`] bytes, [`MAX_COMMANDS`] commands and here-documents, and [`MAX_DEPTH`] levels, the ones around it
//! included. Reading is linear: the only text that is read twice is what follows a `((` that turns out to be subshells, and all such text of
//! a call is paid from one purse.

mod ansi;
mod arithmetic;
mod assignment;
mod command;
mod compound;
mod condition;
mod cursor;
mod document;
mod dollar;
mod list;
mod parameter;
mod parts;
mod quote;
mod redirect;
mod repeat;
mod reserved;
mod word;

#[cfg(test)]
mod tests;

use self::cursor::{Parser, Purse};
use super::syntax::{Base, List, Parsed, Refused, Why};

/// The longest text that is read, in bytes.
pub(in crate::guard) const MAX_BYTES: usize = 64 * 1024;

/// The levels that are read: commands within commands, substitutions within words, texts within texts.
pub(in crate::guard) const MAX_DEPTH: usize = 64;

/// The most commands and here-documents that are read in one text, those of its substitutions included. A tree costs a multiple of its text:
/// without this bound the costliest texts would take several times as long as all others of their length.
pub(in crate::guard) const MAX_COMMANDS: usize = 4 * 1024;

/// What is read, or why not.
type Read<T> = Result<T, Refused>;

/// Reads a text that stands `depth` levels deep. Total: every text has an answer, and none that is wrong for want of understanding.
pub(in crate::guard) fn parse(text: &str, base: Base, depth: usize) -> Parsed {
    let refuse = |why| Parsed { list: List::default(), refused: Some(Refused { at: base.span(0..text.len()), why }) };
    if text.len() > MAX_BYTES {
        return refuse(Why::TooLong);
    }
    if depth > MAX_DEPTH {
        return refuse(Why::TooDeep);
    }
    let purse = Purse::of(text);
    let Some(end) = text.find('\0') else {
        return Parser::new(text, base, depth, &purse).lines();
    };
    let at = base.span(end..end + 1);
    let list = Parser::new(&text[..end], base, depth, &purse).lines_before_break();
    Parsed { list, refused: Some(Refused { at, why: Why::Control }) }
}
