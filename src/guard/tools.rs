//! Where the tools of coding agents carry their command or their paths.
//!
//! | tool                                   | member of the input                                                             |
//! |----------------------------------------|---------------------------------------------------------------------------------|
//! | any that a command guard is for        | `command` or `cmd`, also inside `action`: a line, or a list of words            |
//! | the list `SHELL -c LINE`               | the line (`SHELL -lc LINE` likewise)                                            |
//! | any that a path guard is for           | `file_path`, `notebook_path`, `path`                                            |
//! | `apply_patch`                          | the text itself, `input` or `patch`: the paths that its headers name            |
//!
//! `workdir`, `working_directory` and `cwd` of the input replace the folder of the call. A `shell` that does not read a line as bash does,
//! and every missing or ill-typed member, leaves the call unclear.

use std::ops::Range;

use serde_json::Value;

use super::paths;
use super::shell::field::Field;
use super::shell::parse::MAX_BYTES;

/// The tools that a command guard without `tools` is for.
pub(super) const SHELL_TOOLS: &[&str] = &["Bash", "exec_command", "local_shell", "local_shell_call", "shell", "shell_command"];

/// The tools that a path guard without `tools` is for.
pub(super) const PATH_TOOLS: &[&str] = &["Edit", "MultiEdit", "NotebookEdit", "Write", "apply_patch"];

/// The shells whose lines are read.
const SHELLS: &[&str] = &["bash", "dash", "ksh", "sh", "zsh"];

/// The command of one call.
#[derive(Debug)]
pub(super) enum Command<'a> {
    /// A line, as `source` says.
    Line(&'a str, Source<'a>),
    /// A list of words, which no shell reads.
    Words(Vec<Field>, Source<'a>),
    /// The input does not hold a command in a form that is known.
    Unclear(&'static str),
}

/// Where the words of a command are found in the input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    /// The member is inside `action`.
    action: bool,
    key: &'static str,
    form: Form<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Form<'a> {
    /// A line: the member's text, or the text of one element of it.
    Line { text: &'a str, element: Option<usize> },
    /// A list of words.
    List(&'a [Value]),
}

impl<'a> Source<'a> {
    /// The line that the spans of words point into; nothing when they are numbers of list elements.
    pub(super) fn line(&self) -> Option<&'a str> {
        match self.form {
            Form::Line { text, .. } => Some(text),
            Form::List(_) => None,
        }
    }

    /// Where a name stands within a word as it is written, if it stands there once and can be replaced alone.
    pub(super) fn only(&self, word: &Range<usize>, name: &str) -> Option<Range<usize>> {
        match self.form {
            Form::Line { text, .. } => {
                let mut places = text.get(word.clone())?.match_indices(name).map(|(at, _)| word.start + at);
                let place = places.next().filter(|_| places.next().is_none())?;
                Some(place..place + name.len())
            }
            Form::List(list) => (list.get(word.start)?.as_str()? == name).then(|| word.clone()),
        }
    }

    /// The input with some words replaced. The spans do not overlap and are in order.
    pub(super) fn replaced<'w>(&self, input: &Value, words: impl Iterator<Item = (Range<usize>, &'w str)>) -> Value {
        let mut input = input.clone();
        let holder = if self.action { &mut input["action"] } else { &mut input };
        let member = &mut holder[self.key];
        match self.form {
            Form::Line { text, element } => {
                let mut line = String::with_capacity(text.len());
                let mut end = 0;
                for (span, word) in words {
                    line.push_str(&text[end..span.start]);
                    line.push_str(word);
                    end = span.end;
                }
                line.push_str(&text[end..]);
                match element {
                    Some(element) => member[element] = Value::String(line),
                    None => *member = Value::String(line),
                }
            }
            Form::List(_) => words.for_each(|(span, word)| member[span.start] = Value::String(word.to_owned())),
        }
        input
    }
}

/// Finds and reads the command of a call.
pub(super) fn command(input: &Value) -> Command<'_> {
    let Some((action, key, member)) = command_member(input) else {
        return Command::Unclear("the input has no single `command` or `cmd`");
    };
    let shell = input.get("shell").filter(|shell| !shell.is_null());
    if shell.is_some_and(|shell| !shell.as_str().is_some_and(is_shell)) {
        return Command::Unclear("the line is for a shell that is not read");
    }
    match member {
        Value::String(text) => Command::Line(text, Source { action, key, form: Form::Line { text, element: None } }),
        Value::Array(elements) => {
            let Some(list) = elements.iter().map(Value::as_str).collect::<Option<Vec<&str>>>() else {
                return Command::Unclear("the list of words holds something that is no text");
            };
            match list[..] {
                [shell, "-c" | "-lc", text] if is_shell(shell) => {
                    Command::Line(text, Source { action, key, form: Form::Line { text, element: Some(2) } })
                }
                _ => words_of(&list, Source { action, key, form: Form::List(elements) }),
            }
        }
        _ => Command::Unclear("the command is neither a text nor a list of words"),
    }
}

/// The folder that relative paths start from: the call's, or the one that its input names. Nothing when it cannot be told.
pub(super) fn current_folder(input: &Value, call: Option<&str>) -> Option<String> {
    let named = ["workdir", "working_directory", "cwd"].iter().find_map(|key| {
        [Some(input), input.get("action")]
            .into_iter()
            .flatten()
            .find_map(|holder| holder.get(key))
            .filter(|value| !value.is_null())
    });
    match named {
        None => call.map(str::to_owned),
        Some(named) => paths::resolve(call, named.as_str()?),
    }
}

/// The paths that a call names, or why they cannot be told.
pub(super) fn paths<'a>(tool: &str, input: &'a Value) -> Result<Vec<&'a str>, &'static str> {
    if tool == "apply_patch" || input.is_string() {
        let patch = input.as_str().or_else(|| ["input", "patch"].iter().find_map(|key| input.get(key)?.as_str()));
        let patch = patch.ok_or("the input holds no patch")?;
        let paths: Vec<&str> = patch.lines().filter_map(patched).collect();
        return if paths.is_empty() { Err("the patch names no file") } else { Ok(paths) };
    }
    let mut paths = Vec::new();
    for key in ["file_path", "notebook_path", "path"] {
        match input.get(key) {
            None | Some(Value::Null) => {}
            Some(Value::String(path)) => paths.push(path.as_str()),
            Some(_) => return Err("the path is no text"),
        }
    }
    if paths.is_empty() { Err("the input names no path") } else { Ok(paths) }
}

fn patched(line: &str) -> Option<&str> {
    let header = line.trim().strip_prefix("*** ")?;
    let headers = ["Add File:", "Update File:", "Delete File:", "Move to:"];
    headers.iter().find_map(|prefix| header.strip_prefix(prefix)).map(str::trim)
}

/// The one member that holds the command.
fn command_member(input: &Value) -> Option<(bool, &'static str, &Value)> {
    let mut found = None;
    for (action, holder) in [(false, Some(input)), (true, input.get("action"))] {
        for key in ["command", "cmd"] {
            let Some(member) = holder.and_then(|holder| holder.get(key)) else { continue };
            if found.replace((action, key, member)).is_some() {
                return None;
            }
        }
    }
    found
}

fn is_shell(program: &str) -> bool {
    SHELLS.contains(&program.rsplit('/').next().unwrap_or(program))
}

/// A list of words is one simple command that no shell reads.
fn words_of<'a>(list: &[&'a str], source: Source<'a>) -> Command<'a> {
    if list.is_empty() {
        return Command::Unclear("the list of words is empty");
    }
    if list.iter().map(|word| word.len()).sum::<usize>() > MAX_BYTES || list.iter().any(|word| word.contains('\0')) {
        return Command::Unclear("the list of words is too long or holds a NUL");
    }
    Command::Words(list.iter().enumerate().map(|(at, word)| Field::known(*word, at..at + 1)).collect(), source)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words(input: &Value) -> Vec<String> {
        match command(input) {
            Command::Words(words, _) => words.into_iter().map(|word| word.text).collect(),
            other => panic!("{input} is no list of words: {other:?}"),
        }
    }

    #[test]
    fn commands_are_found_in_every_form() {
        for input in [
            json!({"command": "ls; pwd"}),
            json!({"cmd": "ls; pwd", "workdir": "/x", "shell": "/bin/zsh"}),
            json!({"command": ["bash", "-lc", "ls; pwd"]}),
            json!({"command": ["/bin/sh", "-c", "ls; pwd"]}),
            json!({"action": {"type": "exec", "command": ["bash", "-lc", "ls; pwd"]}}),
        ] {
            assert!(matches!(command(&input), Command::Line("ls; pwd", _)), "{input}");
        }
        assert_eq!(words(&json!({"command": ["ls", "a; b", "$c"]})), ["ls", "a; b", "$c"]);
        assert_eq!(words(&json!({"command": ["bash", "-lc", "ls", "x"]})), ["bash", "-lc", "ls", "x"]);
    }

    #[test]
    fn what_is_no_command_is_unclear() {
        for input in [
            json!({}),
            json!(null),
            json!("ls"),
            json!({"command": {"redacted": true}}),
            json!({"command": ["ls", 1]}),
            json!({"command": []}),
            json!({"command": ["ls", "\0"]}),
            json!({"command": "ls", "cmd": "rm"}),
            json!({"cmd": "ls", "shell": "pwsh"}),
            json!({"cmd": "ls", "shell": 1}),
        ] {
            assert!(matches!(command(&input), Command::Unclear(_)), "{input}");
        }
    }

    #[test]
    fn paths_are_found_in_every_form() {
        let patch = "*** Begin Patch\n*** Update File: a b\n*** Move to: ../c\n@@\n-x\n+*** Add File: no\n*** Delete File: d\n*** End Patch";
        for input in [json!(patch), json!({"input": patch}), json!({"patch": patch})] {
            assert_eq!(paths("apply_patch", &input).unwrap(), ["a b", "../c", "d"]);
        }
        assert_eq!(paths("Edit", &json!({"file_path": "x", "old_string": "y"})).unwrap(), ["x"]);
        assert_eq!(paths("NotebookEdit", &json!({"notebook_path": "x"})).unwrap(), ["x"]);
        for input in [json!({}), json!({"file_path": 1}), json!([]), json!(null)] {
            assert!(paths("Edit", &input).is_err(), "{input}");
        }
        assert!(paths("apply_patch", &json!("no patch")).is_err());
    }

    #[test]
    fn the_input_may_name_the_folder() {
        assert_eq!(current_folder(&json!({}), Some("/ws")).as_deref(), Some("/ws"));
        assert_eq!(current_folder(&json!({"workdir": "a/.."}), Some("/ws")).as_deref(), Some("/ws"));
        assert_eq!(current_folder(&json!({"action": {"working_directory": "/x"}}), None).as_deref(), Some("/x"));
        assert_eq!(current_folder(&json!({"workdir": "a"}), None), None);
        assert_eq!(current_folder(&json!({"workdir": 1}), Some("/ws")), None);
    }
}
