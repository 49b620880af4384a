//! The report for people: what the files hold, what was denied or rewritten and why, and what the journal has.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;

use super::output::{self, Paint};
use super::replay::{Failed, Report};
use crate::replay::{Decision, DecisionCounts, Decisions, OperationCounts, plain};

/// Decisions that are listed; the others are counted. `--json` has all of them.
const MAX_LISTED: u64 = 200;

/// Writes the report; returns whether a call was denied.
pub(super) fn write(report: &Report<'_>, paint: Paint, out: &mut dyn Write) -> Result<bool, Failed> {
    let header = [
        "file",
        "product",
        "lines",
        "calls",
        "results",
        "errors",
        "open",
        "orphans",
        "sidechain",
        "damaged",
        "interrupts",
        "compactions",
    ];
    let mut files = output::table(&header);
    let mut found = Vec::new();
    let (mut total, mut denied, mut listed, mut unlisted) = (DecisionCounts::default(), false, 0, 0);
    let mut operations = OperationCounts::default();
    let (mut first, mut told) = (None, HashSet::new());
    for (path, file) in &report.ran.files {
        let counts = &file.counts;
        let numbers = [
            counts.physical_lines,
            counts.calls,
            counts.results,
            counts.error_results,
            counts.calls_without_result,
            counts.orphan_results,
            counts.sidechain_calls,
            counts.malformed_lines + counts.skipped_lines,
            counts.interrupts,
            counts.compactions,
        ];
        let name = plain(&path.display().to_string()).into_owned();
        let words = [name.clone(), file.thread.product.as_str().to_owned()];
        files.add_row(words.into_iter().chain(numbers.iter().map(u64::to_string)));
        if !told.insert(&file.session) {
            // A copy of a thread: the journal has one session of it, and that was told.
            continue;
        }
        let mut decisions: Decisions<'_> = report.decisions(file);
        let mut lines = Vec::new();
        for decision in decisions.by_ref() {
            let decision = decision?;
            denied |= decision.is_denial();
            if decision.decision == "allow" && decision.notes.is_empty() {
                continue;
            }
            if listed < MAX_LISTED {
                listed += 1;
                lines.push(decision);
            } else {
                unlisted += 1;
            }
        }
        if !lines.is_empty() {
            found.push((name.clone(), lines));
        }
        first = first.or_else(|| decisions.divergence().cloned().map(|divergence| (name, divergence)));
        add(&mut total, decisions.counts());
        operations.proposed += decisions.operations().proposed;
        for (status, count) in &decisions.operations().closed {
            *operations.closed.entry(status.clone()).or_default() += count;
        }
    }
    if report.ran.files.is_empty() {
        writeln!(out, "no transcript was replayed")?;
        return Ok(false);
    }
    writeln!(out, "{}", files.trim_fmt())?;
    unknown_kinds(report, out)?;
    damage(report, out)?;
    for (path, decisions) in &found {
        writeln!(out, "\n{path}")?;
        decisions.iter().try_for_each(|decision| line(decision, paint, out))?;
    }
    if unlisted > 0 {
        writeln!(out, "\n... and {unlisted} more; --json has all of them")?;
    }
    if let Some((path, divergence)) = first {
        let line = divergence.line.map_or_else(String::new, |line| format!(":{line}"));
        writeln!(
            out,
            "\nfirst divergence: {path}{line} ({}); what follows it in its session is counterfactual",
            divergence.decision
        )?;
    }
    let DecisionCounts { allow, rewrite, ask, deny, failed } = total;
    let closed: Vec<String> = operations.closed.iter().map(|(status, count)| format!("{count} {status}")).collect();
    writeln!(out, "\ndecisions   {allow} allow, {rewrite} rewrite, {ask} ask, {deny} deny, {failed} failed")?;
    writeln!(
        out,
        "operations  {} proposed: {}",
        operations.proposed,
        if closed.is_empty() { "none closed".to_owned() } else { closed.join(", ") }
    )?;
    journal(report, out)?;
    Ok(denied)
}

fn add(total: &mut DecisionCounts, more: &DecisionCounts) {
    let DecisionCounts { allow, rewrite, ask, deny, failed } = more;
    total.allow += allow;
    total.rewrite += rewrite;
    total.ask += ask;
    total.deny += deny;
    total.failed += failed;
}

fn line(decision: &Decision, paint: Paint, out: &mut dyn Write) -> Result<(), Failed> {
    let place = decision.line.map_or_else(|| "line ?".to_owned(), |line| format!("line {line}"));
    let guard = decision.guard.as_deref().map_or_else(String::new, |guard| format!(" by {}", plain(guard)));
    let what_if = if decision.counterfactual { " (counterfactual)" } else { "" };
    writeln!(out, "  {place:<10} {}{guard} -> {}{what_if}", paint.decision(decision.decision), plain(&decision.outcome))?;
    writeln!(out, "    {} {}", plain(&decision.tool), decision.call)?;
    if let Some(rewritten) = &decision.rewritten {
        writeln!(out, "    became {rewritten}")?;
    }
    if let Some(reason) = &decision.reason {
        let place = decision.place.as_deref().map_or_else(String::new, |place| format!(" ({})", plain(place)));
        writeln!(out, "    {}{place}", plain(reason))?;
    }
    decision.notes.iter().try_for_each(|note| writeln!(out, "    note {}", plain(note)))?;
    Ok(())
}

fn unknown_kinds(report: &Report<'_>, out: &mut dyn Write) -> Result<(), Failed> {
    let mut kinds = BTreeMap::new();
    for (name, count) in report.ran.files.iter().flat_map(|(_, file)| file.counts.unknown_kinds.iter()) {
        *kinds.entry(name).or_insert(0) += count;
    }
    if !kinds.is_empty() {
        let kinds: Vec<String> = kinds.into_iter().map(|(name, count)| format!("{} ({count})", plain(name))).collect();
        writeln!(out, "\nrecords of kinds that this version does not know, passed over: {}", kinds.join(", "))?;
    }
    Ok(())
}

fn damage(report: &Report<'_>, out: &mut dyn Write) -> Result<(), Failed> {
    let mut before = "\n";
    for (path, file) in &report.ran.files {
        for damage in &file.damage {
            writeln!(
                out,
                "{before}{}:{}: {} (byte {})",
                plain(&path.display().to_string()),
                damage.line,
                damage.kind,
                damage.offset
            )?;
            before = "";
        }
    }
    Ok(())
}

fn journal(report: &Report<'_>, out: &mut dyn Write) -> Result<(), Failed> {
    let journal = &report.journal;
    let place = journal.db.as_deref().unwrap_or("temporary; keep it with --db FILE");
    let sessions = if journal.sessions == 1 { "session" } else { "sessions" };
    let gaps = if journal.gaps > 0 { format!(", {} gaps", journal.gaps) } else { String::new() };
    writeln!(
        out,
        "journal     {} facts in {} {sessions}, {} KiB of payload, {} KiB on disk{gaps} ({place})",
        journal.facts,
        journal.sessions,
        journal.payload_bytes.div_ceil(1024),
        journal.file_bytes.div_ceil(1024)
    )?;
    Ok(())
}
