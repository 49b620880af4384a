//! Every numbered rule that is due has a test that cites it.
//!
//! A test cites a rule in its doc comment, or in those of its module's head. The citations are read from the source of the tests, the names of the
//! tests are their functions; a rule without a test fails, and the index is printed with `cargo test --test it rules -- --nocapture`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The rules that are due now, by the letter of their page.
const DUE: &[(&str, &[u32])] = &[
    ("A", &[1, 2]),
    ("P", &[1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15]),
    ("I", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 22]),
    ("F", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24]),
    ("L", &[1, 21, 22]),
    ("AH-", &[1, 2, 3, 4, 5, 6, 7]),
];

/// The cases that are due now, by name: reports of peers' users.
const CASES: &[&str] = &["P04", "P05", "P06", "P07", "P08", "P10", "P11", "P12", "P13", "S02", "S20", "S22", "S25", "S26", "S28"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("its entries are readable").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The words of a comment that may be names of rules: `P-2`, `AH-3`, `S02`; and of a range, `F-1 to F-7`, both its ends and what lies between.
fn names(comment: &str) -> BTreeSet<String> {
    let words: Vec<&str> = comment.split(|c: char| !(c.is_alphanumeric() || c == '-')).filter(|word| !word.is_empty()).collect();
    let mut found: BTreeSet<String> = words.iter().map(|word| (*word).to_owned()).collect();
    for range in words.windows(3).filter(|range| range[1] == "to") {
        let ends = (range[0].rsplit_once('-'), range[2].rsplit_once('-'));
        if let (Some((letter, from)), Some((other, to))) = ends
            && let (true, Ok(from), Ok(to)) = (letter == other, from.parse::<u32>(), to.parse::<u32>())
        {
            found.extend((from..=to.min(from + 100)).map(|number| format!("{letter}-{number}")));
        }
    }
    found
}

/// Which tests cite what: the doc comment above each test function, and the comment at the head of its file.
fn citations(text: &str, file: &str, index: &mut BTreeMap<String, BTreeSet<String>>) {
    let head: BTreeSet<String> = text.lines().take_while(|line| line.starts_with("//!")).flat_map(names).collect();
    let (mut docs, mut is_test) = (BTreeSet::new(), false);
    for line in text.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("///") {
            docs.extend(names(comment));
        } else if line.starts_with("#[") {
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        } else if let Some(signature) = line.split_once("fn ").map(|(_, rest)| rest).filter(|_| is_test) {
            let name: String = signature.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            // A name may cite as well: `p10_a_subscriber_...`.
            let by_name = name.split('_').next().unwrap_or_default().to_uppercase();
            for rule in docs.iter().chain(&head).chain([&by_name]) {
                index.entry(rule.clone()).or_default().insert(format!("{file}::{name}"));
            }
            (docs, is_test) = (BTreeSet::new(), false);
        } else if !line.is_empty() && !line.starts_with("//") {
            docs.clear();
            is_test = false;
        }
    }
}

fn index() -> BTreeMap<String, BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["tests", "src", "actors/src"] {
        sources(&root.join(folder), &mut files);
    }
    let mut index = BTreeMap::new();
    for path in files {
        let file = path.strip_prefix(root).expect("the file stands below the root").display().to_string();
        // This file names every rule and cites none.
        if !file.ends_with("tests/it/rules.rs") {
            citations(&fs::read_to_string(&path).expect("the source is readable"), &file, &mut index);
        }
    }
    index
}

/// 9-quality: a numbered rule without a test fails.
#[test]
fn every_rule_that_is_due_has_a_test_that_cites_it() {
    let index = index();
    let rules = DUE.iter().flat_map(|(letter, numbers)| {
        numbers
            .iter()
            .map(move |number| if letter.ends_with('-') { format!("{letter}{number}") } else { format!("{letter}-{number}") })
    });
    let due: Vec<String> = rules.chain(CASES.iter().map(|case| (*case).to_owned())).collect();
    let mut missing = Vec::new();
    for rule in &due {
        match index.get(rule) {
            Some(tests) => println!("{rule:<6} {}", tests.iter().cloned().collect::<Vec<_>>().join(", ")),
            None => missing.push(rule.as_str()),
        }
    }
    assert!(missing.is_empty(), "no test cites {}", missing.join(", "));
}

/// The index is worth something only if it can miss a rule.
#[test]
fn a_rule_that_no_test_cites_is_missed() {
    let mut index = BTreeMap::new();
    let text = "//! Head.\n/// P-1: it holds.\n#[test]\nfn one() {}\n/// P-2 stands above no test.\nfn two() {}\n/// F-1 to F-3.\n#[test]\nfn s02_three() {}\n";
    citations(text, "t.rs", &mut index);
    let cited: Vec<&str> = index.keys().map(String::as_str).filter(|name| name.contains('-') || name.starts_with('S')).collect();
    assert_eq!(cited, ["F-1", "F-2", "F-3", "P-1", "S02"]);
}
