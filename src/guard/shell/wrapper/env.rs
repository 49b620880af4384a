//! `env`: options, assignments, then the child. The words of `-S TEXT` take the place of the option, and reading goes on with them.

use std::borrow::Cow;

use super::options::{Call, Grammar, Stop, assignment};
use super::{Child, Folder, Found, split};

/// How many `-S` within one another are followed.
const MAX_SPLITS: usize = 8;

/// GNU's options, and `-L -P -U` of the BSDs.
const OPTIONS: Grammar = Grammar::new(
    "a:C:iL:P:S:u:U:v0",
    &[
        "argv0:",
        "ignore-environment",
        "null",
        "unset:",
        "chdir:",
        "split-string:",
        "block-signal::",
        "default-signal::",
        "ignore-signal::",
        "list-signal-handling",
        "debug",
        "help",
        "version",
    ],
)
.dash()
.last(&["S", "split-string"]);

pub(super) fn env(call: &mut Call<'_>) -> Found {
    let mut fields = Cow::Borrowed(call.fields);
    let mut folder = Folder::Same;
    for _ in 0..MAX_SPLITS {
        let mut inner = Call::new(&fields);
        let options = inner.leading(&OPTIONS, 1)?;
        if let Some(found) = options.value(&["C", "chdir"]) {
            folder = Folder::Known(found.clone());
        }
        let text = options.value(&["S", "split-string"]).cloned();
        let Some(text) = text else {
            let child = words(&mut inner, options.rest, &folder);
            call.doubt = call.doubt.take().or(inner.doubt);
            return Ok(child.into_iter().collect::<Vec<_>>().into());
        };
        let computed = || Stop { span: text.span.clone(), computed: true };
        let mut split = vec![fields[0].clone()];
        split.extend(split::env(&text).ok_or_else(computed)?);
        split.extend(inner.rest(options.rest));
        call.doubt = call.doubt.take().or(inner.doubt);
        fields = Cow::Owned(split);
    }
    Err(Stop { span: fields[0].span.clone(), computed: true })
}

/// The child, after assignments.
fn words(call: &mut Call<'_>, from: usize, folder: &Folder) -> Option<Child> {
    let mut at = from;
    let mut set = Vec::new();
    while let Some(assigned) = call.fields.get(at).and_then(assignment) {
        call.operand(at);
        set.push(assigned);
        at += 1;
    }
    let mut child = Child::command(call.rest(at))?;
    if let Child::Command { assignments, .. } = &mut child {
        *assignments = set;
    }
    Some(child.within(folder))
}
