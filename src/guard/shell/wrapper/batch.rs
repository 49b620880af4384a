//! Programs that run a child with words that their input tells.
//!
//! | the call                                 | it runs                                                              |
//! |------------------------------------------|----------------------------------------------------------------------|
//! | `xargs X`                                | `X` with unknown words after it                                      |
//! | `xargs -I R X`                           | `X`, each word that holds `R` unknown from there on                  |
//! | `xargs`                                  | `echo`: nothing                                                      |
//! | `parallel X`                             | `X`, where it is one for a shell as it stands; unknown words as above |
//! | `parallel X` with quotes, `;` ...        | text that is not all known                                           |
//! | `parallel`, `parallel ::: TEXT`          | the input's lines, each text: text of a shell                        |
//! | `entr X`                                 | `X`, `/_` unknown                                                    |
//! | `entr -s TEXT`                           | the text                                                             |

use super::super::field::{Field, Open};
use super::options::{Call, Grammar, Options, gap, head, joined, made};
use super::{Child, Children, Found};

/// GNU's options, and `-J -R -S` of the BSDs.
const XARGS: Grammar = Grammar::new(
    "0a:d:E:e::i::I:J:L:l::n:oP:pR:rS:s:tx",
    &[
        "null",
        "arg-file:",
        "delimiter:",
        "eof::",
        "replace::",
        "max-lines::",
        "max-args:",
        "open-tty",
        "max-procs:",
        "process-slot-var:",
        "interactive",
        "no-run-if-empty",
        "max-chars:",
        "show-limits",
        "verbose",
        "exit",
        "help",
        "version",
    ],
);

/// Options of xargs with the text that stands for the words of the input.
const MARKS: &[&str] = &["i", "I", "J", "replace"];

pub(super) fn xargs(call: &mut Call<'_>) -> Found {
    let options = call.leading(&XARGS, 1)?;
    let mut words = call.rest(options.rest);
    if words.is_empty() {
        return Ok(Vec::new().into());
    }
    let mark = options.given.iter().rev().find(|given| MARKS.contains(&given.name));
    if let Some(mark) = mark {
        let mark = mark.value.as_ref().map_or(Some("{}"), Field::literal);
        words.iter_mut().for_each(|word| fill(word, mark));
    }
    // Of options that exclude each other the last one counts; then the words may be added all the same.
    if mark.is_none() || options.has(&["J", "n", "L", "l", "max-args", "max-lines"]) {
        words.push(Field::unknown(Open::Many, call.fields[0].span.clone()));
    }
    Ok(fed(words, !options.has(&["a", "arg-file"])))
}

/// Puts unknown text in place of a mark, or of all the word if the mark is not known.
fn fill(word: &mut Field, mark: Option<&str>) {
    match mark {
        Some(mark) => {
            if let Some((first, last)) = word.text.find(mark).zip(word.text.rfind(mark)) {
                *word = gap(word, first, last + mark.len());
            }
        }
        None => *word = head(word, 0, word.open.max(Open::One)),
    }
}

fn fed(words: Vec<Field>, by_input: bool) -> Children {
    let mut child = Child::command(words);
    if let Some(Child::Command { fed, .. }) = &mut child {
        *fed = by_input;
    }
    child.into_iter().collect::<Vec<_>>().into()
}

const PARALLEL: Grammar = Grammar::new(
    "0a:C:d:D:E:e::gI:i::j:kL:l::mn:N:pP:qrs:S:tuU:vW:Xx",
    &[
        "null",
        "arg-file:",
        "arg-sep:",
        "arg-file-sep:",
        "bar",
        "basefile:",
        "bf:",
        "bg",
        "block:",
        "block-size:",
        "cat",
        "cleanup",
        "colsep:",
        "color",
        "color-failed",
        "compress",
        "compress-program:",
        "ctag",
        "ctagstring:",
        "delay:",
        "delimiter:",
        "dry-run",
        "dryrun",
        "env:",
        "eof::",
        "eta",
        "fg",
        "fifo",
        "filter:",
        "group",
        "halt:",
        "halt-on-error:",
        "header:",
        "id:",
        "interactive",
        "jl:",
        "joblog:",
        "jobs:",
        "keep-order",
        "latest-line",
        "lb",
        "limit:",
        "line-buffer",
        "line-buffered",
        "linebuffer",
        "link",
        "ll",
        "load:",
        "max-args:",
        "max-chars:",
        "max-lines::",
        "max-procs:",
        "max-replace-args:",
        "memfree:",
        "memsuspend:",
        "nice:",
        "noswap",
        "no-notice",
        "no-run-if-empty",
        "onall",
        "nonall",
        "pipe",
        "pipe-part",
        "pipepart",
        "plain",
        "plus",
        "process-slot-var:",
        "profile:",
        "progress",
        "quote",
        "recend:",
        "recstart:",
        "regexp",
        "remove-rec-sep",
        "replace::",
        "res:",
        "results:",
        "resume",
        "resume-failed",
        "retries:",
        "retry-failed",
        "return:",
        "round-robin",
        "rpl:",
        "semaphore",
        "seqreplace:",
        "shard:",
        "shuf",
        "silent",
        "slf:",
        "slotreplace:",
        "sql:",
        "sshdelay:",
        "sshlogin:",
        "sshloginfile:",
        "tag",
        "tagstring:",
        "tempdir:",
        "termseq:",
        "timeout:",
        "tmpdir:",
        "tmux",
        "tmuxpane",
        "total-jobs:",
        "transfer",
        "transferfile:",
        "trc:",
        "trim:",
        "ungroup",
        "use-cpus-instead-of-cores",
        "verbose",
        "wait",
        "wd:",
        "will-cite",
        "workdir:",
        "xapply",
        "xargs",
        "version",
        "help",
    ],
);

/// Characters of a word that a shell reads as that word.
const PLAIN: &str = "-_./:,=+%@^";

pub(super) fn parallel(call: &mut Call<'_>) -> Found {
    let options = call.leading(&PARALLEL, 1)?;
    let separator = |field: &&Field| field.text.starts_with(":::") && field.literal().is_some();
    let template = call.fields.iter().skip(options.rest).take_while(|field| !separator(field)).count();
    let (template, values) = call.fields[options.rest.min(call.fields.len())..].split_at(template);
    let span = call.fields[0].span.clone();
    if template.is_empty() {
        return Ok(lines(values, &options));
    }
    let by_input = values.is_empty() && !options.has(&["a", "arg-file"]);
    // `{= CODE =}` is Perl, and other marks may be set.
    let coded = template.iter().any(|word| word.text.contains("{="));
    if coded || options.has(&["rpl", "I", "i", "U", "replace", "profile"]) {
        return Ok(vec![Child::Unclear(span)].into());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || PLAIN.contains(c) || matches!(c, '{' | '}' | '#' | ' ' | '~');
    if !template.iter().all(|word| word.literal().is_some_and(|text| text.chars().all(plain))) {
        let text = joined(template).map(|text| Child::text(Field { open: Open::One, tail: String::new(), ..text }));
        return Ok(text.into_iter().collect::<Vec<_>>().into());
    }
    let mut words: Vec<Field> = template.iter().flat_map(pieces).collect();
    let filled = words.iter().any(|word| word.text.contains('{'));
    for word in &mut words {
        if let Some(at) = word.text.find('{') {
            *word = head(word, at, Open::One);
        }
    }
    if !filled {
        words.push(Field::unknown(Open::Many, span));
    }
    Ok(fed(words, by_input))
}

/// The words of a text without quotes.
fn pieces(word: &Field) -> Vec<Field> {
    let mut at = 0;
    let mut pieces = Vec::new();
    for piece in word.text.split(' ') {
        if !piece.is_empty() {
            pieces.push(made(word, piece.to_owned(), Open::No, word.exact.map(|offset| offset + at)));
        }
        at += piece.len() + 1;
    }
    pieces
}

/// Without a child, every value is the text of one.
fn lines(values: &[Field], options: &Options) -> Children {
    match values {
        [] if options.has(&["a", "arg-file"]) => {
            let files = options.values(&["a", "arg-file"]);
            files.map(|file| Child::Unclear(file.span.clone())).collect::<Vec<_>>().into()
        }
        [] => vec![Child::input()].into(),
        [mark, texts @ ..] if mark.text == ":::" => texts.iter().cloned().map(Child::text).collect::<Vec<_>>().into(),
        [mark, ..] => vec![Child::Unclear(mark.span.clone())].into(),
    }
}

pub(super) fn entr(call: &mut Call<'_>) -> Found {
    let options = call.leading(&Grammar::new("acdnprsxz", &[]), 1)?;
    let mut words = call.rest(options.rest);
    if options.has(&["s"]) {
        let child = (!words.is_empty()).then(|| Child::shell(words));
        return Ok(child.into_iter().collect::<Vec<_>>().into());
    }
    words.iter_mut().filter(|word| word.text == "/_").for_each(|word| fill(word, Some("/_")));
    Ok(fed(words, true))
}
