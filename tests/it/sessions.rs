//! Transcripts that tests make.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The session of all records that are made here, unless their file is named otherwise.
const SESSION: &str = "s";

/// A prompt.
pub(crate) fn prompt(text: &str) -> Value {
    json!({ "type": "user", "sessionId": SESSION, "uuid": "p", "cwd": "/home/mara/tree", "timestamp": "2026-02-01T10:00:00.000Z", "message": { "role": "user", "content": text } })
}

/// A call.
pub(crate) fn call(id: &str, tool: &str, input: &Value) -> Value {
    let block = json!({ "type": "tool_use", "id": id, "name": tool, "input": input });
    json!({
        "type": "assistant", "sessionId": SESSION, "uuid": format!("call-{id}"), "cwd": "/home/mara/tree", "timestamp": "2026-02-01T10:00:01.000Z",
        "message": { "role": "assistant", "content": [block] },
    })
}

/// A shell call.
pub(crate) fn bash(id: &str, command: &str) -> Value {
    call(id, "Bash", &json!({ "command": command }))
}

/// The result of a call.
pub(crate) fn result(id: &str, text: &str) -> Value {
    let block = json!({ "type": "tool_result", "tool_use_id": id, "content": text });
    json!({
        "type": "user", "sessionId": SESSION, "uuid": format!("result-{id}"), "timestamp": "2026-02-01T10:00:02.000Z",
        "message": { "role": "user", "content": [block] },
    })
}

/// Records, one a line.
pub(crate) fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// Writes a file into a folder.
pub(crate) fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

/// The lengths of results as they occur in recorded sessions, by tenths of all; long ones come seldom.
const LENGTHS: [usize; 10] = [200, 300, 400, 500, 700, 900, 1_200, 1_500, 3_000, 8_000];

fn length_of(n: usize) -> usize {
    match n {
        _ if n % 1_400 == 7 => 525_000,
        _ if n % 50 == 3 => 20_000,
        _ => LENGTHS[n % LENGTHS.len()],
    }
}

/// Writes a session of distinct calls, each with its result, until the file has about so many bytes. One line in the middle may be huge.
pub(crate) fn write_calls(path: &Path, bytes: u64, one_line: usize) {
    let mut file = BufWriter::new(fs::File::create(path).unwrap());
    let mut written = 0;
    let mut huge = one_line;
    let mut put = |record: &Value| {
        let line = record.to_string();
        writeln!(file, "{line}").unwrap();
        line.len() as u64 + 1
    };
    written += put(&prompt("go on"));
    for n in 0_usize.. {
        if written >= bytes {
            break;
        }
        let (id, length) = (format!("toolu_{n:08}"), length_of(n));
        written += put(&match n % 3 {
            0 => bash(&id, &format!("cargo test case_{n} -- --nocapture")),
            1 => call(&id, "Read", &json!({ "file_path": format!("/home/mara/tree/src/file_{n}.rs") })),
            _ => call(
                &id,
                "Edit",
                &json!({ "file_path": format!("/home/mara/tree/src/file_{n}.rs"), "new_string": "x".repeat(length / 2) }),
            ),
        });
        written += put(&result(&id, &"y".repeat(length)));
        if huge > 0 && written >= bytes / 2 {
            let content = "z".repeat(huge);
            written += put(&call("toolu_huge", "Write", &json!({ "file_path": "/home/mara/tree/huge.txt", "content": content })));
            written += put(&result("toolu_huge", "written"));
            huge = 0;
        }
    }
    file.flush().unwrap();
}
