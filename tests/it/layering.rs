//! The import table of the core, kept as a test: three planes that never reach into one another, and imports that run downwards only.
//!
//! `id`, `clock` and `telemetry` are allowed to all; `testing` may see everything and nothing may depend on it but `state`, which offers
//! fault points. A folder without a row fails, so that a new one has to be placed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Who may import whom, directly.
const TABLE: &[(&str, &[&str])] = &[
    ("declare", &[]),
    ("signal", &["declare"]),
    ("interception", &["declare"]),
    ("dispatch", &["declare"]),
    ("guard", &["interception", "declare"]),
    ("transcript", &[]),
    ("observation", &["dispatch", "signal", "declare"]),
    ("state", &["signal", "declare", "testing"]),
    ("operation", &["interception", "signal", "declare"]),
    ("compat", &["operation", "interception", "dispatch", "signal", "declare"]),
    ("testing", &[]),
];

/// Modules that every other may name.
const COMMON: &[&str] = &["id", "clock", "cancel", "telemetry"];

/// Files that stand alone at the root of the core.
const FILES: &[&str] = &["id", "clock", "cancel", "telemetry", "lib"];

type Edges = BTreeMap<String, BTreeSet<(String, PathBuf)>>;

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in
            fs::read_dir(&next).expect("the source folder is readable").map(|e| e.expect("its entries are readable").path())
        {
            if entry.is_dir() {
                open.push(entry);
            } else if entry.extension().is_some_and(|e| e == "rs") {
                found.push(entry);
            }
        }
    }
    found
}

/// The top-level modules of the core that a file names through `crate::`, without comments and without what follows `#[cfg(test)]`.
fn named_modules(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
    let code: String = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut named = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = code[at + "crate::".len()..].trim_start();
        if let Some(group) = rest.strip_prefix('{') {
            named.extend(top_of_group(group));
        } else {
            named.insert(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    named
}

/// The first names of the entries of `{a::b, c::{d, e}}`, its opening brace already taken.
fn top_of_group(group: &str) -> Vec<String> {
    let (mut depth, mut names, mut name, mut first) = (1, Vec::new(), String::new(), true);
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => {
                names.push(std::mem::take(&mut name));
                first = true;
            }
            ':' => first = false,
            _ if depth == 1 && first && (c.is_alphanumeric() || c == '_') => name.push(c),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names.push(name);
    names.retain(|name| !name.is_empty());
    names
}

fn edges(source: &Path) -> Edges {
    let mut edges = Edges::new();
    for file in sources(source) {
        let inner = file.strip_prefix(source).expect("the file stands below the folder").to_owned();
        let module =
            inner.iter().next().and_then(|part| part.to_str()).expect("paths are texts").trim_end_matches(".rs").to_owned();
        let text = fs::read_to_string(&file).expect("the source file is readable");
        let of = edges.entry(module.clone()).or_default();
        for name in named_modules(&text) {
            if name != module {
                of.insert((name, inner.clone()));
            }
        }
    }
    edges
}

fn violations(edges: &Edges) -> Vec<String> {
    let table: BTreeMap<&str, &[&str]> = TABLE.iter().copied().collect();
    let mut found = Vec::new();
    for (module, imports) in edges {
        if FILES.contains(&module.as_str()) {
            continue;
        }
        let Some(allowed) = table.get(module.as_str()) else {
            found.push(format!("`{module}` has no row in the table"));
            continue;
        };
        for (import, file) in imports {
            let is_module = table.contains_key(import.as_str()) || edges.contains_key(import);
            if is_module && !COMMON.contains(&import.as_str()) && !allowed.contains(&import.as_str()) {
                found.push(format!("{}: `{module}` must not import `{import}`", file.display()));
            }
        }
    }
    found
}

/// A wall that is never seen to stop anything is no wall: the test runs on a planted violation first.
#[test]
fn a_planted_violation_is_found() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    write("interception/chain.rs", "use crate::{clock::Clock, observation::{loss::Ledger, ring}};");
    write("observation/loss.rs", "fn f() { crate::interception::plan(); }");
    write("signal/fact.rs", "// crate::state is only named in a comment\n#[cfg(test)]\nmod tests { use crate::state::x; }");
    write("newcomer/mod.rs", "");
    let found = violations(&edges(folder.path()));
    assert_eq!(
        found,
        [
            "interception/chain.rs: `interception` must not import `observation`",
            "`newcomer` has no row in the table",
            "observation/loss.rs: `observation` must not import `interception`",
        ]
    );
}

/// 0-architecture, module plan: the planes do not reach into one another, and the kernels know neither signals nor state.
#[test]
fn the_planes_do_not_reach_into_one_another() {
    let found = violations(&edges(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Two backends never know each other, and within the actors authorization and observation never do.
#[test]
fn neighbours_that_must_not_meet_do_not() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let apart = [
        (root.join("src/state/sqlite"), "memory"),
        (root.join("actors/src/authorization"), "observation::"),
        (root.join("actors/src/observation"), "authorization::"),
    ];
    for (folder, foreign) in apart {
        for file in sources(&folder) {
            let text = fs::read_to_string(&file).expect("the source file is readable");
            let line =
                text.lines().find(|line| !line.trim_start().starts_with("//") && line.contains("use ") && line.contains(foreign));
            assert_eq!(line, None, "{} must not import `{foreign}`", file.display());
        }
    }
}
