//! Groups, subshells, arithmetic, `if`, `while`, `until`, `case`.

use super::Read;
use super::cursor::Parser;
use super::list::Extent;
use super::reserved::Reserved;
use super::word::Stop;
use crate::guard::shell::syntax::{Kind, List, Word};

impl Parser<'_> {
    /// The compound command that begins here, if one does.
    pub(super) fn compound(&mut self) -> Read<Option<Kind>> {
        if self.peek() == Some(b'(') {
            return self.deeper(Self::parenthesis).map(Some);
        }
        let read: fn(&mut Self) -> Read<Kind> = match self.reserved() {
            Some(Reserved::Open) => Self::group,
            Some(Reserved::If) => Self::conditional,
            Some(Reserved::While) => |parser| parser.conditional_loop(b"while"),
            Some(Reserved::Until) => |parser| parser.conditional_loop(b"until"),
            Some(Reserved::For) => Self::for_loop,
            Some(Reserved::Select) => Self::select,
            Some(Reserved::Case) => Self::case,
            Some(Reserved::Condition) => Self::condition,
            _ => return Ok(None),
        };
        self.deeper(read).map(Some)
    }

    /// `(( .. ))` or `( .. )`.
    fn parenthesis(&mut self) -> Read<Kind> {
        let start = self.at;
        if self.take(b"((") {
            let word = self.bracketed(b'(', b')')?;
            self.at += 1;
            // Bash joins no lines here.
            if self.byte_at(self.at) == Some(b')') {
                self.at += 1;
                return Ok(Kind::Arithmetic(word));
            }
            self.back_to(start)?;
        }
        self.take(b"(");
        let list = self.body()?;
        self.expect(b")")?;
        Ok(Kind::Subshell(list))
    }

    /// `{ ..; }`
    pub(super) fn group(&mut self) -> Read<Kind> {
        self.take(b"{");
        let list = self.body()?;
        self.close(b"}")?;
        Ok(Kind::Group(list))
    }

    fn conditional(&mut self) -> Read<Kind> {
        self.take(b"if");
        let mut branches = Vec::new();
        loop {
            let condition = self.body()?;
            self.close(b"then")?;
            branches.push((condition, self.body()?));
            if !self.take_word(b"elif") {
                break;
            }
        }
        let otherwise = if self.take_word(b"else") { Some(self.body()?) } else { None };
        self.close(b"fi")?;
        Ok(Kind::If { branches, otherwise })
    }

    fn conditional_loop(&mut self, word: &[u8]) -> Read<Kind> {
        self.take(word);
        let condition = self.body()?;
        let body = self.do_body()?;
        Ok(Kind::Loop { condition, body })
    }

    /// `do ..; done`
    pub(super) fn do_body(&mut self) -> Read<List> {
        self.close(b"do")?;
        let body = self.body()?;
        self.close(b"done")?;
        Ok(body)
    }

    fn case(&mut self) -> Read<Kind> {
        self.take(b"case");
        self.blanks();
        let subject = self.word(Stop::Word)?;
        self.newlines()?;
        self.close(b"in")?;
        let mut arms = Vec::new();
        loop {
            self.newlines()?;
            if self.take_word(b"esac") {
                return Ok(Kind::Case { subject, arms });
            }
            let patterns = self.patterns()?;
            arms.push((patterns, self.list(Extent::Body)?.unwrap_or_default()));
            self.blanks();
            if !(self.take(b";;&") || self.take(b";;") || self.take(b";&")) {
                self.close(b"esac")?;
                return Ok(Kind::Case { subject, arms });
            }
        }
    }

    /// `a | b)`, with or without `(` before it.
    fn patterns(&mut self) -> Read<Vec<Word>> {
        self.take(b"(");
        let mut patterns = Vec::new();
        loop {
            self.blanks();
            patterns.push(self.word(Stop::Word)?);
            self.blanks();
            if !self.take(b"|") {
                break;
            }
        }
        self.expect(b")")?;
        Ok(patterns)
    }
}
