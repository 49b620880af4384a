-- The journal. Times are microseconds since 1970 UTC by the store's clock, but `occurred_at_us`, which is the emitter's.
-- Tables of the hot path have no foreign keys: their rows are written by one statement path that holds the session's row already.

CREATE TABLE runtime_instances (
    instance_id     TEXT NOT NULL PRIMARY KEY,
    program         TEXT NOT NULL,
    host            TEXT,
    boot            TEXT,
    pid_namespace   TEXT,
    pid             INTEGER NOT NULL,
    started_ticks   INTEGER,
    started_at_us   INTEGER NOT NULL,
    last_seen_at_us INTEGER NOT NULL,
    ended_at_us     INTEGER
) STRICT, WITHOUT ROWID;

-- `next_seq` is the counter of L-21: it is raised in the transaction that uses it, and never falls.
CREATE TABLE sessions (
    session_key INTEGER PRIMARY KEY,
    session_id  TEXT NOT NULL UNIQUE,
    next_seq    INTEGER NOT NULL CHECK (next_seq >= 1)
) STRICT;

-- `payload` is NULL where it is stored beside the row; `payload_bytes` is its size in either case.
CREATE TABLE signals (
    session_key     INTEGER NOT NULL,
    seq             INTEGER NOT NULL,
    signal_id       TEXT NOT NULL UNIQUE,
    kind            TEXT NOT NULL,
    role            TEXT NOT NULL,
    invocation_id   TEXT,
    attempt_id      TEXT,
    operation_id    TEXT,
    subject_kind    TEXT,
    subject_id      TEXT,
    payload_type    TEXT NOT NULL,
    payload_version INTEGER NOT NULL,
    occurred_at_us  INTEGER NOT NULL,
    payload_bytes   INTEGER NOT NULL,
    payload         TEXT,
    PRIMARY KEY (session_key, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE large_payloads (
    session_key INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    bytes       INTEGER NOT NULL,
    digest      BLOB NOT NULL CHECK (length(digest) = 32),
    body        TEXT NOT NULL,
    PRIMARY KEY (session_key, seq)
) STRICT;

-- `known_lost` NULL is unknown, never 0 (P-10).
CREATE TABLE capture_gaps (
    session_key INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    gap_id      TEXT NOT NULL,
    reason      TEXT NOT NULL,
    first_at_us INTEGER NOT NULL,
    last_at_us  INTEGER NOT NULL,
    known_lost  INTEGER CHECK (known_lost > 0),
    PRIMARY KEY (session_key, seq)
) STRICT, WITHOUT ROWID;

-- One row for each attempt of an operation, for ever: an attempt ends once, also across restarts (I-19).
CREATE TABLE attempts (
    operation_id TEXT NOT NULL,
    attempt_id   TEXT NOT NULL,
    session_key  INTEGER NOT NULL,
    instance_id  TEXT NOT NULL,
    proposed_seq INTEGER,
    closed_seq   INTEGER,
    closed_kind  TEXT,
    PRIMARY KEY (operation_id, attempt_id),
    CHECK (proposed_seq IS NOT NULL OR closed_seq IS NOT NULL),
    CHECK ((closed_seq IS NULL) = (closed_kind IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX open_attempts ON attempts (instance_id) WHERE closed_seq IS NULL;
