//! What must not compile: wrong orders of an operation, and observers that would decide.
//!
//! Each file of `tests/ui` is a program of its own, checked against the built crate. A line `//@ error: E0382` names the code that the
//! compiler must give; `//@ compiles` marks a program that proves that the others fail for their own reason. Codes are compared, not texts:
//! texts change with the compiler.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

#[derive(Debug, PartialEq, Eq)]
enum Expected {
    Compiles,
    Error(String),
}

fn expectation(path: &Path, text: &str) -> Expected {
    let mut marks = text.lines().filter_map(|line| line.strip_prefix("//@ "));
    match (marks.next(), marks.next()) {
        (Some("compiles"), None) => Expected::Compiles,
        (Some(mark), None) if mark.starts_with("error: ") => Expected::Error(mark["error: ".len()..].to_owned()),
        _ => panic!("{}: expected one line `//@ error: E....` or `//@ compiles`", path.display()),
    }
}

/// The error codes per program, as `cargo check` reports them.
#[expect(clippy::disallowed_methods, reason = "the compiler is the process under test")]
fn codes(project: &Path, names: &[String]) -> BTreeMap<String, Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(env!("CARGO"))
        .args(["check", "--offline", "--keep-going", "--message-format=json", "--bins"])
        .current_dir(project)
        .env("CARGO_TARGET_DIR", root.join("target/compile-fail"))
        .output()
        .expect("cargo runs");
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut checked = false;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: serde_json::Value = serde_json::from_str(line).expect("cargo writes JSON lines");
        let target = message["target"]["name"].as_str().unwrap_or_default().to_owned();
        checked |= message["reason"] == "compiler-artifact" && target == "tipstaff_core";
        if message["reason"] == "compiler-message" && message["message"]["level"] == "error" && names.contains(&target) {
            let code = message["message"]["code"]["code"].as_str();
            found.entry(target).or_default().extend(code.map(str::to_owned));
        }
    }
    assert!(checked, "the crate itself was not checked:\n{}", String::from_utf8_lossy(&output.stderr));
    found
}

/// 1-planes, "make wrong orders unrepresentable"; P-3: each wrong program is refused with its own code, and the right one compiles.
#[test]
fn wrong_orders_do_not_compile() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let project = tempfile::tempdir().expect("a temporary folder");
    let mut manifest = format!(
        "[package]\nname = \"compile-fail\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n\
         tipstaff-core = {{ path = {root:?}, default-features = false }}\nserde_json = \"1\"\ntokio = {{ version = \"1\", default-features = false }}\n",
    );
    let mut expected = BTreeMap::new();
    for entry in fs::read_dir(root.join("tests/ui")).expect("tests/ui is readable") {
        let path = entry.expect("its entries are readable").path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
        let text = fs::read_to_string(&path).expect("the program is readable");
        manifest.push_str(&format!("[[bin]]\nname = {name:?}\npath = {path:?}\n"));
        expected.insert(name, expectation(&path, &text));
    }
    assert!(expected.len() > 4, "programs are missing from tests/ui");
    fs::write(project.path().join("Cargo.toml"), manifest).expect("the manifest is written");
    fs::copy(root.join("Cargo.lock"), project.path().join("Cargo.lock")).expect("the lock file is there");

    let found = codes(project.path(), &expected.keys().cloned().collect::<Vec<_>>());
    for (name, expected) in expected {
        let codes = found.get(&name).map(Vec::as_slice).unwrap_or_default();
        match expected {
            Expected::Compiles => assert!(codes.is_empty(), "{name} must compile, but the compiler says {codes:?}"),
            Expected::Error(code) => assert!(!codes.is_empty() && codes.iter().all(|c| *c == code), "{name} must fail with {code}: {codes:?}"),
        }
    }
}
