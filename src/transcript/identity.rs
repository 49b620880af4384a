//! Which product wrote a file, and which thread it is.

use std::path::Path;

use serde_json::{Map, Value};

/// The product that wrote a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Product {
    /// Claude Code: session JSONL.
    Claude,
    /// Codex: rollout JSONL.
    Codex,
}

impl Product {
    /// The name in keys and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }
}

/// How a Codex file wraps its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Items stand bare, without time stamps (to about September 2025).
    Bare,
    /// Items stand in an envelope of time stamp, type and payload.
    Envelope,
}

impl Layout {
    /// The name in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Envelope => "envelope",
        }
    }
}

/// The thread that a file records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Who wrote it.
    pub product: Product,
    /// How its records are wrapped; Codex only.
    pub layout: Option<Layout>,
    /// The session. Claude Code: the file's name when it is a UUID, else the first `sessionId` in it. Codex: the `id` of the first
    /// `session_meta`, else the UUID at the end of the file's name. Else the file's name.
    pub session: Box<str>,
    /// The sub-agent whose own file this is.
    pub agent: Option<Box<str>>,
    /// Whether the whole file is a sub-agent's.
    pub sidechain: bool,
    /// What started the sub-agent, as far as the file, or the file beside it, says.
    pub parent: Option<Parent>,
    /// The thread that this one was forked from; what stands before its first own turn is inherited.
    pub forked_from: Option<Box<str>>,
}

/// What started a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// The session or thread.
    pub session: Box<str>,
    /// The call in it.
    pub call_id: Option<Box<str>>,
}

/// Which product's record this is, if it tells.
pub(super) fn product_of(record: &Map<String, Value>) -> Option<(Product, Option<Layout>)> {
    let has = |key: &str| record.contains_key(key);
    let kind = record.get("type").and_then(Value::as_str);
    let claude = Some((Product::Claude, None));
    let bare = Some((Product::Codex, Some(Layout::Bare)));
    if record.get("payload").is_some_and(Value::is_object) && kind.is_some_and(is_envelope) {
        return Some((Product::Codex, Some(Layout::Envelope)));
    }
    match kind {
        Some("user" | "assistant") if has("message") => claude,
        Some("summary") if has("leafUuid") => claude,
        Some("file-history-snapshot" | "file-history-delta") if has("messageId") || has("snapshot") => claude,
        Some(_) if has("sessionId") || (has("uuid") && has("parentUuid")) => claude,
        Some("message") if has("role") && has("content") => bare,
        Some("function_call" | "custom_tool_call" | "local_shell_call" | "function_call_output" | "custom_tool_call_output")
            if has("call_id") =>
        {
            bare
        }
        Some("reasoning") if has("summary") => bare,
        Some(_) => None,
        None if is_bare_header(record) || record.get("record_type").is_some_and(Value::is_string) => bare,
        None => None,
    }
}

fn is_envelope(kind: &str) -> bool {
    matches!(
        kind,
        "session_meta"
            | "turn_context"
            | "response_item"
            | "event_msg"
            | "compacted"
            | "world_state"
            | "inter_agent_communication"
            | "inter_agent_communication_metadata"
            | "token_usage_record"
    )
}

/// Whether this is the first line of the bare layout.
pub(super) fn is_bare_header(record: &Map<String, Value>) -> bool {
    !record.contains_key("type")
        && record.get("id").is_some_and(Value::is_string)
        && record.contains_key("timestamp")
        && (record.contains_key("instructions") || record.contains_key("git"))
}

/// What the first records tell about the thread, gathered until it is enough.
#[derive(Debug, Default)]
pub(super) struct Clues {
    product: Option<(Product, Option<Layout>)>,
    session: Option<Box<str>>,
    agent: Option<Box<str>>,
    sidechain: bool,
    parent: Option<Box<str>>,
    forked_from: Option<Box<str>>,
}

impl Clues {
    pub(super) fn product(&self) -> Option<Product> {
        self.product.map(|(product, _)| product)
    }

    pub(super) fn is_enough(&self) -> bool {
        self.product.is_some() && self.session.is_some()
    }

    pub(super) fn look_at(&mut self, record: &Map<String, Value>) {
        self.product = self.product.or_else(|| product_of(record));
        if self.session.is_some() {
            return;
        }
        match self.product() {
            Some(Product::Claude) => self.look_at_claude(record),
            Some(Product::Codex) => self.look_at_codex(record),
            None => {}
        }
    }

    fn look_at_claude(&mut self, record: &Map<String, Value>) {
        self.session = text(record.get("sessionId"));
        self.sidechain |= record.get("isSidechain") == Some(&Value::Bool(true));
        self.agent = self.agent.take().or_else(|| text(record.get("agentId")));
    }

    fn look_at_codex(&mut self, record: &Map<String, Value>) {
        if is_bare_header(record) {
            self.session = text(record.get("id"));
            return;
        }
        let meta = (record.get("type").and_then(Value::as_str) == Some("session_meta")).then(|| record.get("payload")).flatten();
        let Some(meta) = meta else { return };
        self.session = text(meta.get("id"));
        self.forked_from = text(meta.get("forked_from_id"));
        let spawned = meta.pointer("/source/subagent");
        self.sidechain = spawned.is_some_and(|source| !source.is_null())
            || meta.get("thread_source").and_then(Value::as_str).is_some_and(|source| source.starts_with("subagent"));
        self.parent = text(meta.get("parent_thread_id"))
            .or_else(|| text(meta.pointer("/source/subagent/thread_spawn/parent_thread_id")))
            .or_else(|| text(meta.get("session_id")).filter(|_| self.sidechain))
            .filter(|parent| self.session.as_ref() != Some(parent));
    }

    /// The thread of the file called `name`; `None` while the product is not known.
    pub(super) fn thread(self, name: &str) -> Option<Thread> {
        let (product, layout) = self.product?;
        let stem = Path::new(name).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let named = match product {
            Product::Claude => is_uuid(&stem).then_some(&*stem),
            Product::Codex => None,
        };
        let agent = match product {
            Product::Claude => match stem.strip_prefix("agent-") {
                Some(id) => Some(self.agent.unwrap_or_else(|| id.into())),
                None => None,
            },
            Product::Codex => None,
        };
        let fallback = || match product {
            Product::Claude => stem.as_str(),
            Product::Codex => tail_uuid(&stem).unwrap_or(&stem),
        };
        let session: Box<str> = match (named, self.session) {
            (Some(named), _) => named.into(),
            (None, Some(told)) => told,
            (None, None) => fallback().into(),
        };
        let sidechain = self.sidechain || agent.is_some();
        let parent = match product {
            Product::Claude => {
                agent.is_some().then(|| Parent { session: session.clone(), call_id: call_beside(Path::new(name)) })
            }
            Product::Codex => self.parent.map(|session| Parent { session, call_id: None }),
        };
        Some(Thread { product, layout, session, agent, sidechain, parent, forked_from: self.forked_from })
    }
}

/// The call that started a sub-agent, from the `.meta.json` that newer clients write beside its file.
fn call_beside(path: &Path) -> Option<Box<str>> {
    use std::io::Read as _;
    const MOST: u64 = 64 * 1024;
    let mut meta = Vec::new();
    std::fs::File::open(path.with_extension("meta.json")).ok()?.take(MOST).read_to_end(&mut meta).ok()?;
    let meta: Value = serde_json::from_slice(&meta).ok()?;
    text(meta.get("toolUseId"))
}

fn text(value: Option<&Value>) -> Option<Box<str>> {
    value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(Into::into)
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn tail_uuid(stem: &str) -> Option<&str> {
    stem.len().checked_sub(36).and_then(|at| stem.get(at..)).filter(|tail| is_uuid(tail))
}

/// The milliseconds since 1970 inside a version 7 UUID: such identifiers are ordered by their time of birth.
pub(super) fn born_at_ms(id: &str) -> Option<u64> {
    if !is_uuid(id) || id.as_bytes()[14] != b'7' {
        return None;
    }
    u64::from_str_radix(&[&id[..8], &id[9..13]].concat(), 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn thread(name: &str, records: &[Value]) -> Option<Thread> {
        let mut clues = Clues::default();
        records.iter().for_each(|record| clues.look_at(record.as_object().unwrap()));
        clues.thread(name)
    }

    #[test]
    fn the_thread_is_named_by_the_file_or_by_its_first_records() {
        const ID: &str = "01890000-0000-7000-8000-000000000001";
        let user = json!({ "type": "user", "message": {}, "sessionId": "inside", "agentId": "a1", "isSidechain": true });
        let by_name = thread(&format!("/x/{ID}.jsonl"), std::slice::from_ref(&user)).unwrap();
        assert_eq!((&*by_name.session, by_name.agent), (ID, None));
        let agent = thread("x/agent-a1.jsonl", std::slice::from_ref(&user)).unwrap();
        assert_eq!((&*agent.session, agent.agent.as_deref(), agent.sidechain), ("inside", Some("a1"), true));
        assert_eq!(&*thread("x/notes.jsonl", &[user]).unwrap().session, "inside");

        let event = json!({ "timestamp": "t", "type": "event_msg", "payload": { "type": "x" } });
        assert_eq!(&*thread(&format!("rollout-2026-{ID}.jsonl"), std::slice::from_ref(&event)).unwrap().session, ID);
        assert_eq!(&*thread("tail.jsonl", &[event]).unwrap().session, "tail");
        let meta = |payload: Value| json!({ "timestamp": "t", "type": "session_meta", "payload": payload });
        let sub = thread(
            "x",
            &[meta(json!({ "id": "me", "session_id": "up", "source": { "subagent": "review" } })), meta(json!({ "id": "up" }))],
        );
        let sub = sub.unwrap();
        assert_eq!((&*sub.session, sub.sidechain, &*sub.parent.unwrap().session), ("me", true, "up"));
    }

    #[test]
    fn other_grammars_are_not_taken_for_either_product() {
        for other in [
            json!({ "type": "thread.started", "thread_id": "x" }),
            json!({ "type": "item.completed", "item": { "type": "command_execution" } }),
            json!({ "type": "started", "key": "x" }),
            json!({ "level": "info", "message": "x" }),
            json!({}),
        ] {
            assert_eq!(product_of(other.as_object().unwrap()), None, "{other}");
        }
    }

    #[test]
    fn only_version_7_identifiers_have_a_time() {
        assert_eq!(born_at_ms("019fc8be-3658-7e21-b0da-c983217bb584"), Some(0x019f_c8be_3658));
        assert_eq!(born_at_ms("019fc8be-3658-4e21-b0da-c983217bb584"), None);
        assert_eq!(born_at_ms("[trimmed]"), None);
    }
}
