//! The folders of scenarios: the recorded one where it is there, else the copy that the repository carries; and the few of our own, for values of the
//! profiles that no recorded trace shows.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::scenario::{Envelope, SCHEMA, Scenario};
use crate::data;

const VARIABLE: &str = "TIPSTAFF_CHARACTERIZATION_DIR";
const RECORDED: &str = "../shared/characterization";
const COPY: &str = "tests/fixtures/characterization";
const OWN: &str = "tests/fixtures/profiles";

/// Every file, by profile.
pub(super) struct Corpus {
    pub(super) folder: PathBuf,
    /// The scenarios of the profiles that were asked for, in the order of their files.
    pub(super) scenarios: BTreeMap<String, Vec<Arc<Scenario>>>,
    /// Those of our own, in the same form.
    pub(super) own: BTreeMap<String, Vec<Arc<Scenario>>>,
    /// How many files of other profiles there are: other mechanisms, with forms of their own.
    pub(super) others: BTreeMap<String, usize>,
}

/// Reads all of the folder. Files of the given profiles are read strictly.
///
/// # Panics
/// A file that cannot be read is a failure, never a scenario less.
pub(super) fn read(profiles: &[&str]) -> Corpus {
    let folder = data::folder_or_copy(VARIABLE, RECORDED, COPY);
    let (scenarios, others) = scenarios(&folder, profiles);
    let (own, _) = self::scenarios(&Path::new(env!("CARGO_MANIFEST_DIR")).join(OWN), profiles);
    Corpus { folder, scenarios, own, others }
}

type ByProfile<T> = BTreeMap<String, T>;

fn scenarios(folder: &Path, profiles: &[&str]) -> (ByProfile<Vec<Arc<Scenario>>>, ByProfile<usize>) {
    let (mut scenarios, mut others) = (ByProfile::<Vec<_>>::new(), ByProfile::new());
    for path in files(folder) {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let envelope: Envelope = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(envelope.schema, SCHEMA, "{}", path.display());
        if profiles.contains(&envelope.profile.as_str()) {
            let scenario: Scenario = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            scenarios.entry(envelope.profile).or_default().push(Arc::new(scenario));
        } else {
            *others.entry(envelope.profile).or_default() += 1;
        }
    }
    (scenarios, others)
}

/// All scenario files below a folder, sorted. A name that starts with an underscore is no scenario.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("its entries are readable").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            if path.is_dir() {
                open.push(path);
            } else if name.ends_with(".json") && !name.starts_with('_') {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The copy that the repository carries is the recorded folder: a user's machine runs the same scenarios.
#[test]
fn the_copy_is_the_recorded_folder() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (recorded, copy) = (root.join(RECORDED), root.join(COPY));
    if !recorded.is_dir() || !copy.is_dir() {
        return;
    }
    let texts = |folder: &Path| -> BTreeMap<PathBuf, String> {
        let inner = |path: &PathBuf| path.strip_prefix(folder).expect("it stands below").to_owned();
        files(folder).iter().map(|path| (inner(path), fs::read_to_string(path).expect("it is readable"))).collect()
    };
    let (recorded, copy) = (texts(&recorded), texts(&copy));
    let differing: Vec<_> = recorded.keys().chain(copy.keys()).filter(|path| recorded.get(*path) != copy.get(*path)).collect();
    assert_eq!(differing, Vec::<&PathBuf>::new(), "copy the folder again");
}
