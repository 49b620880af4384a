//! Recorded shell lines: what a real bash runs for each, and what a guard may answer.
//!
//! The folder holds the lines with a verdict per guard, and each guard as a policy file. A bypass is a violation that is let through; a
//! false denial is a clean line that is denied or rewritten. The bars (10-cli):
//!
//! | of the lines                                            | bar                                                             |
//! |---------------------------------------------------------|-----------------------------------------------------------------|
//! | tier `core`                                             | no bypass, no false denial but the `forgiven` ones              |
//! | `core`, `violates`, literal (see `Line::is_literal`)    | 90 % are denied; a push with a lease aside, which is to be asked |
//! | `ordinary`, `clean`                                     | at most 5 % are asked                                           |
//! | with npm, where `rewritten` tells a line                | rewritten to that line, or asked; at most 20 % asked            |
//! | adversarial `clean` ones, tier `deep`                   | counted                                                         |
//!
//! `cargo test --test it shell_lines -- --nocapture` prints the counts, and each line that could be answered better, with the guard's reason.

mod any_bytes;
mod entry;
mod harmless;
mod real_bash;
mod recorded;
mod transcripts;
mod worst;

use std::collections::BTreeMap;
use std::fmt;

use recorded::{Answered, Does, Line, Recording, Tier, Verdict, answer, recording};

/// The least share of literal violations that are denied, not asked, in percent.
const DENIED_PERCENT: usize = 90;
/// The largest share of ordinary clean lines that are asked, in percent.
const ASKED_PERCENT: usize = 5;
/// The largest share of lines to rewrite that are asked instead, in percent.
const NOT_REWRITTEN_PERCENT: usize = 20;

/// What an answer is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Worth {
    Accepted,
    Bypass,
    FalseDenial,
}

/// The table of accepted answers.
fn worth(line: &Line, guard: &str, does: &Does) -> Worth {
    match (line.verdict(guard), does) {
        (Verdict::Violates | Verdict::Undecidable, Does::Ask | Does::Deny) => Worth::Accepted,
        (Verdict::Violates, Does::Rewrite(rewritten)) if line.rewritten.as_ref() == Some(rewritten) => Worth::Accepted,
        (Verdict::Violates | Verdict::Undecidable, Does::Allow | Does::Rewrite(_)) => Worth::Bypass,
        (Verdict::Clean, Does::Allow | Does::Ask) => Worth::Accepted,
        (Verdict::Clean, Does::Deny | Does::Rewrite(_)) if line.forgives(guard) => Worth::Accepted,
        (Verdict::Clean, Does::Deny | Does::Rewrite(_)) => Worth::FalseDenial,
    }
}

/// Every recorded line under every guard.
fn each(recording: &Recording) -> impl Iterator<Item = (&str, &Line, Answered)> {
    recording.policies.iter().flat_map(|(guard, policy)| {
        recording.lines.iter().map(|line| (guard.as_str(), line, answer(policy, &line.line, &recording.workspace)))
    })
}

/// Lines of one kind, and those among them that were not answered as one would wish.
#[derive(Default)]
struct Share {
    of: usize,
    missed: Vec<String>,
}

impl Share {
    fn add(&mut self, good: bool, guard: &str, line: &Line, answered: &Answered) {
        self.of += 1;
        if !good {
            self.missed.push(told(guard, line, answered));
        }
    }

    /// Prints it, and holds it to a bar.
    #[track_caller]
    fn at_most(self, percent: usize, what: &str) {
        let Self { of, missed } = self;
        println!("{what}: {} of {of}", missed.len());
        missed.iter().for_each(|line| println!("  {line}"));
        assert!(of > 0, "no line is among those of: {what}");
        assert!(missed.len() * 100 <= percent * of, "{what}: {} of {of}\n{}", missed.len(), missed.join("\n"));
    }
}

fn told(guard: &str, line: &Line, Answered { does, reason }: &Answered) -> String {
    format!("{guard}: {} {does:?}: {:.160?}: {reason}", line.id, line.line)
}

/// No recorded line of the core passes a guard that it violates, and no clean one is denied (10-cli, "Guards in a policy file"). Bypasses of
/// lines that need knowledge of a further program are printed.
#[test]
fn no_recorded_line_passes_a_guard_that_it_violates() {
    let Some(recording) = recording() else { return };
    let mut counts: BTreeMap<(&str, Tier), Counts> = BTreeMap::new();
    let (mut failures, mut deep) = (Vec::new(), Vec::new());
    for (guard, line, answered) in each(&recording) {
        let worth = worth(line, guard, &answered.does);
        counts.entry((guard, line.tier)).or_default().add(line.verdict(guard), &answered.does, worth);
        if worth != Worth::Accepted {
            let place = if line.tier == Tier::Core { &mut failures } else { &mut deep };
            place.push(format!("{worth:?}: {}", told(guard, line, &answered)));
        }
    }
    counts.iter().for_each(|((guard, tier), counts)| println!("{guard:<24} {tier:<4?} {counts}"));
    println!("tier deep, {} answers that are not accepted", deep.len());
    deep.iter().for_each(|line| println!("  {line}"));
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// A violation that stands in the line as literal text is denied, not asked (10-cli).
#[test]
fn a_literal_violation_is_denied() {
    let Some(recording) = recording() else { return };
    let (mut literal, mut others) = (Share::default(), (0, 0));
    for (guard, line, answered) in each(&recording).filter(|(guard, ..)| *guard != "npm-to-pnpm") {
        if line.tier != Tier::Core || line.verdict(guard) != Verdict::Violates || line.is("lease") {
            continue;
        }
        let denied = answered.does == Does::Deny;
        if line.is_literal(guard) {
            literal.add(denied, guard, line, &answered);
        } else {
            others = (others.0 + usize::from(denied), others.1 + 1);
        }
    }
    println!("violations that are computed: {} of {} denied all the same", others.0, others.1);
    literal.at_most(100 - DENIED_PERCENT, "literal violations that are not denied");
}

/// A guard does not annoy: of the lines that agents write all day few are asked (10-cli). Clean lines that were made to look guilty are counted.
#[test]
fn an_ordinary_clean_line_is_seldom_asked() {
    let Some(recording) = recording() else { return };
    let (mut ordinary, mut adversarial) = (Share::default(), BTreeMap::<_, (usize, Vec<_>)>::new());
    for (guard, line, answered) in each(&recording).filter(|(guard, line, _)| line.verdict(guard) == Verdict::Clean) {
        let asked = answered.does == Does::Ask;
        if line.is("ordinary") {
            ordinary.add(!asked, guard, line, &answered);
            continue;
        }
        let (of, ids) = adversarial.entry(guard).or_default();
        *of += 1;
        ids.extend(asked.then_some(&*line.id));
    }
    for (guard, (of, ids)) in &adversarial {
        println!("{guard}: adversarial clean lines that are asked: {} of {of}\n  {}", ids.len(), ids.join(" "));
    }
    ordinary.at_most(ASKED_PERCENT, "ordinary clean lines that are asked");
}

/// A line that runs npm becomes the recorded one that runs pnpm, or is asked where it cannot be rebuilt exactly (10-cli).
#[test]
fn a_line_is_rewritten_as_recorded_or_asked() {
    let Some(recording) = recording() else { return };
    let (mut share, mut wrong) = (Share::default(), Vec::new());
    for (guard, line, answered) in each(&recording).filter(|(guard, ..)| *guard == "npm-to-pnpm") {
        match (&line.rewritten, &answered.does) {
            (Some(recorded), Does::Rewrite(rewritten)) if recorded == rewritten => share.add(true, guard, line, &answered),
            (Some(_), Does::Ask) => share.add(false, guard, line, &answered),
            (None, Does::Ask | Does::Deny | Does::Allow) => {}
            _ if line.forgives(guard) => {}
            _ => wrong.push(told(guard, line, &answered)),
        }
    }
    assert!(wrong.is_empty(), "{} wrong answers:\n{}", wrong.len(), wrong.join("\n"));
    share.at_most(NOT_REWRITTEN_PERCENT, "lines to rewrite that are asked");
}

/// What the bars are counted from can tell a literal violation from a computed one.
#[test]
fn a_computed_word_is_not_literal() {
    let line = |line: &str, tags: &[&str], argv: &[&str]| -> Line {
        serde_json::from_value(serde_json::json!({
            "id": "x", "line": line, "tags": tags, "tier": "core", "parse_ok": true, "verdicts": {},
            "possible": [{ "program": "git", "argv": argv }],
        }))
        .expect("it has the form of a line")
    };
    let push = ["git", "push", "-f"];
    for (text, tags, literal) in [
        ("git push -f", &["options"][..], true),
        ("ls; /usr/bin/g'i't pu\\\nsh \"-f\"&", &[], true),
        ("$'\\x67it' push -f", &["quoting"], true),
        ("$'\\x67it' push -f", &[], false),
        ("git push $f", &[], false),
        ("git pushes -f", &[], false),
        ("git push -fu", &[], false),
        ("g=git; $g push -f", &["computed-program"], false),
    ] {
        assert_eq!(line(text, tags, &push).is_literal("no-force-push"), literal, "{text}");
    }
    assert!(!line("git push", &["quoting"], &["git", "push"]).is_literal("no-force-push"), "it violates nothing");
}

#[derive(Default)]
struct Counts {
    lines: usize,
    allowed: usize,
    asked: usize,
    denied: usize,
    rewritten: usize,
    bypasses: usize,
    false_denials: usize,
    /// Of the violations, those that are denied.
    violations: (usize, usize),
}

impl Counts {
    fn add(&mut self, verdict: Verdict, does: &Does, worth: Worth) {
        self.lines += 1;
        match does {
            Does::Allow => self.allowed += 1,
            Does::Ask => self.asked += 1,
            Does::Deny => self.denied += 1,
            Does::Rewrite(_) => self.rewritten += 1,
        }
        match worth {
            Worth::Accepted => {}
            Worth::Bypass => self.bypasses += 1,
            Worth::FalseDenial => self.false_denials += 1,
        }
        if verdict == Verdict::Violates {
            self.violations.0 += usize::from(matches!(does, Does::Deny));
            self.violations.1 += 1;
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lines, allowed, asked, denied, rewritten, bypasses, false_denials, violations } = self;
        write!(f, "{lines:>4} lines: {allowed:>3} allowed, {asked:>3} asked, {denied:>3} denied, {rewritten:>2} rewritten; ")?;
        write!(f, "{bypasses} bypasses, {false_denials} false denials; {} of {} violations denied", violations.0, violations.1)
    }
}
