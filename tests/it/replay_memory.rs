//! A transcript of any size streams through a replay in the same memory.

use std::io::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::data;
use crate::program::{self, Order, Told};
use crate::sessions;

const MIB: u64 = 1024 * 1024;
/// One line of this size is in each transcript.
const ONE_LINE: usize = 8 * 1024 * 1024;
/// The most that a replay may have resident, whatever the size of its transcript: the program, the remembered digests of repeats, and one huge
/// line as bytes, as a value, and as the payload that is written and read back.
const BOUND_KIB: u64 = 192 * 1024;

fn replay(transcript: &Path, folder: &Path) -> Told {
    let order =
        Order { args: vec!["replay".into(), transcript.into(), "--json".into()], halt: None, told: folder.join("told.json") };
    let told = program::run_child(&order);
    assert_eq!((told.exit, told.err.as_str()), (0, ""));
    told
}

/// `None` where the platform does not tell, which is said on standard error.
fn peak_kib(told: &Told) -> Option<u64> {
    if told.peak_kib.is_none() {
        writeln!(std::io::stderr(), "SKIPPED: this platform does not tell the peak of a process's memory")
            .expect("standard error is open");
    }
    told.peak_kib
}

/// 16 and 64 MiB. A build without optimisation takes a minute for that on a busy machine, so it takes half of it unless a variable asks for all.
fn sizes() -> [u64; 2] {
    if cfg!(debug_assertions) && !data::is_set("TIPSTAFF_TEST_FULL_SIZE") { [8, 32] } else { [16, 64] }
}

/// Four times the transcript, the same memory (10-cli: a file of any size streams in bounded memory).
#[test]
fn a_larger_transcript_takes_no_more_memory() {
    let folder = tempfile::tempdir().unwrap();
    let transcript = folder.path().join("session.jsonl");
    let mut peaks = Vec::new();
    for mib in sizes() {
        sessions::write_calls(&transcript, mib * MIB, ONE_LINE);
        let told = replay(&transcript, folder.path());
        assert!(told.out_bytes as u64 > mib * 16 * 1024, "each call has its decision: {} bytes", told.out_bytes);
        let Some(peak) = peak_kib(&told) else { return };
        println!("{mib} MiB: {peak} KiB resident at most");
        peaks.push(peak);
    }
    assert!(peaks.iter().all(|peak| *peak < BOUND_KIB), "{peaks:?} KiB");
    assert!(peaks[1] < peaks[0] + peaks[0] / 4 + 8 * 1024, "{peaks:?} KiB: it grows with the file");
}

/// A line over the reader's limit is skipped and named, and never held whole.
#[test]
fn a_line_over_the_limit_is_skipped_in_bounded_memory() {
    const LINE: u64 = 100 * MIB;
    let folder = tempfile::tempdir().unwrap();
    let transcript = sessions::write(folder.path(), "session.jsonl", sessions::lines(&[sessions::bash("a", "ls")]));
    let before = transcript.metadata().unwrap().len();
    let mut file = std::fs::File::options().append(true).open(&transcript).unwrap();
    // A hole of zeros: the line needs no room on the disk.
    file.set_len(before + LINE).unwrap();
    writeln!(file).unwrap();
    file.write_all(sessions::lines(&[sessions::result("a", "src")]).as_bytes()).unwrap();

    let told = replay(&transcript, folder.path());
    let report: Value = serde_json::from_str(&told.out).unwrap();
    let file = &report["files"][0];
    assert_eq!(
        (&file["skipped_lines"], &file["calls"], &file["results"], &file["physical_lines"]),
        (&1.into(), &1.into(), &1.into(), &3.into())
    );
    let text = program::run(["replay".as_ref(), transcript.as_os_str()]).done().out;
    assert!(text.contains(&format!("session.jsonl:2: {LINE} bytes are over the reader's limit")), "{text}");
    if let Some(peak) = peak_kib(&told) {
        println!("{peak} KiB resident at most");
        assert!(peak < BOUND_KIB, "{peak} KiB");
    }
}
