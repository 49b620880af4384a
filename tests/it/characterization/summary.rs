//! Runs the corpus and prints what came of it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::compare::differences;
use super::deviations::expected;
use super::run::run;
use super::scenario::Scenario;
use super::{corpus, drivers};
use crate::rig::show;

/// How one scenario went.
#[derive(Debug)]
enum Verdict {
    /// As recorded, apart from what these rules change.
    Passed(Vec<&'static str>),
    /// Not compared, for this reason.
    Excluded(String),
    Failed(Vec<String>),
}

/// The counts of one profile.
#[derive(Debug, Default)]
struct Tally {
    files: usize,
    passed: usize,
    deviating: BTreeMap<&'static str, usize>,
    excluded: Vec<(String, String)>,
    failed: Vec<(String, Vec<String>)>,
}

impl Tally {
    fn add(&mut self, scenario: &Scenario, verdict: Verdict) {
        self.files += 1;
        match verdict {
            Verdict::Passed(rules) => {
                self.passed += 1;
                rules.into_iter().for_each(|rule| *self.deviating.entry(rule).or_default() += 1);
            }
            Verdict::Excluded(reason) => self.excluded.push((scenario.id.clone(), reason)),
            Verdict::Failed(differences) => self.failed.push((scenario.id.clone(), differences)),
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, passed, deviating, excluded, failed } = self;
        write!(f, "{files} files, {passed} passed, {} excluded, {} failed", excluded.len(), failed.len())?;
        deviating.iter().try_for_each(|(rule, count)| write!(f, "; {count} by {rule}"))?;
        excluded.iter().try_for_each(|(id, reason)| write!(f, "\n    excluded {id}: {reason}"))?;
        failed.iter().try_for_each(|(id, differences)| write!(f, "\n    FAILED {id}\n      {}", differences.join("\n      ")))
    }
}

/// Runs one scenario, once.
fn verdict(scenario: &Arc<Scenario>, driver: &drivers::Driver) -> Verdict {
    if !scenario.deterministic {
        return Verdict::Excluded("the original itself gave several traces".to_owned());
    }
    let expected = expected(scenario);
    if !expected.agreeing.is_empty() {
        return Verdict::Failed(vec![format!("listed as deviating, but recorded as ours is: {:?}", expected.agreeing)]);
    }
    match run(scenario, driver.pace(scenario, None), &|stage| driver.drive(stage, None)) {
        Err(unknown) => Verdict::Failed(vec![unknown]),
        Ok(ours) => match differences(scenario, &expected.observed, &ours) {
            differences if differences.is_empty() => Verdict::Passed(expected.deviations.iter().map(|by| by.rule).collect()),
            differences => Verdict::Failed(differences),
        },
    }
}

/// Runs the scenarios of each mechanism, and prints how they went.
fn tally(what: &str, drivers: &[drivers::Driver], scenarios: &BTreeMap<String, Vec<Arc<Scenario>>>) -> Tally {
    let mut total = Tally::default();
    for driver in drivers {
        let mut tally = Tally::default();
        for scenario in scenarios.get(driver.profile).into_iter().flatten() {
            tally.add(scenario, verdict(scenario, driver));
        }
        show(&format!("{what} {:<22} {tally}", driver.profile));
        total.files += tally.files;
        total.passed += tally.passed;
        total.excluded.extend(tally.excluded);
        total.failed.extend(tally.failed);
    }
    total
}

/// F-12, F-13, F-19, F-21 and the named profiles: every recorded trace of every mechanism in scope is reproduced.
#[test]
fn every_recorded_trace_is_reproduced() {
    let drivers = drivers::all();
    let corpus = corpus::read(&drivers.iter().map(|driver| driver.profile).collect::<Vec<_>>());
    let Tally { files, passed, excluded, failed, .. } = tally("characterization", &drivers, &corpus.scenarios);
    show(&format!(
        "characterization, {}: {files} files, {passed} passed, {} excluded, {} failed; of other mechanisms: {:?}",
        corpus.folder.display(),
        excluded.len(),
        failed.len(),
        corpus.others
    ));
    assert!(failed.is_empty(), "{} of {files} traces differ", failed.len());
}

/// The named profiles, where no recorded trace shows a value: every trace of our own holds.
#[test]
fn every_trace_of_our_own_holds() {
    let drivers = drivers::all();
    let corpus = corpus::read(&drivers.iter().map(|driver| driver.profile).collect::<Vec<_>>());
    let Tally { files, failed, .. } = tally("profiles", &drivers, &corpus.own);
    assert!(files > 0 && failed.is_empty(), "{} of {files} traces differ", failed.len());
}
