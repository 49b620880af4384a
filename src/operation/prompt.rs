//! Prompt submission: the owner of what is put to a model.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Owner;
use crate::declare::{CanonicalError, Digest, digest_of};
use crate::interception::{Judged, StageSpec};
use crate::signal::Subject;

/// The owner of what is put to a model.
///
/// Its order: policy -> transform -> *recheck -> submit*. The recheck is the policy's own re-run over what a transform made (I-5); it and the submission
/// take no registration.
#[derive(Debug, Clone, Copy)]
pub struct PromptSubmission;

/// The stages of prompt submission.
pub mod stage {
    /// Guard: may this be put to this model.
    pub const POLICY: &str = "policy";
    /// Transform: may replace the prompt.
    pub const TRANSFORM: &str = "transform";
    /// Own step: the policy judges again what a transform made.
    pub const RECHECK: &str = "recheck";
    /// Own step: the submission.
    pub const SUBMIT: &str = "submit";
}

impl Owner for PromptSubmission {
    const NAME: &'static str = "prompt_submission";
    type Context = Prompt;
    type Output = Value;

    fn stages() -> Vec<StageSpec> {
        vec![
            StageSpec::guard(stage::POLICY),
            StageSpec::transform(stage::TRANSFORM),
            StageSpec::own_step(stage::RECHECK),
            StageSpec::own_step(stage::SUBMIT),
        ]
    }

    /// The model.
    fn subject(prompt: &Prompt) -> Option<Subject> {
        Subject::new("model", Arc::clone(&prompt.model)).ok()
    }
}

/// A rendered prompt: what is judged, and exactly what will be submitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    text: Arc<str>,
    model: Arc<str>,
    origin: PromptOrigin,
}

/// Who made a prompt, as the host has established it. Never taken from the prompt's own words.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptOrigin {
    /// A person.
    Person,
    /// An agent, by name.
    Agent(Arc<str>),
    /// A program without a model, by name: a schedule, a webhook, a template.
    Program(Arc<str>),
}

impl Prompt {
    /// A rendered prompt for a model.
    #[must_use]
    pub fn new(text: impl Into<Arc<str>>, model: impl Into<Arc<str>>, origin: PromptOrigin) -> Self {
        Self { text: text.into(), model: model.into(), origin }
    }

    /// The same prompt with another text: what a transform makes.
    #[must_use]
    pub fn with_text(&self, text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), ..self.clone() }
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The model's name.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Who made it.
    #[must_use]
    pub const fn origin(&self) -> &PromptOrigin {
        &self.origin
    }
}

impl Judged for Prompt {
    fn digest(&self) -> Result<Digest, CanonicalError> {
        digest_of(self)
    }
}
