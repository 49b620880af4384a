//! Lines, lists, pipelines.

use super::cursor::Parser;
use super::document::fill;
use super::parts::literal;
use super::reserved::Reserved;
use super::{MAX_DEPTH, Read};
use crate::guard::shell::syntax::{Command, Item, List, Parsed, Redirect, RedirectKind, Then, Why};

impl Parser<'_> {
    /// Reads line by line, as a shell runs them. The line that is refused is left out, those before it stay.
    pub(super) fn lines(mut self) -> Parsed {
        let mut list = List::default();
        let refused = self.read_lines(&mut list, false).err();
        Parsed { list, refused }
    }

    /// The lines of a text that is broken off: the last one is left out, unless its line feed is there.
    pub(super) fn lines_before_break(mut self) -> List {
        let mut list = List::default();
        // Whatever is wrong with the rest: that it is broken off is refused in any case.
        let _ = self.read_lines(&mut list, true);
        list
    }

    fn read_lines(&mut self, list: &mut List, broken: bool) -> Read<()> {
        loop {
            self.newlines()?;
            if self.peek().is_none() {
                return Ok(());
            }
            let line = self.line()?;
            if broken && self.at >= self.text.len() {
                return Ok(());
            }
            list.0.extend(line.0);
        }
    }

    /// A line with everything that begins in it, up to its line feed.
    fn line(&mut self) -> Read<List> {
        let mut line = self.list(Extent::Line)?.unwrap_or_default();
        match self.peek() {
            Some(b'\n') => self.newline()?,
            None => self.read_documents()?,
            Some(_) => return Err(self.unexpected()),
        }
        fill(&mut line, &mut self.documents);
        Ok(line)
    }

    /// The text within a substitution: all of its lines, one mistake refuses it.
    pub(super) fn all_lines(mut self) -> Read<List> {
        let mut list = List::default();
        self.read_lines(&mut list, false)?;
        Ok(list)
    }

    /// A list within a command; one command at least.
    pub(super) fn body(&mut self) -> Read<List> {
        self.list(Extent::Body)?.ok_or_else(|| self.unexpected())
    }

    /// A list up to something that is none of its own; nothing, if there is not even a lone `!`.
    pub(super) fn list(&mut self, extent: Extent) -> Read<Option<List>> {
        let (mut items, mut any) = (Vec::new(), false);
        let mut first = extent == Extent::Substitution;
        loop {
            self.blanks();
            if extent != Extent::Line && self.newlines()? > 0 {
                first = false;
            }
            if self.at_end(extent) {
                return Ok(any.then_some(List(items)));
            }
            any = true;
            let goes_on = self.and_or(&mut items, first)?;
            if !goes_on {
                return Ok(Some(List(items)));
            }
            first = false;
        }
    }

    /// Whether a list ends here, where a command may begin.
    fn at_end(&mut self, extent: Extent) -> bool {
        match self.peek() {
            None | Some(b')') => true,
            Some(b'\n') => extent == Extent::Line,
            Some(b'}') if extent == Extent::Function => true,
            Some(b';') => matches!(self.peek_second(), Some(b';' | b'&')),
            Some(_) => self.reserved().is_some_and(Reserved::closes),
        }
    }

    /// Pipelines joined by `&&` and `||`, and what ends them. Whether the list goes on.
    fn and_or(&mut self, items: &mut Vec<Item>, mut first: bool) -> Read<bool> {
        loop {
            let commands = self.pipeline(first)?;
            first = false;
            self.blanks();
            let (then, goes_on) = self.operator();
            if commands.is_empty() && matches!(then, Then::And | Then::Or | Then::Background) {
                return Err(self.unexpected());
            }
            if !commands.is_empty() {
                items.push(Item { commands, then });
            }
            match then {
                Then::And | Then::Or => self.newlines()?,
                Then::Next | Then::Background => return Ok(goes_on),
            };
        }
    }

    /// The operator after a pipeline, and whether something may follow. A line feed is left to the list.
    fn operator(&mut self) -> (Then, bool) {
        if self.take(b"&&") {
            (Then::And, true)
        } else if self.take(b"||") {
            (Then::Or, true)
        } else if self.take(b"&") {
            (Then::Background, true)
        } else if self.peek() == Some(b';') && !matches!(self.peek_second(), Some(b';' | b'&')) {
            self.at += 1;
            (Then::Next, true)
        } else {
            (Then::Next, self.peek() == Some(b'\n'))
        }
    }

    /// Commands joined by `|`; none after a lone `!` or `time`.
    fn pipeline(&mut self, first: bool) -> Read<Vec<Command>> {
        let mut commands = Vec::with_capacity(1);
        if self.prefixes(first)? && self.at_bare_end() {
            return Ok(commands);
        }
        let mut program_time = false;
        loop {
            let mut command = self.command(program_time)?;
            self.blanks();
            let start = self.at;
            let both = self.take(b"|&");
            if both {
                command.redirects.push(self.error_to_output(start));
            }
            commands.push(command);
            let joined = both || self.peek() == Some(b'|') && self.peek_second() != Some(b'|') && self.take(b"|");
            if !joined {
                return Ok(commands);
            }
            // Directly after `|`, also on the next line, `time` is no reserved word; bash forgets that after one more line.
            program_time = self.newlines()? < 2;
        }
    }

    /// `!` and `time` with its options. Whether there was one.
    fn prefixes(&mut self, mut first: bool) -> Read<bool> {
        for taken in 0..=MAX_DEPTH {
            self.blanks();
            match self.reserved() {
                Some(Reserved::Not) => self.negation()?,
                Some(Reserved::Time) => self.time(first)?,
                _ => return Ok(taken > 0),
            }
            first = false;
        }
        // Bash takes each for a level.
        Err(self.refuse(Why::TooDeep))
    }

    fn negation(&mut self) -> Read<()> {
        self.take(b"!");
        // With `extglob` a pattern in the place of the program.
        if self.peek() == Some(b'(') { Err(self.refuse(Why::Ambiguous)) } else { Ok(()) }
    }

    fn time(&mut self, first: bool) -> Read<()> {
        self.take(b"time");
        self.blanks();
        let posix = self.take_word(b"-p");
        self.blanks();
        self.take_word(b"--");
        // Some versions take the first word of a substitution for the program, which has options of its own.
        if first && !posix && self.peek() == Some(b'-') { Err(self.refuse(Why::Ambiguous)) } else { Ok(()) }
    }

    /// Whether a lone `!` or `time` ends here.
    fn at_bare_end(&mut self) -> bool {
        match self.peek() {
            None | Some(b'\n') => true,
            Some(b';') => self.peek_second() != Some(b';'),
            Some(_) => false,
        }
    }

    /// What `|&` adds to the command before it.
    fn error_to_output(&self, start: usize) -> Redirect {
        let span = self.span(start..self.at);
        let word = literal("1", span.clone());
        Redirect { descriptor: Some("2".to_owned()), kind: RedirectKind::Duplicate(word), span }
    }

    /// Takes the reserved word that has to end a list.
    pub(super) fn close(&mut self, word: &[u8]) -> Read<()> {
        self.blanks();
        if self.take_word(word) { Ok(()) } else { Err(self.unexpected()) }
    }
}

/// Where a list stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Up to the end of a line.
    Line,
    /// Within a compound command.
    Body,
    /// Within `$(..)`.
    Substitution,
    /// Within `${ ..; }`.
    Function,
}
