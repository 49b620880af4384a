//! One call, read once for all guards of a policy.

use std::cell::OnceCell;
use std::ops::Range;

use super::command::{Found, Line};
use super::doubt::Doubt;
use super::judgement::{GuardedCall, Site};
use super::options::Holds;
use super::paths::{Folders, Inside, Place};
use super::rule::{Action, CommandRule, Guard, Rule};
use super::shell::run;
use super::tools::{self, Command, Source};

/// A call with what several guards ask of it; each part is read when the first guard needs it.
pub(super) struct Subject<'a> {
    call: &'a GuardedCall<'a>,
    temporary: &'a [String],
    current: OnceCell<Option<String>>,
    command: OnceCell<Result<(Line, Source<'a>), Finding>>,
}

/// A match of one guard, certain or not.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    /// What it hangs on.
    pub(super) site: Site,
    /// The program word of the command.
    pub(super) program: Option<Range<usize>>,
    /// Why it is not certain; nothing when it is.
    pub(super) doubt: Option<Doubt>,
}

impl<'a> Subject<'a> {
    pub(super) fn new(call: &'a GuardedCall<'a>, temporary: &'a [String]) -> Self {
        Self { call, temporary, current: OnceCell::new(), command: OnceCell::new() }
    }

    /// The finding that a guard answers by. Of a rewriting guard a doubt counts before a certain match: one word that cannot be replaced
    /// spoils the call.
    pub(super) fn strongest<'l>(&'l self, guard: &'l Guard) -> Option<Finding> {
        let doubt_first = matches!(guard.action, Action::Rewrite { .. });
        let mut first = None;
        for finding in self.findings(guard) {
            if finding.doubt.is_some() == doubt_first {
                return Some(finding);
            }
            first.get_or_insert(finding);
        }
        first
    }

    /// Every finding of a guard, in the order of the call.
    pub(super) fn findings<'l>(&'l self, guard: &'l Guard) -> Box<dyn Iterator<Item = Finding> + 'l> {
        match &guard.rule {
            Rule::Path(places) => Box::new(self.paths(places).into_iter()),
            Rule::Flow { from, to } => match self.command() {
                Ok((line, source)) => Box::new(line.flows(from, to).map(|found| placed(found, source))),
                Err(unread) => Box::new(std::iter::once(unread.clone())),
            },
            Rule::Command(rule) => match self.command() {
                Ok((line, source)) => {
                    let folders = self.folders();
                    let rewrites = matches!(guard.action, Action::Rewrite { .. });
                    let exact = move |finding| if rewrites { rebuildable(finding, rule, source) } else { finding };
                    Box::new(line.matches(rule, folders).map(|found| placed(found, source)).map(exact))
                }
                Err(unread) => Box::new(std::iter::once(unread.clone())),
            },
        }
    }

    /// Where the words of the command are found; nothing when it could not be read.
    pub(super) fn source(&self) -> Option<Source<'a>> {
        self.command().as_ref().ok().map(|(_, source)| *source)
    }

    /// Whether another call runs what this one runs, but for the programs (first) that others (second) took the place of.
    pub(super) fn runs_as(&self, other: &Subject<'_>, replaced: &[(&str, &str)]) -> bool {
        match (self.command(), other.command()) {
            (Ok((line, _)), Ok((other, _))) => line.runs_as(other, replaced),
            _ => false,
        }
    }

    fn command(&self) -> &Result<(Line, Source<'a>), Finding> {
        self.command.get_or_init(|| match tools::command(self.call.input) {
            Command::Line(text, source) => Ok((Line::new(run::line(text, self.current())), source)),
            Command::Words(words, source) => Ok((Line::new(run::words(words, self.current())), source)),
            Command::Unclear(why) => Err(Finding { site: Site::Input, program: None, doubt: Some(Doubt::Input(why)) }),
        })
    }

    fn current(&self) -> Option<&str> {
        self.current.get_or_init(|| tools::current_folder(self.call.input, self.call.cwd)).as_deref()
    }

    fn folders(&self) -> Folders<'_> {
        Folders { current: self.current(), workspace: self.call.workspace, temporary: self.temporary }
    }

    fn paths(&self, places: &[Place]) -> Vec<Finding> {
        let named = match tools::paths(self.call.tool, self.call.input) {
            Ok(named) => named,
            Err(why) => return vec![Finding { site: Site::Input, program: None, doubt: Some(Doubt::Input(why)) }],
        };
        let folders = self.folders();
        let inside = Inside::new(places, folders);
        let judged = |path: &'a str| {
            // Some tools take the tilde for the home folder.
            let outside = if path.starts_with('~') { Holds::Maybe } else { inside.excludes(folders.current, path) };
            let doubt = match outside {
                Holds::No => return None,
                Holds::Maybe => Some(Doubt::Folder(path.to_owned())),
                Holds::Yes => None,
            };
            Some(Finding { site: Site::Path(path.to_owned()), program: None, doubt })
        };
        named.into_iter().filter_map(judged).collect()
    }
}

fn placed(found: Found, source: &Source<'_>) -> Finding {
    let site = if source.line().is_some() { Site::Line(found.span) } else { Site::Element(found.span.start) };
    Finding { site, program: found.program, doubt: found.doubt }
}

/// Narrows a match to the program's name as it is written, or doubts it: replacing anything else could change more than the program.
fn rebuildable(mut finding: Finding, rule: &CommandRule, source: &Source<'_>) -> Finding {
    let name = finding.program.as_ref().and_then(|word| source.only(word, &rule.program));
    match name {
        Some(name) => finding.program = Some(name),
        None => drop(finding.doubt.get_or_insert(Doubt::Rebuild)),
    }
    finding
}
