//! The original system's hook points.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! hook_points {
    ($($(#[$docs:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// The hook points of the original system. The set is closed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum HookPoint { $($(#[$docs])* $variant),+ }

        impl HookPoint {
            /// Every hook point.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in its rows.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// Reads a name; `None` where the original had no such point.
            #[must_use]
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

hook_points! {
    /// A session began.
    SessionStart = "session.start",
    /// A session ended.
    SessionEnd = "session.end",
    /// A branch was made.
    BranchCreate = "branch.create",
    /// A branch ended.
    BranchEnd = "branch.end",
    /// A model is about to be called.
    ApiPreCall = "api.pre_call",
    /// A model was called.
    ApiPostCall = "api.post_call",
    /// A chunk of a streamed answer came.
    ApiStreamChunk = "api.stream_chunk",
    /// A tool is about to be called. It blocks: a failure keeps the call from happening.
    ToolPre = "tool.pre",
    /// A tool was called.
    ToolPost = "tool.post",
    /// A tool failed.
    ToolError = "tool.error",
    /// A message was added.
    MessageAdd = "message.add",
    /// An artifact was made. Nothing of the original emits it.
    ArtifactCreated = "artifact.created",
    /// A prompt is about to be submitted. It blocks.
    PromptSubmit = "prompt.submit",
}

impl HookPoint {
    /// Whether a failure of a handler reaches the emitter, who then does not go on.
    #[must_use]
    pub const fn is_blocking(self) -> bool {
        matches!(self, Self::ToolPre | Self::PromptSubmit)
    }

    /// Whether nothing of the original emits it. Registrations are accepted, with a warning.
    #[must_use]
    pub const fn is_dormant(self) -> bool {
        matches!(self, Self::ArtifactCreated)
    }
}

impl fmt::Display for HookPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for HookPoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for HookPoint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&name).ok_or_else(|| serde::de::Error::custom(format_args!("{name:?} is no hook point")))
    }
}

/// A registration at a point that nothing of the original emits: accepted, and called should anybody emit it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nothing emits hook point {point}: a handler there is called only by whoever emits it by hand")]
pub struct DormantPoint {
    /// The point.
    pub point: HookPoint,
}

impl DormantPoint {
    /// The warning for this point, if it is dormant.
    #[must_use]
    pub const fn of(point: HookPoint) -> Option<Self> {
        if point.is_dormant() { Some(Self { point }) } else { None }
    }
}
