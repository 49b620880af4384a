//! What a shell knows while it runs: variables, functions, its folder, its input.
//!
//! A branch that may or may not be taken leaves what it changed unknown; a subshell leaves nothing. Both follow from a log of the
//! changes, so that no state is copied.
//!
//! | after                        | a variable that it changed | the folder, if it changed it |
//! |------------------------------|----------------------------|------------------------------|
//! | a subshell, a pipe's side    | as before                  | as before                    |
//! | a branch, a loop, `&& ..`    | unknown                    | unknown                      |

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::super::field::{Field, Open};
use super::super::syntax::{Command, Span};
use super::origin::Origins;
use super::stream::Stream;

/// The most variables that are remembered; the others are unknown.
const MAX_VARIABLES: usize = 256;

/// A variable's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(Field),
    Array(Vec<Field>),
}

impl Value {
    /// A value that may be anything.
    pub(super) fn unknown(from: Origins) -> Self {
        Self::Text(Field { open: Open::One, from, ..Field::default() })
    }

    pub(super) fn from(&self) -> Origins {
        match self {
            Self::Text(field) => field.from.clone(),
            Self::Array(fields) => fields.iter().fold(Origins::default(), |mut all, field| {
                all.add(&field.from);
                all
            }),
        }
    }
}

/// A function that the text defines.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) body: Command,
    pub(super) at: Span,
}

/// One shell process.
#[derive(Debug, Default)]
pub(super) struct Shell {
    variables: HashMap<Rc<str>, Value>,
    /// Every change, with what was there before.
    log: Vec<(Rc<str>, Option<Value>)>,
    /// Variables beyond [`MAX_VARIABLES`] were assigned: one that is not remembered may have been.
    forgotten: bool,
    /// Variables to which an assignment does not just give its text: read-only ones, numbers, those that change case.
    odd: HashSet<Rc<str>>,
    pub(super) functions: HashMap<Rc<str>, Rc<Function>>,
    /// The absolute folder, if it is known.
    pub(super) folder: Option<Rc<str>>,
    /// The folder if the command that ran last failed, where that is another one.
    pub(super) after_failure: Option<Option<Rc<str>>>,
    /// `$0`, `$1` ..., if they are known.
    pub(super) positional: Option<Rc<[Field]>>,
    /// Standard input.
    pub(super) input: Rc<Stream>,
    /// `set -e`.
    pub(super) stops_on_failure: bool,
    /// Words are split in a way that is not the usual one.
    pub(super) splits_oddly: bool,
    /// The command that ran last ends the shell or leaves the list.
    pub(super) leaves: bool,
    /// It runs where no path means what it means here.
    pub(super) elsewhere: bool,
}

/// A moment to which a shell can be taken back.
pub(super) struct Moment {
    changes: usize,
    folder: Option<Rc<str>>,
    positional: Option<Rc<[Field]>>,
    input: Rc<Stream>,
    stops_on_failure: bool,
    elsewhere: bool,
}

impl Moment {
    /// The input at that moment.
    pub(super) fn input(&self) -> Rc<Stream> {
        Rc::clone(&self.input)
    }

    /// The positional parameters at that moment.
    pub(super) fn positional(&self) -> Option<Rc<[Field]>> {
        self.positional.clone()
    }
}

impl Shell {
    /// The same shell at a time of which nothing is known but its functions.
    pub(super) fn later(&self) -> Self {
        Self {
            forgotten: true,
            functions: self.functions.clone(),
            elsewhere: self.elsewhere,
            splits_oddly: true,
            ..Self::default()
        }
    }

    pub(super) fn new(folder: Option<&str>) -> Self {
        Self { folder: folder.map(Rc::from), ..Self::default() }
    }

    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.variables.get(name)
    }

    /// Whether nothing in the text has assigned this variable: the environment says what it is.
    pub(super) fn is_from_outside(&self, name: &str) -> bool {
        !self.forgotten && !self.variables.contains_key(name)
    }

    pub(super) fn assign(&mut self, name: &str, value: Value) {
        if name == "IFS" {
            self.splits_oddly = true;
        }
        let known = self.variables.contains_key(name);
        if !known && self.variables.len() >= MAX_VARIABLES {
            self.forgotten = true;
            return;
        }
        let name: Rc<str> = Rc::from(name);
        let value = if self.odd.contains(&name) { Value::unknown(value.from()) } else { value };
        let before = self.variables.insert(Rc::clone(&name), value);
        self.log.push((name, before));
    }

    /// From now on an assignment to this variable does not just give its text.
    pub(super) fn make_odd(&mut self, name: &str) {
        self.odd.insert(Rc::from(name));
    }

    /// Any variable may have been assigned.
    pub(super) fn forget_all(&mut self) {
        self.forgotten = true;
        let names: Vec<Rc<str>> = self.variables.keys().cloned().collect();
        for name in names {
            self.assign(&name, Value::unknown(Origins::default()));
        }
    }

    pub(super) fn now(&self) -> Moment {
        Moment {
            changes: self.log.len(),
            folder: self.folder.clone(),
            positional: self.positional.clone(),
            input: Rc::clone(&self.input),
            stops_on_failure: self.stops_on_failure,
            elsewhere: self.elsewhere,
        }
    }

    /// Back to a moment, as after a subshell. What was odd stays odd.
    pub(super) fn back_to(&mut self, moment: &Moment) {
        self.undo(moment.changes);
        self.folder.clone_from(&moment.folder);
        self.after_failure = None;
        self.positional.clone_from(&moment.positional);
        self.input = Rc::clone(&moment.input);
        self.stops_on_failure = moment.stops_on_failure;
        self.elsewhere = moment.elsewhere;
        self.leaves = false;
    }

    /// What was changed since a moment may have been changed or not. How many variables that were.
    pub(super) fn doubt_since(&mut self, moment: &Moment) -> usize {
        let changes = self.log.len() - moment.changes;
        self.doubt_changes(moment.changes);
        if self.folder != moment.folder {
            self.folder = None;
        }
        if self.positional != moment.positional {
            self.positional = None;
        }
        if !Rc::ptr_eq(&self.input, &moment.input) {
            self.input = Rc::new(Stream::unknown(self.input.from().clone()));
        }
        self.stops_on_failure &= moment.stops_on_failure;
        self.after_failure = None;
        changes
    }

    fn doubt_changes(&mut self, since: usize) {
        for place in since..self.log.len() {
            let (name, before) = &self.log[place];
            let Some(value) = self.variables.get_mut(name) else { continue };
            if before.as_ref() != Some(value) {
                *value = Value::unknown(value.from());
            }
        }
    }

    fn undo(&mut self, changes: usize) {
        for (name, before) in self.log.drain(changes..).rev() {
            match before {
                Some(value) => drop(self.variables.insert(name, value)),
                None => drop(self.variables.remove(&name)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(shell: &Shell, name: &str) -> Option<String> {
        match shell.value(name) {
            Some(Value::Text(field)) => field.literal().map(str::to_owned),
            _ => None,
        }
    }

    fn known(text: &str) -> Value {
        Value::Text(Field::known(text, 0..0))
    }

    #[test]
    fn a_subshell_leaves_nothing() {
        let mut shell = Shell::new(Some("/ws"));
        shell.assign("a", known("1"));
        let moment = shell.now();
        shell.assign("a", known("2"));
        shell.assign("b", known("3"));
        shell.folder = Some(Rc::from("/"));
        shell.back_to(&moment);
        assert_eq!((text(&shell, "a"), shell.folder.as_deref()), (Some("1".to_owned()), Some("/ws")));
        assert!(shell.is_from_outside("b"));
    }

    #[test]
    fn a_branch_leaves_what_it_changed_unknown() {
        let mut shell = Shell::new(Some("/ws"));
        shell.assign("a", known("1"));
        shell.assign("c", known("4"));
        let moment = shell.now();
        shell.assign("a", known("2"));
        shell.assign("c", known("4"));
        shell.folder = Some(Rc::from("/"));
        shell.doubt_since(&moment);
        assert_eq!((text(&shell, "a"), text(&shell, "c"), shell.folder.as_deref()), (None, Some("4".to_owned()), None));
        assert!(!shell.is_from_outside("a"));
    }

    #[test]
    fn what_is_not_remembered_is_not_from_outside() {
        let mut shell = Shell::default();
        for number in 0..=MAX_VARIABLES {
            shell.assign(&format!("v{number}"), known("1"));
        }
        assert!(!shell.is_from_outside("never"));
    }
}
