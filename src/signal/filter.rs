//! Which facts somebody wants: a declared part that can be stored and replayed, and a predicate of this process.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{EmitterRole, PredicateError, Signal, SignalKind, Subject};
use crate::id::{AttemptId, InvocationId, SessionId};

/// Which facts a subscriber of this process wants: what is declared, and a predicate besides.
///
/// A predicate is code and cannot be stored; what must survive the process is a [`DeclaredFilter`] alone.
#[derive(Clone, Default)]
pub struct Filter {
    declared: DeclaredFilter,
    predicates: Vec<Predicate>,
}

type Predicate = Arc<dyn Fn(&Signal) -> Result<bool, PredicateError> + Send + Sync>;

impl Filter {
    /// Every fact.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// The facts that a declared filter matches.
    #[must_use]
    pub fn matching(declared: DeclaredFilter) -> Self {
        Self { declared, predicates: Vec::new() }
    }

    /// Wants only what the predicate holds for, too. It is asked last, and only about facts that the declared part matches.
    #[must_use]
    pub fn and_predicate(self, predicate: impl Fn(&Signal) -> bool + Send + Sync + 'static) -> Self {
        self.and_fallible_predicate(move |signal| Ok(predicate(signal)))
    }

    /// As [`Filter::and_predicate`], for a predicate that may be unable to tell.
    #[must_use]
    pub fn and_fallible_predicate(
        mut self,
        predicate: impl Fn(&Signal) -> Result<bool, PredicateError> + Send + Sync + 'static,
    ) -> Self {
        self.predicates.push(Arc::new(predicate));
        self
    }

    /// The part that can be stored.
    #[must_use]
    pub fn declared(&self) -> &DeclaredFilter {
        &self.declared
    }

    /// Whether the fact is wanted.
    ///
    /// # Errors
    /// [`PredicateError`], as the first predicate gave it that could not tell.
    ///
    /// # Panics
    /// If a predicate does.
    pub fn matches(&self, signal: &Signal) -> Result<bool, PredicateError> {
        if !self.declared.matches(signal) {
            return Ok(false);
        }
        for predicate in &self.predicates {
            if !predicate(signal)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl From<DeclaredFilter> for Filter {
    fn from(declared: DeclaredFilter) -> Self {
        Self::matching(declared)
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter").field("declared", &self.declared).field("predicates", &self.predicates.len()).finish()
    }
}

/// A filter as plain data: it serialises with a version, and matches the same facts whenever it is replayed.
///
/// Each condition that is set must hold; a condition with several values holds for any one of them. Without conditions it matches every
/// fact. A fact without an invocation (attempt, subject) is not matched by a condition on it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct DeclaredFilter {
    kinds: BTreeSet<SignalKind>,
    roles: BTreeSet<EmitterRole>,
    subjects: BTreeSet<SubjectMatch>,
    sessions: BTreeSet<SessionId>,
    invocations: BTreeSet<InvocationId>,
    attempts: BTreeSet<AttemptId>,
}

impl DeclaredFilter {
    /// Every fact.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Of this kind, or of another one given.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<SignalKind>) -> Self {
        self.kinds.insert(kind.into());
        self
    }

    /// Of one of these kinds.
    #[must_use]
    pub fn kinds<K: Into<SignalKind>>(mut self, kinds: impl IntoIterator<Item = K>) -> Self {
        self.kinds.extend(kinds.into_iter().map(Into::into));
        self
    }

    /// Emitted in this role, or in another one given.
    #[must_use]
    pub fn role(mut self, role: EmitterRole) -> Self {
        self.roles.insert(role);
        self
    }

    /// About this subject, or about another one given.
    #[must_use]
    pub fn subject(mut self, subject: Subject) -> Self {
        self.subjects.insert(SubjectMatch::One(subject));
        self
    }

    /// About any subject of a kind, or about another one given.
    #[must_use]
    pub fn subject_kind(mut self, kind: impl Into<Arc<str>>) -> Self {
        self.subjects.insert(SubjectMatch::AnyOf(kind.into()));
        self
    }

    /// From this session, or from another one given.
    #[must_use]
    pub fn session(mut self, session: SessionId) -> Self {
        self.sessions.insert(session);
        self
    }

    /// From this source invocation, or from another one given.
    #[must_use]
    pub fn invocation(mut self, invocation: InvocationId) -> Self {
        self.invocations.insert(invocation);
        self
    }

    /// From this source attempt, or from another one given.
    #[must_use]
    pub fn attempt(mut self, attempt: AttemptId) -> Self {
        self.attempts.insert(attempt);
        self
    }

    /// Whether the fact is wanted.
    #[must_use]
    pub fn matches(&self, signal: &Signal) -> bool {
        holds(&self.kinds, Some(signal.kind()))
            && holds(&self.roles, Some(signal.role()))
            && (self.subjects.is_empty()
                || signal.subject().is_some_and(|subject| self.subjects.iter().any(|one| one.holds(subject))))
            && holds(&self.sessions, Some(signal.session()))
            && holds(&self.invocations, signal.invocation())
            && holds(&self.attempts, signal.attempt())
    }
}

fn holds<T: Ord>(wanted: &BTreeSet<T>, found: Option<&T>) -> bool {
    wanted.is_empty() || found.is_some_and(|found| wanted.contains(found))
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum SubjectMatch {
    AnyOf(Arc<str>),
    One(Subject),
}

impl SubjectMatch {
    fn holds(&self, subject: &Subject) -> bool {
        match self {
            Self::AnyOf(kind) => **kind == *subject.kind(),
            Self::One(one) => one == subject,
        }
    }
}

/// The version of the stored form.
const VERSION: u32 = 1;

/// The stored form. An empty list would be ambiguous between "any" and "none": it is never written, and refused when read.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "not_empty")]
    kinds: Vec<SignalKind>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "not_empty")]
    emitter_roles: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "not_empty")]
    subjects: Vec<StoredSubject>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "not_empty")]
    sessions: Vec<SessionId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "not_empty")]
    source_invocations: Vec<InvocationId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "not_empty")]
    source_attempts: Vec<AttemptId>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSubject {
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
}

fn not_empty<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let values = Vec::deserialize(deserializer)?;
    if values.is_empty() {
        return Err(serde::de::Error::custom("an empty list matches nothing: leave the member out to match anything"));
    }
    Ok(values)
}

impl Serialize for DeclaredFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let subject = |one: &SubjectMatch| match one {
            SubjectMatch::AnyOf(kind) => StoredSubject { kind: kind.to_string(), id: None },
            SubjectMatch::One(subject) => StoredSubject { kind: subject.kind().to_owned(), id: Some(subject.id().to_owned()) },
        };
        Stored {
            version: VERSION,
            kinds: self.kinds.iter().cloned().collect(),
            emitter_roles: self.roles.iter().map(|role| role.as_str().to_owned()).collect(),
            subjects: self.subjects.iter().map(subject).collect(),
            sessions: self.sessions.iter().cloned().collect(),
            source_invocations: self.invocations.iter().cloned().collect(),
            source_attempts: self.attempts.iter().cloned().collect(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for DeclaredFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let stored = Stored::deserialize(deserializer)?;
        if stored.version != VERSION {
            return Err(D::Error::custom(format_args!(
                "filter version {} is not known: this build reads {VERSION}",
                stored.version
            )));
        }
        let subject = |one: StoredSubject| match one.id {
            None => Ok(SubjectMatch::AnyOf(one.kind.into())),
            Some(id) => Subject::new(one.kind, id).map(SubjectMatch::One).map_err(D::Error::custom),
        };
        Ok(Self {
            kinds: stored.kinds.into_iter().collect(),
            roles: stored
                .emitter_roles
                .into_iter()
                .map(|name| EmitterRole::new(name).map_err(D::Error::custom))
                .collect::<Result<_, _>>()?,
            subjects: stored.subjects.into_iter().map(subject).collect::<Result<_, _>>()?,
            sessions: stored.sessions.into_iter().collect(),
            invocations: stored.source_invocations.into_iter().collect(),
            attempts: stored.source_attempts.into_iter().collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clock::Timestamp;
    use crate::signal::LifecycleKind;

    fn signal() -> Signal {
        Signal::builder(SessionId::new("s").unwrap(), LifecycleKind::NodeFailed, Timestamp::from_micros(1))
            .invocation(InvocationId::new("i").unwrap())
            .role(EmitterRole::new("scheduler").unwrap())
            .subject(Subject::new("node", "7").unwrap())
            .build()
    }

    /// Session observation, filters: each condition is a door of its own, and they all have to be open.
    #[test]
    fn every_declared_condition_is_looked_at() {
        let fitting = || {
            DeclaredFilter::all()
                .kinds([LifecycleKind::NodeFailed, LifecycleKind::NodeCompleted])
                .role(EmitterRole::new("scheduler").unwrap())
                .subject_kind("node")
                .session(SessionId::new("s").unwrap())
                .invocation(InvocationId::new("i").unwrap())
        };
        assert!(fitting().matches(&signal()));
        assert!(DeclaredFilter::all().matches(&signal()));
        let foreign = [
            DeclaredFilter { kinds: [SignalKind::from(LifecycleKind::RunStarted)].into(), ..fitting() },
            DeclaredFilter { roles: [EmitterRole::new("host").unwrap()].into(), ..fitting() },
            DeclaredFilter { subjects: [SubjectMatch::One(Subject::new("node", "8").unwrap())].into(), ..fitting() },
            DeclaredFilter { subjects: [SubjectMatch::AnyOf("run".into())].into(), ..fitting() },
            DeclaredFilter { sessions: [SessionId::new("t").unwrap()].into(), ..fitting() },
            DeclaredFilter { invocations: [InvocationId::new("j").unwrap()].into(), ..fitting() },
            fitting().attempt(AttemptId::new("a").unwrap()),
        ];
        for filter in foreign {
            assert!(!filter.matches(&signal()), "{filter:?}");
        }
    }

    /// Session observation, filters: the declared part is replayable, so it survives its stored form.
    #[test]
    fn the_stored_form_is_versioned_and_matches_the_same_facts() {
        let filter = DeclaredFilter::all()
            .kind(LifecycleKind::NodeFailed)
            .kind(SignalKind::user("mine.done").unwrap())
            .role(EmitterRole::new("scheduler").unwrap())
            .subject(Subject::new("node", "7").unwrap())
            .subject_kind("run")
            .attempt(AttemptId::new("a").unwrap());
        let stored = serde_json::to_value(&filter).unwrap();
        assert_eq!(
            stored,
            json!({
                "version": 1,
                "kinds": ["node_failed", "mine.done"],
                "emitter_roles": ["scheduler"],
                "subjects": [{"kind": "run"}, {"kind": "node", "id": "7"}],
                "source_attempts": ["a"],
            })
        );
        assert_eq!(serde_json::from_value::<DeclaredFilter>(stored).unwrap(), filter);
    }

    #[test]
    fn an_ambiguous_or_unknown_stored_form_is_refused() {
        for bad in [
            json!({}),
            json!({"version": 2}),
            json!({"version": 1, "kinds": []}),
            json!({"version": 1, "kind": "node_failed"}),
            json!({"version": 1, "emitter_roles": [""]}),
        ] {
            assert!(serde_json::from_value::<DeclaredFilter>(bad.clone()).is_err(), "{bad}");
        }
    }

    /// Session observation, filters: arbitrary predicates come after the declared part, and none is asked in vain.
    #[test]
    fn a_predicate_is_asked_last() {
        let foreign =
            Filter::matching(DeclaredFilter::all().kind(LifecycleKind::RunStarted)).and_predicate(|_| panic!("asked in vain"));
        assert_eq!(foreign.matches(&signal()), Ok(false));
        let refusing = Filter::all().and_predicate(|_| false).and_predicate(|_| panic!("asked in vain"));
        assert_eq!(refusing.matches(&signal()), Ok(false));
        let unsure = Filter::all().and_fallible_predicate(|_| Err(PredicateError::new("no table")));
        assert_eq!(unsure.matches(&signal()).unwrap_err().to_string(), "the predicate could not tell: no table");
        let fitting = Filter::all().and_predicate(|signal| signal.kind().lifecycle() == Some(LifecycleKind::NodeFailed));
        assert_eq!(fitting.matches(&signal()), Ok(true));
    }
}
