//! Rows of the original system (P-13).

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tipstaff::clock::Timestamp;
use tipstaff::id::SessionId;
use tipstaff::signal::legacy::{
    DormantPoint, HookPoint, HookRecord, LegacyError, LegacyKind, LegacyRow, LegacyRows, LegacyWarning,
};
use tipstaff::signal::{LifecycleKind, Payload, PayloadType, Signal, SignalKind, SignalSeq};

use super::data;

fn row(kind: &str, payload: Value) -> LegacyRow {
    LegacyRow {
        id: "r-1".to_owned(),
        session_id: "s-1".to_owned(),
        seq: 7,
        kind: kind.to_owned(),
        op_id: "op-1".to_owned(),
        ts: 1_764_528_000.123_456,
        payload,
    }
}

/// Every kind has the members of the recorded vocabulary.
fn vocabulary() -> Option<Value> {
    let folder = data::folder("TIPSTAFF_CHARACTERIZATION_DIR", "../shared/characterization")?;
    let text = std::fs::read_to_string(folder.join("_vocabulary.json")).expect("the vocabulary is readable");
    Some(serde_json::from_str(&text).expect("the vocabulary is JSON"))
}

fn names(value: &Value) -> BTreeSet<&str> {
    value.as_array().expect("a list").iter().map(|name| name.as_str().expect("a name")).collect()
}

/// P-13: the closed sets are the recorded ones: 18 kinds, 13 hook points, which of them block and which are dormant.
#[test]
fn the_closed_sets_are_the_recorded_ones() {
    let Some(vocabulary) = vocabulary() else { return };
    let kinds: BTreeSet<&str> =
        vocabulary["session_signal_kinds"].as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(LegacyKind::ALL.iter().map(|kind| kind.as_str()).collect::<BTreeSet<_>>(), kinds);
    assert_eq!(kinds.len(), 18);
    let points = |wanted: fn(HookPoint) -> bool| {
        HookPoint::ALL.iter().copied().filter(move |point| wanted(*point)).map(HookPoint::as_str).collect::<BTreeSet<_>>()
    };
    assert_eq!(points(|_| true), names(&vocabulary["hook_points"]));
    assert_eq!(points(HookPoint::is_blocking), names(&vocabulary["blocking_points"]));
    assert_eq!(points(HookPoint::is_dormant), names(&vocabulary["dormant_points"]));
    assert_eq!(HookPoint::ALL.len(), 13);
}

/// P-13: each of the 18 kinds, with the members that its rows have, is read and written back as it was.
#[test]
fn every_kind_survives_the_round_trip() {
    let vocabulary = vocabulary();
    let mut met = BTreeSet::new();
    for &kind in LegacyKind::ALL {
        let members = match &vocabulary {
            Some(vocabulary) => names(&vocabulary["session_signal_kinds"][kind.as_str()]),
            None => BTreeSet::from(["created_at", "data", "emitter_role", "metadata", "schema_version"]),
        };
        let value = |name: &str| match name {
            "schema_version" => json!(2),
            "emitter_role" => json!("worker"),
            name => json!({ "of": name }),
        };
        let payload: Value =
            members.iter().map(|name| ((*name).to_owned(), value(name))).collect::<serde_json::Map<_, _>>().into();
        let written = row(kind.as_str(), payload.clone());
        let fact = written.read().unwrap();
        assert_eq!(fact.signal.kind(), &kind.kind());
        assert_eq!(LegacyKind::of(fact.signal.kind()), Some(kind));
        assert!(met.insert(fact.signal.kind().as_str().to_owned()), "no two kinds become one");
        assert_eq!(fact.signal.payload().value(), &payload, "nothing is cut");
        let shape = fact.signal.payload().shape();
        assert_eq!((shape.name(), shape.version()), (&*format!("lionagi.{kind}"), 2));
        assert_eq!((fact.signal.role().as_str(), fact.seq), ("worker", SignalSeq(7)));
        assert_eq!(fact.signal.operation().unwrap().as_str(), "op-1");
        assert_eq!(fact.signal.occurred_at(), Timestamp::from_micros(1_764_528_000_123_456));
        assert_eq!((fact.warnings, fact.arguments), (vec![], None));
        assert_eq!(LegacyRows::Written.row(&fact.signal, fact.seq, None), Some(written));
    }
}

/// P-13: each of the 13 hook points survives the round trip; its free-form arguments stand beside the fact and are in no part of it.
#[test]
fn every_hook_point_survives_the_round_trip() {
    for &point in HookPoint::ALL {
        for (denied, has_exception) in [(false, false), (true, true)] {
            let arguments = json!({ "secret": "kwargs" });
            let payload =
                json!({ "point": point.as_str(), "denied": denied, "has_exception": has_exception, "kwargs": arguments });
            let written = row("HookSignal", payload);
            let fact = written.read().unwrap();
            assert_eq!(HookRecord::from_signal(&fact.signal), Some(HookRecord { point, denied, has_exception }));
            assert_eq!(fact.arguments.as_ref(), Some(&arguments));
            assert!(!fact.signal.payload().wire().contains("secret"), "only inside the projection");
            let dormant = (point == HookPoint::ArtifactCreated).then_some(LegacyWarning::Dormant(DormantPoint { point }));
            assert_eq!(fact.warnings, Vec::from_iter(dormant));
            assert_eq!(LegacyRows::Written.row(&fact.signal, fact.seq, fact.arguments.as_ref()), Some(written));
            assert_eq!(HookPoint::parse(point.as_str()), Some(point));
            assert_eq!(serde_json::from_value::<HookPoint>(json!(point)).unwrap(), point);
        }
    }
}

/// P-13: rows are written only when that is switched on, and only for what the original has a kind for.
#[test]
fn rows_are_written_when_that_is_switched_on() {
    let fact = |kind: LifecycleKind| {
        let shape = PayloadType::new("app.note", 3).unwrap();
        Signal::builder(SessionId::new("s").unwrap(), kind, Timestamp::from_micros(1_500_000))
            .payload(Payload::from_value(shape, json!({ "n": 1 })))
            .build()
    };
    let started = fact(LifecycleKind::RunStarted);
    assert_eq!(LegacyRows::default().row(&started, SignalSeq(1), None), None, "off without being asked");
    let row = LegacyRows::Written.row(&started, SignalSeq(1), None).unwrap();
    let wrapped = json!({ "created_at": 1.5, "data": { "n": 1 }, "emitter_role": "host", "metadata": {}, "schema_version": 1 });
    assert_eq!((row.kind.as_str(), row.seq, row.ts, row.op_id.as_str(), row.payload), ("RunStart", 1, 1.5, "", wrapped));
    assert_eq!(LegacyRows::Written.row(&fact(LifecycleKind::OperationDenied), SignalSeq(1), None), None);
}

/// P-12, P-13: what is not known is kept by its name, and written back as it was; what was cut is said to be.
#[test]
fn what_the_original_does_not_know_is_kept() {
    let later = row("KindOfALaterVersion", json!({ "x": 1 }));
    let fact = later.read().unwrap();
    assert_eq!(fact.signal.kind(), &SignalKind::Unknown("KindOfALaterVersion".into()));
    assert_eq!(fact.warnings, [LegacyWarning::UnknownKind { name: "KindOfALaterVersion".to_owned() }]);
    assert_eq!(LegacyRows::Written.row(&fact.signal, fact.seq, None), Some(later));

    let point = row("HookSignal", json!({ "point": "tool.later", "kwargs": 1 }));
    let fact = point.read().unwrap();
    assert_eq!(fact.warnings, [LegacyWarning::UnknownPoint { name: "tool.later".to_owned() }]);
    assert_eq!((HookRecord::from_signal(&fact.signal), fact.arguments), (None, None));
    assert_eq!(LegacyRows::Written.row(&fact.signal, fact.seq, None), Some(point));

    let cut = row("RunEnd", json!({ "truncated": true, "original_bytes": 40084, "data": "{\"dat" }));
    assert_eq!(cut.read().unwrap().warnings, [LegacyWarning::Truncated { original_bytes: 40_084 }]);
}

/// What cannot be a fact says which row, and why.
#[test]
fn a_row_that_is_no_fact_says_why() {
    for ts in [f64::NAN, f64::INFINITY, 1e13, -1e13] {
        let timeless = LegacyRow { ts, ..row("RunStart", Value::Null) };
        assert!(matches!(timeless.read(), Err(LegacyError::Time { row, .. }) if row == "r-1"), "{ts}");
    }
    let nobody = LegacyRow { session_id: String::new(), ..row("RunStart", Value::Null) };
    assert!(matches!(nobody.read(), Err(LegacyError::Identity { .. })));
    assert!(matches!(row("a\nb", Value::Null).read(), Err(LegacyError::Kind { name, .. }) if name == "a\nb"));
    let free = LegacyRow { op_id: String::new(), ..row("RunStart", Value::Null) };
    assert_eq!(free.read().unwrap().signal.operation(), None);
}
