//! The report as one JSON object, written as it is read: schema `tipstaff.replay`, version 1. Members are only ever added.

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;
use tipstaff_core::transcript::{Counts, Names};

use super::replay::{Failed, Report};
use crate::replay::{Decision, DecisionCounts, Decisions, Divergence, OperationCounts};

#[derive(Serialize)]
struct DecisionRow<'d> {
    file: &'d str,
    #[serde(flatten)]
    decision: &'d Decision,
}

/// One transcript. Counts of the file are its reader's; `operations`, `decided` and `first_divergence` are the journal's.
#[derive(Serialize)]
struct FileRow<'f> {
    path: String,
    session: &'f str,
    product: &'static str,
    physical_lines: u64,
    records: u64,
    record_kinds: BTreeMap<&'f str, u64>,
    unknown_kinds: BTreeMap<&'f str, u64>,
    calls: u64,
    calls_by_name: BTreeMap<&'f str, u64>,
    results: u64,
    error_results: u64,
    error_classes: BTreeMap<&'static str, u64>,
    calls_without_result: u64,
    calls_without_result_by_name: BTreeMap<&'f str, u64>,
    orphan_results: u64,
    sidechain_calls: u64,
    inherited_calls: u64,
    malformed_lines: u64,
    glued_lines: u64,
    broken_lines: u64,
    skipped_lines: u64,
    replaced_lines: u64,
    interrupts: u64,
    compactions: u64,
    operations: OperationCounts,
    decided: DecisionCounts,
    first_divergence: Option<Divergence>,
}

/// Writes the report; returns whether a call was denied.
pub(super) fn write(report: &Report<'_>, out: &mut dyn Write) -> Result<bool, Failed> {
    let (mut rows, mut first, mut denied) = (Vec::new(), None, false);
    write!(out, "{{\"schema\":\"tipstaff.replay\",\"schema_version\":1,\"decisions\":[")?;
    let mut comma = "";
    for (path, file) in &report.ran.files {
        let name = path.display().to_string();
        let mut decisions: Decisions<'_> = report.decisions(file);
        for decision in decisions.by_ref() {
            let decision = decision?;
            denied |= matches!(decision.decision, "deny" | "ask" | "failed");
            write!(out, "{comma}")?;
            serde_json::to_writer(&mut *out, &DecisionRow { file: &name, decision: &decision })?;
            comma = ",";
        }
        if first.is_none() {
            first = decisions.divergence().cloned();
        }
        rows.push(row(name, file.session.as_str(), file.thread.product.as_str(), &file.counts, &decisions));
    }
    write!(out, "],\"files\":")?;
    serde_json::to_writer(&mut *out, &rows)?;
    write!(out, ",\"refused\":")?;
    let refused = report.ran.refused.iter().map(|(path, error)| BTreeMap::from([("path", path.display().to_string()), ("error", error.clone())]));
    serde_json::to_writer(&mut *out, &refused.collect::<Vec<_>>())?;
    write!(out, ",\"first_divergence\":")?;
    serde_json::to_writer(&mut *out, &first)?;
    write!(out, ",\"journal\":")?;
    serde_json::to_writer(&mut *out, &report.journal)?;
    writeln!(out, "}}")?;
    Ok(denied)
}

fn row<'f>(path: String, session: &'f str, product: &'static str, counts: &'f Counts, decisions: &Decisions<'_>) -> FileRow<'f> {
    FileRow {
        path,
        session,
        product,
        physical_lines: counts.physical_lines,
        records: counts.records,
        record_kinds: names(&counts.record_kinds),
        unknown_kinds: names(&counts.unknown_kinds),
        calls: counts.calls,
        calls_by_name: names(&counts.calls_by_name),
        results: counts.results,
        error_results: counts.error_results,
        error_classes: counts.error_classes.iter().map(|(class, count)| (class.as_str(), *count)).collect(),
        calls_without_result: counts.calls_without_result,
        calls_without_result_by_name: names(&counts.calls_without_result_by_name),
        orphan_results: counts.orphan_results,
        sidechain_calls: counts.sidechain_calls,
        inherited_calls: counts.inherited_calls,
        malformed_lines: counts.malformed_lines,
        glued_lines: counts.glued_lines,
        broken_lines: counts.broken_lines,
        skipped_lines: counts.skipped_lines,
        replaced_lines: counts.replaced_lines,
        interrupts: counts.interrupts,
        compactions: counts.compactions,
        operations: decisions.operations().clone(),
        decided: decisions.counts().clone(),
        first_divergence: decisions.divergence().cloned(),
    }
}

/// Counts by name; what had no room stands under `(other)`.
fn names(names: &Names) -> BTreeMap<&str, u64> {
    let other = (names.other() > 0).then(|| ("(other)", names.other()));
    names.iter().chain(other).collect()
}
