//! Stable identities: the same record of the same thread yields the same key, whoever reads it and however often.
//!
//! A key is a path of escaped segments, `product/session[/agent]/call[#use]`. Two different calls never share one: the separators are
//! escaped inside a segment, and a path that is too long for an identifier is replaced by its SHA-256 digest.

use std::fmt::Write as _;
use std::io;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::event::{LifecycleName, Place};
use super::identity::{Product, Thread};
use crate::id::{MAX_ID_BYTES, OperationId, SignalId};

/// Makes the keys of one thread.
#[derive(Debug)]
pub(super) struct Keys {
    product: Product,
    prefix: String,
    has_agent: bool,
}

/// What a lifecycle signal is known by.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source<'a> {
    /// The record's own identifier.
    Record(&'a str),
    /// The record's place in its file.
    Place(Place),
}

impl Keys {
    pub(super) fn new(thread: &Thread) -> Self {
        let mut prefix = String::from(thread.product.as_str());
        segment(&mut prefix, &thread.session);
        if let Some(agent) = &thread.agent {
            segment(&mut prefix, agent);
        }
        Self { product: thread.product, prefix, has_agent: thread.agent.is_some() }
    }

    /// The key of a call. `agent` counts only in a file that is not an agent's own.
    pub(super) fn operation(&self, agent: Option<&str>, call_id: &str, occurrence: u32) -> OperationId {
        let mut path = self.start(agent, call_id.len() + 8);
        segment(&mut path, call_id);
        if occurrence > 0 {
            write!(path, "#{occurrence}").expect("writing into a string cannot fail");
        }
        OperationId::new(self.fit(path)).expect("escaped, not empty and short enough")
    }

    /// The identity of the `nth` signal of that name which one record tells.
    pub(super) fn signal(&self, source: Source<'_>, name: LifecycleName, nth: u32) -> SignalId {
        let mut path = self.start(None, 64);
        match source {
            Source::Record(id) => segment(&mut path, id),
            Source::Place(place) => {
                write!(path, "/@{}.{}", place.offset, place.part).expect("writing into a string cannot fail");
            }
        }
        path.push('/');
        path.push_str(name.as_str());
        if nth > 0 {
            write!(path, "#{nth}").expect("writing into a string cannot fail");
        }
        SignalId::new(self.fit(path)).expect("escaped, not empty and short enough")
    }

    fn start(&self, agent: Option<&str>, more: usize) -> String {
        let mut path = String::with_capacity(self.prefix.len() + more);
        path.push_str(&self.prefix);
        if let Some(agent) = agent.filter(|_| !self.has_agent) {
            segment(&mut path, agent);
        }
        path
    }

    fn fit(&self, path: String) -> String {
        if path.len() <= MAX_ID_BYTES {
            return path;
        }
        let mut short = format!("{}/~", self.product.as_str());
        for byte in Sha256::digest(path.as_bytes()) {
            write!(short, "{byte:02x}").expect("writing into a string cannot fail");
        }
        short
    }
}

fn segment(path: &mut String, text: &str) {
    path.push('/');
    for c in text.chars() {
        if matches!(c, '/' | '#' | '%' | '@' | '~') || c.is_control() {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                write!(path, "%{byte:02x}").expect("writing into a string cannot fail");
            }
        } else {
            path.push(c);
        }
    }
}

/// Half of a SHA-256 digest: enough to tell two blocks apart, even when somebody tries to make them collide by accident or by care.
pub(super) type Short = [u8; 16];

/// The digest of a text under a tag that keeps different uses apart.
pub(super) fn digest_text(tag: u8, text: &str) -> Short {
    let mut sink = Sink(Sha256::new_with_prefix([tag]));
    sink.0.update(text.as_bytes());
    sink.short()
}

/// The digest of a block: its JSON text, and where it stands when it has no identifier of its own.
pub(super) fn digest_block(tag: u8, block: &Value, unnamed_at: Option<Place>) -> Short {
    let mut sink = Sink(Sha256::new_with_prefix([tag]));
    if let Some(place) = unnamed_at {
        sink.0.update(place.offset.to_le_bytes());
        sink.0.update(place.part.to_le_bytes());
    }
    serde_json::to_writer(&mut sink, block).expect("a parsed value has only text keys, and the sink takes everything");
    sink.short()
}

struct Sink(Sha256);

impl Sink {
    fn short(self) -> Short {
        let whole: [u8; 32] = self.0.finalize().into();
        let mut short = [0; 16];
        short.copy_from_slice(&whole[..16]);
        short
    }
}

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(session: &str, agent: Option<&str>) -> Keys {
        Keys::new(&Thread {
            product: Product::Claude,
            layout: None,
            session: session.into(),
            agent: agent.map(Into::into),
            sidechain: agent.is_some(),
            parent: None,
            forked_from: None,
        })
    }

    #[test]
    fn different_calls_never_share_a_key() {
        let plain = keys("s", None);
        let mut all = vec![
            plain.operation(None, "a", 0),
            plain.operation(None, "a", 1),
            plain.operation(None, "a#1", 0),
            plain.operation(Some("x"), "a", 0),
            plain.operation(None, "x/a", 0),
            keys("s/x", None).operation(None, "a", 0),
            plain.operation(None, &"l".repeat(600), 0),
            plain.operation(None, &"l".repeat(601), 0),
            plain.operation(None, "a\nb", 0),
            plain.operation(None, "a%0ab", 0),
            plain.operation(None, "", 0),
        ];
        all.sort();
        let before = all.len();
        all.dedup();
        assert_eq!(all.len(), before);
        assert_eq!(keys("s", Some("x")).operation(Some("x"), "a", 0), plain.operation(Some("x"), "a", 0));
    }
}
