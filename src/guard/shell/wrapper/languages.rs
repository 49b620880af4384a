//! Programs of other languages: what their texts name may run.
//!
//! | the call                                             | it runs                                                        |
//! |------------------------------------------------------|----------------------------------------------------------------|
//! | `make --eval TEXT`, `python -c TEXT`, `node -e TEXT` | if the text is known: what it names; else unclear              |
//! | `vim -c '!TEXT'`, `vim +'!TEXT'`                     | the text, as text of a shell                                   |
//! | a script, a makefile                                 | out of sight                                                   |
//!
//! None of these programs is [`Children::known`]: the caller looks for names in their words and in their input.

use super::super::field::Open;
use super::options::{Call, tail};
use super::{Child, Children, Found};

/// What makefiles run is out of sight; `--eval` is one.
pub(super) fn make(call: &mut Call<'_>) -> Found {
    let list =
        computed(call, |text| "--eval".starts_with(text.split('=').next().unwrap_or(text)) && text.len() > 3 || text == "-E");
    Ok(Children { list, known: false })
}

pub(super) fn vim(call: &mut Call<'_>) -> Found {
    let mut list = Vec::new();
    for (at, field) in call.fields.iter().enumerate().skip(1) {
        let command = match field.text.as_str() {
            "-c" | "--cmd" | "-S" => call.fields.get(at + 1).cloned(),
            text if text.starts_with('+') => Some(tail(field, 1)),
            text if text.starts_with("-c") => Some(tail(field, 2)),
            _ => None,
        };
        let Some(command) = command else { continue };
        let start = command.text.len() - command.text.trim_start_matches([':', ' ']).len();
        match &command.text[start..] {
            text if text.starts_with('!') => list.push(Child::text(tail(&command, start + 1))),
            _ if command.open != Open::No => list.push(Child::Unclear(command.span.clone())),
            _ => {}
        }
    }
    Ok(Children { list, known: false })
}

/// Interpreters, and the letters and long options with which the next word is their program.
const INTERPRETERS: &[(&str, &str, &[&str])] = &[
    ("bun", "ep", &["--eval", "--print"]),
    ("deno", "", &["eval"]),
    ("lua", "e", &[]),
    ("node", "ep", &["--eval", "--print"]),
    ("osascript", "e", &[]),
    ("perl", "eE", &[]),
    ("php", "r", &[]),
    ("python", "c", &[]),
    ("ruby", "e", &[]),
];

/// Programs of other languages: a literal text runs what it names, a computed one anything.
pub(super) fn interpreter(call: &mut Call<'_>, name: &str) -> Found {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let Some((_, letters, long)) = INTERPRETERS.iter().find(|(program, ..)| *program == name) else {
        return Ok(Children::default());
    };
    // A word that cannot be the value of an option is the script: what follows is the script's.
    let bare = |at: usize| !call.fields[at].text.starts_with('-') && !long.contains(&call.fields[at].text.as_str());
    let script = (1..call.fields.len()).find(|at| bare(*at) && (*at == 1 || bare(*at - 1)));
    let before = Call::new(&call.fields[..script.unwrap_or(call.fields.len())]);
    let list = computed(&before, |text| {
        let letter = |option: &str| !option.starts_with('-') && option.contains(|c| letters.contains(c));
        text.strip_prefix('-').is_some_and(letter) || long.iter().any(|name| text.split('=').next() == Some(name))
    });
    Ok(Children { list, known: false })
}

/// The computed ones among the values of some options, in the same word or the next one.
fn computed(call: &Call<'_>, option: impl Fn(&str) -> bool) -> Vec<Child> {
    let mut list = Vec::new();
    for (at, field) in call.fields.iter().enumerate().skip(1).filter(|(_, field)| option(&field.text)) {
        let value = if field.open == Open::No { call.fields.get(at + 1) } else { Some(field) };
        list.extend(value.filter(|value| value.literal().is_none()).map(|value| Child::Unclear(value.span.clone())));
    }
    list
}
