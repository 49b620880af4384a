//! Programs that move files and run texts on the way.
//!
//! | the call                                              | it runs                                                        |
//! |-------------------------------------------------------|----------------------------------------------------------------|
//! | `tar --checkpoint-action=exec=TEXT`                   | the text                                                       |
//! | `tar -I TEXT`                                         | the text, perhaps with one more word                           |
//! | `tar --to-command=TEXT`, `-F TEXT` ...                | the text                                                       |
//! | `rsync -e WORDS`                                      | the command of these words, with a host and more               |
//! | `rsync --rsync-path=TEXT`                             | the text, on the other side                                    |
//! | `split --filter=TEXT`                                 | the text                                                       |

use super::super::field::{Field, Open};
use super::options::{Call, tail, word};
use super::{Child, Folder, Found, split as words};

/// Letters of tar that take a value.
const TAR_VALUED: &str = "bfgCFHIKLNTVX";

/// Long options of tar whose value is run as it is.
const TAR_RUNS: &[&str] = &["--info-script", "--new-volume-script", "--rmt-command", "--rsh-command", "--to-command"];

/// Adds `-d` when it unpacks.
const TAR_PACKER: &str = "--use-compress-program";

/// `exec=TEXT` among other actions; `--checkpoint` is another option.
const TAR_ACTION: &str = "--checkpoint-action";

pub(super) fn tar(call: &mut Call<'_>) -> Found {
    let mut list = Vec::new();
    let mut at = 1;
    while let Some(field) = call.fields.get(at) {
        // Letters without a dash take their values from the next words, in order.
        let bundled = at == 1 && !field.text.starts_with('-');
        at += 1;
        if field.text.starts_with("--") {
            let end = field.text.find('=').unwrap_or(field.text.len());
            let written = &field.text[..end];
            let value = if end < field.text.len() { Some(tail(field, end + 1)) } else { call.fields.get(at).cloned() };
            let is = |name: &str| end > 4 && name.starts_with(written);
            list.extend(value.and_then(|value| match written {
                "--checkpoint" => None,
                _ if is(TAR_ACTION) => action(&value),
                _ if is(TAR_PACKER) => Some(packer(&value)),
                _ => TAR_RUNS.iter().any(|name| is(name)).then(|| Child::text(value)),
            }));
            continue;
        }
        if !bundled && !field.text.starts_with('-') {
            continue;
        }
        for (place, letter) in field.text.char_indices().filter(|(_, letter)| TAR_VALUED.contains(*letter)) {
            let end = place + 1;
            let joined = !bundled && (end < field.text.len() || field.open != Open::No);
            let value = if joined { Some(tail(field, end)) } else { call.fields.get(at).cloned() };
            at += usize::from(!joined);
            list.extend(value.and_then(|value| match letter {
                'I' => Some(packer(&value)),
                'F' => Some(Child::text(value)),
                _ => None,
            }));
            if !bundled {
                break;
            }
        }
    }
    Ok(list.into())
}

fn packer(value: &Field) -> Child {
    Child::text_with(value, vec![Field::unknown(Open::Many, value.span.clone())])
}

fn action(value: &Field) -> Option<Child> {
    const EXEC: &str = "exec=";
    if value.text.starts_with(EXEC) {
        return Some(Child::text(tail(value, EXEC.len())));
    }
    (value.open != Open::No && EXEC.starts_with(&value.text)).then(|| Child::Unclear(value.span.clone()))
}

pub(super) fn rsync(call: &mut Call<'_>) -> Found {
    const VALUED: &str = "fBTM@";
    let mut list = Vec::new();
    for (at, field) in call.fields.iter().enumerate().skip(1) {
        let next = || call.fields.get(at + 1).cloned();
        let end = field.text.find('=').unwrap_or(field.text.len());
        let value = if field.text.starts_with("--") {
            match &field.text[..end] {
                "--rsh" if end < field.text.len() => Some(tail(field, end + 1)),
                "--rsh" => next(),
                "--rsync-path" => {
                    let text = if end < field.text.len() { Some(tail(field, end + 1)) } else { next() };
                    list.extend(text.map(|text| Child::text(text).within(&Folder::Elsewhere)));
                    None
                }
                _ => None,
            }
        } else {
            let letters = field.text.strip_prefix('-').unwrap_or_default();
            match letters.char_indices().find(|(_, letter)| *letter == 'e' || VALUED.contains(*letter)) {
                Some((place, 'e')) if place + 1 < letters.len() || field.open != Open::No => Some(tail(field, place + 2)),
                Some((_, 'e')) => next(),
                _ => None,
            }
        };
        let Some(value) = value else { continue };
        let more = ["host", "rsync", "--server"].map(|text| word(text, &value));
        let command = words::rsync(&value).and_then(|words| Child::command(words.into_iter().chain(more).collect()));
        list.push(command.unwrap_or_else(|| Child::Unclear(value.span.clone())));
    }
    Ok(list.into())
}

pub(super) fn split(call: &mut Call<'_>) -> Found {
    let mut list = Vec::new();
    for (at, field) in call.fields.iter().enumerate().skip(1) {
        let end = field.text.find('=').unwrap_or(field.text.len());
        if end > 3 && "--filter".starts_with(&field.text[..end]) {
            let text = if end < field.text.len() { Some(tail(field, end + 1)) } else { call.fields.get(at + 1).cloned() };
            list.extend(text.map(Child::text));
        }
    }
    Ok(list.into())
}
