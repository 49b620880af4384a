//! The tree of a shell text. Data only; what it would run is the business of `run`.
//!
//! Every span is in bytes of the outermost text, the one that a call holds. Text that does not stand there as it is (within
//! backquotes, after an escape) has the span of the part that it comes from.

use std::ops::Range;

/// Bytes of the outermost text.
pub(in crate::guard) type Span = Range<usize>;

/// Where a nested text stands in the outermost one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::guard) enum Base {
    /// Byte for byte from this offset on.
    At(usize),
    /// Not byte for byte, but somewhere within.
    Within(Span),
}

impl Base {
    /// The span of bytes of the nested text.
    pub(in crate::guard) fn span(&self, bytes: Range<usize>) -> Span {
        match self {
            Self::At(offset) => offset + bytes.start..offset + bytes.end,
            Self::Within(span) => span.clone(),
        }
    }
}

/// What was read of a text: its complete commands, and where and why reading stopped before the end, if it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::guard) struct Parsed {
    /// Everything up to the end, or up to the line that holds the place where reading stopped: a shell runs that much before it
    /// meets the error.
    pub(in crate::guard) list: List,
    /// Where and why reading stopped.
    pub(in crate::guard) refused: Option<Refused>,
}

/// Why a text is not read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::guard) struct Refused {
    /// Where.
    pub(in crate::guard) at: Span,
    /// Why.
    pub(in crate::guard) why: Why,
}

/// The reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::guard) enum Why {
    /// More bytes than are read.
    TooLong,
    /// More levels than are read.
    TooDeep,
    /// A quote, substitution, here-document or compound command without its end.
    Unterminated,
    /// A word or operator in a place where the grammar has none.
    Unexpected,
    /// A control character other than a line feed or tab, outside quotes or in the program's word.
    Control,
    /// Text that shells read in different ways.
    Ambiguous,
}

/// Pipelines in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::guard) struct List(pub(in crate::guard) Vec<Item>);

/// A pipeline and the operator after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::guard) struct Item {
    /// Its commands, joined by `|`; one at least. `time` and `!` before it are left out.
    pub(in crate::guard) commands: Vec<Command>,
    /// What stands after it.
    pub(in crate::guard) then: Then,
}

/// The operator after a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::guard) enum Then {
    /// `&&`
    And,
    /// `||`
    Or,
    /// `;`, a line feed, or the end.
    Next,
    /// `&`
    Background,
}

/// A command with its redirections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::guard) struct Command {
    pub(in crate::guard) kind: Kind,
    /// In their order; those between the words of a simple command are here too. `a |& b` adds `2>&1` to `a`.
    pub(in crate::guard) redirects: Vec<Redirect>,
    pub(in crate::guard) span: Span,
}

/// The kinds of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::guard) enum Kind {
    /// Assignments and words; either may be empty, not both unless there are redirections.
    Simple { assignments: Vec<Assignment>, words: Vec<Word> },
    /// `{ ..; }`
    Group(List),
    /// `( .. )`
    Subshell(List),
    /// `if`, `elif`: condition and body of each; then `else`.
    If { branches: Vec<(List, List)>, otherwise: Option<List> },
    /// `while`, `until`.
    Loop { condition: List, body: List },
    /// `for NAME in ..`, `select NAME in ..`. Without `in`: the positional parameters.
    For { name: String, values: Option<Vec<Word>>, select: bool, body: List },
    /// `for ((..;..;..))`. The header's text as a word.
    ArithmeticFor { header: Word, body: List },
    /// `case`: patterns and body of each arm.
    Case { subject: Word, arms: Vec<(Vec<Word>, List)> },
    /// `((..))`, its text as a word.
    Arithmetic(Word),
    /// `[[ .. ]]`: its words, operators included.
    Condition(Vec<Word>),
    /// `f() ..`, `function f ..`.
    Function { name: String, body: Box<Command> },
    /// `coproc ..`, its name left out.
    Coprocess(Box<Command>),
}

/// `NAME=value`, `NAME+=value`, `NAME[subscript]=value`, `NAME=(..)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::guard) struct Assignment {
    pub(in crate::guard) name: String,
    pub(in crate::guard) subscript: Option<Word>,
    pub(in crate::guard) append: bool,
    pub(in crate::guard) value: Value,
    pub(in crate::guard) span: Span,
}

/// What is assigned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::guard) enum Value {
    /// One word.
    Scalar(Word),
    /// The elements of an array, `[subscript]=` of each as a part of its word.
    Array(Vec<Word>),
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::guard) struct Redirect {
    /// The number or `{name}` before it.
    pub(in crate::guard) descriptor: Option<String>,
    pub(in crate::guard) kind: RedirectKind,
    pub(in crate::guard) span: Span,
}

/// The kinds of redirections, each with its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::guard) enum RedirectKind {
    /// `<`, `<>`
    Read(Word),
    /// `>`, `>>`, `>|`
    Write(Word),
    /// `&>`, `&>>`, and `>& word` where the word is no descriptor.
    WriteBoth(Word),
    /// `<&`, `>&` with a number, `-`, or both.
    Duplicate(Word),
    /// `<<`, `<<-`. The body with the expansions that its delimiter allows, leading tabs removed for `<<-`.
    HereDocument(Word),
    /// `<<<`
    HereString(Word),
}

/// A word as it is written. Without parts it is an empty word, as `''` is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::guard) struct Word {
    pub(in crate::guard) span: Span,
    pub(in crate::guard) parts: Vec<Part>,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::guard) struct Part {
    pub(in crate::guard) kind: PartKind,
    /// Within double quotes (or quoted text): not split into fields, no pattern.
    pub(in crate::guard) quoted: bool,
    /// For text: its bytes, without the quotes.
    pub(in crate::guard) span: Span,
}

/// The kinds of parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::guard) enum PartKind {
    /// Literal text, escapes resolved. Unquoted text may hold braces, a tilde at its start and pattern characters (`* ? [`,
    /// `@(..)` and its like), all of which stay in the text. A quoted empty text makes a word where there would be none.
    Text(String),
    /// `$NAME`, `${..}`.
    Parameter(Parameter),
    /// `$(..)`, `` `..` ``, `${ ..; }`.
    Command(List),
    /// `<(..)` or, when `output`, `>(..)`.
    Process { list: List, output: bool },
    /// `$((..))`, `$[..]`: the text between.
    Arithmetic(Word),
    /// `(..)` after `NAME=` in a word of `declare` and its like.
    Array(Vec<Word>),
}

/// A parameter expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::guard) struct Parameter {
    /// `x`, `1`, `@`, `?` ...
    pub(in crate::guard) name: String,
    pub(in crate::guard) subscript: Option<Box<Word>>,
    pub(in crate::guard) operation: Operation,
}

/// What an expansion does with the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::guard) enum Operation {
    /// `$x`, `${x}`
    Value,
    /// `${x:-w}`, `${x-w}`: the word when it is unset (with `:` also when empty).
    Default { colon: bool, word: Box<Word> },
    /// `${x:=w}`, `${x=w}`: the same, and assigned.
    Assign { colon: bool, word: Box<Word> },
    /// `${x:+w}`, `${x+w}`: the word unless it is unset.
    Alternative { colon: bool, word: Box<Word> },
    /// `${x:?w}`, `${x?w}`: the value, or the end of the shell.
    Error { colon: bool, word: Box<Word> },
    /// `${#x}`: a number.
    Length,
    /// `${!x}`, `${x@P}`: the value is taken for a name or for program text.
    Evaluated,
    /// Everything else: `${x#w}`, `${x/w/w}`, `${x:1}`, `${x^}`, `${x@Q}`, `${!x*}`, with the words in it.
    Changed(Vec<Word>),
}
