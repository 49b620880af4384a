//! One call, read once for all guards of a policy.

use std::cell::OnceCell;
use std::ops::Range;

use super::command::{Doubt, Found, Line};
use super::options::Holds;
use super::paths::{self, Folders, Place};
use super::policy::{GuardedCall, Site};
use super::rule::{Action, CommandRule, Guard, Rule};
use super::tools::{self, Command, Source};

/// A call with what several guards ask of it; each part is read when the first guard needs it.
pub(super) struct Subject<'a> {
    call: &'a GuardedCall<'a>,
    temporary: &'a [String],
    current: OnceCell<Option<String>>,
    command: OnceCell<Result<(Line<'a>, Source<'a>), Finding>>,
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
    pub(super) fn strongest(&self, guard: &Guard) -> Option<Finding> {
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
    pub(super) fn findings(&self, guard: &Guard) -> Vec<Finding> {
        let places = match &guard.rule {
            Rule::Path(places) => return self.paths(places),
            Rule::Command(rule) => rule.outside.as_deref(),
            Rule::Flow { .. } => None,
        };
        let (line, source) = match self.command() {
            Ok(command) => command,
            Err(unread) => return vec![unread.clone()],
        };
        let placed = |found| placed(found, source);
        match &guard.rule {
            Rule::Path(_) => Vec::new(),
            Rule::Flow { from, to } => line.flows(from, to).map(placed).collect(),
            Rule::Command(rule) => {
                let exact = |finding: Finding| match guard.action {
                    Action::Rewrite { .. } => rebuildable(finding, rule, source),
                    Action::Deny | Action::Ask | Action::Allow | Action::Record => finding,
                };
                // Only operands are paths.
                let folders = self.folders(places.is_some());
                line.matches(rule, folders).map(placed).map(exact).collect()
            }
        }
    }

    /// Where the words of the command are found; nothing when it could not be read.
    pub(super) fn source(&self) -> Option<Source<'a>> {
        self.command().as_ref().ok().map(|(_, source)| *source)
    }

    fn command(&self) -> &Result<(Line<'a>, Source<'a>), Finding> {
        let unread = |site, doubt| Err(Finding { site, program: None, doubt: Some(doubt) });
        self.command.get_or_init(|| match tools::command(self.call.input) {
            Command::Literal { commands, source } => Ok((Line::new(commands), source)),
            Command::NotLiteral(refused) => unread(Site::Line(refused.at..refused.at), Doubt::NotLiteral(refused.what)),
            Command::Unclear(why) => unread(Site::Input, Doubt::Input(why)),
        })
    }

    fn folders(&self, needed: bool) -> Folders<'_> {
        let current = || self.current.get_or_init(|| tools::current_folder(self.call.input, self.call.cwd)).as_deref();
        Folders { current: if needed { current() } else { None }, workspace: self.call.workspace, temporary: self.temporary }
    }

    fn paths(&self, places: &[Place]) -> Vec<Finding> {
        let named = match tools::paths(self.call.tool, self.call.input) {
            Ok(named) => named,
            Err(why) => return vec![Finding { site: Site::Input, program: None, doubt: Some(Doubt::Input(why)) }],
        };
        let folders = self.folders(true);
        let judged = |path: String| {
            // Some tools take the tilde for the home folder.
            let outside = if path.starts_with('~') { Holds::Maybe } else { paths::outside(places, &path, folders) };
            let doubt = match outside {
                Holds::No => return None,
                Holds::Maybe => Some(Doubt::Folder(path.clone())),
                Holds::Yes => None,
            };
            Some(Finding { site: Site::Path(path), program: None, doubt })
        };
        named.into_iter().filter_map(judged).collect()
    }
}

fn placed(found: Found, source: &Source<'_>) -> Finding {
    let site = if source.line().is_some() { Site::Line(found.span) } else { Site::Element(found.span.start) };
    Finding { site, program: Some(found.program), doubt: found.doubt }
}

/// Doubts a match whose program word is not written as the bare name: replacing it could change more than the program.
fn rebuildable(mut finding: Finding, rule: &CommandRule, source: &Source<'_>) -> Finding {
    let word = finding.program.clone().and_then(|span| source.written(span));
    if word != Some(&rule.program) {
        finding.doubt.get_or_insert(Doubt::Rebuild);
    }
    finding
}
