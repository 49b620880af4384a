//! The questions of readers, each on a connection that its caller holds.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter};

use super::connection::failure;
use super::row::{self, FACT_COLUMNS, RowError, attempt_columns, fact_columns, instance_columns};
use super::store::StoreFile;
use crate::id::{AttemptId, InvocationId, OperationId, RuntimeInstanceId, SessionId, SignalId};
use crate::signal::{SignalKind, SignalSeq, Subject};
use crate::state::{
    AttemptRow, MAX_SCAN, Page, PageLimit, ReadFilter, Recorded, RecordedGap, RuntimeInstance, SessionRow, StoreError, Summary,
};

/// A page of a session. The session's counter is read first, and nothing behind it is returned: facts are only added, so the page is the moment
/// of that read without a transaction.
pub(super) fn page(
    connection: &Connection,
    file: &StoreFile,
    session: &SessionId,
    after: SignalSeq,
    filter: &ReadFilter,
    limit: PageLimit,
) -> Result<Page, StoreError> {
    let failed = |source| failure(&file.path, "reading facts", source);
    let mut page = Page { facts: Vec::new(), next: after, more: false };
    let Some((key, last)) = find_session(connection, session).map_err(failed)? else { return Ok(page) };
    if last <= after.0 {
        return Ok(page);
    }
    let end = last.min(after.0.saturating_add(u64::from(MAX_SCAN)));
    let (sql, values) = facts_query(key, after, end, filter, limit);
    let mut statement = connection.prepare(&sql).map_err(failed)?;
    let mut rows = statement.query(params_from_iter(values)).map_err(failed)?;
    page.next = SignalSeq(end);
    let mut bytes = 0;
    while let Some(found) = rows.next().map_err(failed)? {
        let large = |seq| large_payload(connection, key, seq);
        let recorded = row::fact(found, session, large).map_err(|cause| cause.at(file, || position(found, session)))?;
        bytes += row::unsigned(found, 12).map_err(|cause| cause.at(file, || position(found, session)))?;
        let seq = recorded.seq;
        page.facts.push(recorded);
        if page.facts.len() >= limit.rows.get() as usize || bytes >= limit.payload_bytes.get() {
            page.next = seq;
            break;
        }
    }
    page.more = page.next.0 < last;
    Ok(page)
}

/// The statement for a range of a session. Its text is put together from fixed parts only; what the caller said is bound.
fn facts_query(key: i64, after: SignalSeq, end: u64, filter: &ReadFilter, limit: PageLimit) -> (String, Vec<Value>) {
    let number = |n: u64| Value::Integer(i64::try_from(n).unwrap_or(i64::MAX));
    let mut sql =
        String::from(concat!("SELECT ", fact_columns!(), " FROM signals WHERE session_key = ?1 AND seq > ?2 AND seq <= ?3"));
    let mut values = vec![Value::Integer(key), number(after.0), number(end)];
    if !filter.kinds.is_empty() {
        sql.push_str(" AND kind IN (");
        for (at, kind) in filter.kinds.iter().enumerate() {
            sql.push_str(if at == 0 { "?" } else { ", ?" });
            values.push(Value::Text(kind.as_str().to_owned()));
        }
        sql.push(')');
    }
    let conditions = [
        (" AND invocation_id = ?", filter.invocation.as_ref().map(|id| id.as_str())),
        (" AND operation_id = ?", filter.operation.as_ref().map(|id| id.as_str())),
        (" AND attempt_id = ?", filter.attempt.as_ref().map(|id| id.as_str())),
        (" AND role = ?", filter.role.as_ref().map(|role| role.as_str())),
    ];
    for (condition, wanted) in conditions {
        if let Some(wanted) = wanted {
            sql.push_str(condition);
            values.push(Value::Text(wanted.to_owned()));
        }
    }
    sql.push_str(" ORDER BY seq LIMIT ?");
    values.push(Value::Integer(i64::from(limit.rows.get())));
    (sql, values)
}

/// A recorded fact by its identity, with its session.
pub(super) fn find_signal(
    connection: &Connection,
    file: &StoreFile,
    id: &SignalId,
) -> Result<Option<(SessionId, Recorded)>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        fact_columns!(),
        ", s.session_key, (SELECT n.session_id FROM sessions n WHERE n.session_key = s.session_key) FROM signals s WHERE signal_id = ?1"
    );
    let read = || {
        let mut statement = connection.prepare(SQL)?;
        let mut rows = statement.query([id.as_str()])?;
        let Some(found) = rows.next()? else { return Ok(None) };
        let key = found.get(FACT_COLUMNS)?;
        let session = row::session_id(found, FACT_COLUMNS + 1)?;
        let recorded = row::fact(found, &session, |seq| large_payload(connection, key, seq))?;
        Ok(Some((session, recorded)))
    };
    read().map_err(|cause: RowError| cause.at(file, || format!("fact {id}")))
}

pub(super) fn sessions(
    connection: &Connection,
    file: &StoreFile,
    after: Option<&SessionId>,
    limit: u32,
) -> Result<Vec<SessionRow>, StoreError> {
    // A session whose first fact was refused has a counter and nothing else.
    let sql = "SELECT session_id, next_seq - 1 FROM sessions WHERE session_id > ?1 AND next_seq > 1 ORDER BY session_id LIMIT ?2";
    let read = |row: &Row<'_>| Ok(SessionRow { session: row::session_id(row, 0)?, last_seq: SignalSeq(row::unsigned(row, 1)?) });
    list(connection, file, sql, params![after.map_or("", |id| id.as_str()), limit], "a session", read)
}

pub(super) fn gaps(
    connection: &Connection,
    file: &StoreFile,
    session: &SessionId,
    after: SignalSeq,
    limit: u32,
) -> Result<Vec<RecordedGap>, StoreError> {
    let sql = "SELECT seq, gap_id, reason, first_at_us, last_at_us, known_lost FROM capture_gaps \
               WHERE session_key = (SELECT session_key FROM sessions WHERE session_id = ?1) AND seq > ?2 ORDER BY seq LIMIT ?3";
    let after = i64::try_from(after.0).unwrap_or(i64::MAX);
    list(connection, file, sql, params![session.as_str(), after, limit], "a gap", |found| row::gap(found, session))
}

pub(super) fn attempt(
    connection: &Connection,
    file: &StoreFile,
    operation: &OperationId,
    attempt: &AttemptId,
) -> Result<Option<AttemptRow>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        attempt_columns!(),
        " FROM attempts a JOIN sessions n USING (session_key) WHERE a.operation_id = ?1 AND a.attempt_id = ?2"
    );
    let found = list(connection, file, SQL, params![operation.as_str(), attempt.as_str()], "an attempt", row::attempt)?;
    Ok(found.into_iter().next())
}

pub(super) fn attempts(
    connection: &Connection,
    file: &StoreFile,
    operation: &OperationId,
    after: Option<&AttemptId>,
    limit: u32,
) -> Result<Vec<AttemptRow>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        attempt_columns!(),
        " FROM attempts a JOIN sessions n USING (session_key) WHERE a.operation_id = ?1 AND a.attempt_id > ?2 \
         ORDER BY a.attempt_id LIMIT ?3"
    );
    let after = after.map_or("", |id| id.as_str());
    list(connection, file, SQL, params![operation.as_str(), after, limit], "an attempt", row::attempt)
}

pub(super) fn open_proposals(
    connection: &Connection,
    file: &StoreFile,
    after: Option<(&OperationId, &AttemptId)>,
    limit: u32,
) -> Result<Vec<AttemptRow>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        attempt_columns!(),
        " FROM attempts a JOIN sessions n USING (session_key) \
         WHERE a.closed_seq IS NULL AND (a.operation_id, a.attempt_id) > (?1, ?2) ORDER BY a.operation_id, a.attempt_id LIMIT ?3"
    );
    let (operation, attempt) = after.map_or(("", ""), |(operation, attempt)| (operation.as_str(), attempt.as_str()));
    list(connection, file, SQL, params![operation, attempt, limit], "an attempt", row::attempt)
}

/// The open proposals of one instance.
pub(super) fn open_proposals_of(
    connection: &Connection,
    file: &StoreFile,
    owner: &RuntimeInstanceId,
    limit: u32,
) -> Result<Vec<AttemptRow>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        attempt_columns!(),
        " FROM attempts a JOIN sessions n USING (session_key) WHERE a.closed_seq IS NULL AND a.instance_id = ?1 \
         ORDER BY a.operation_id, a.attempt_id LIMIT ?2"
    );
    list(connection, file, SQL, params![owner.as_str(), limit], "an attempt", row::attempt)
}

/// How many open proposals an instance has.
pub(super) fn count_open_proposals_of(
    connection: &Connection,
    file: &StoreFile,
    owner: &RuntimeInstanceId,
) -> Result<u64, StoreError> {
    let sql = "SELECT count(*) FROM attempts WHERE closed_seq IS NULL AND instance_id = ?1";
    let count = connection.query_row(sql, [owner.as_str()], |row| Ok(row::unsigned(row, 0)));
    count.map_err(RowError::from).and_then(|count| count).map_err(|cause| cause.at(file, || "a count".to_owned()))
}

/// The invocation and subject of a proposal; nothing where its row is missing or says nothing usable.
pub(super) fn proposal_origin(
    connection: &Connection,
    file: &StoreFile,
    open: &AttemptRow,
) -> Result<(Option<InvocationId>, Option<Subject>), StoreError> {
    let sql = "SELECT invocation_id, subject_kind, subject_id FROM signals \
               WHERE session_key = (SELECT session_key FROM sessions WHERE session_id = ?1) AND seq = ?2";
    let seq = open.proposed.map_or(0, |seq| seq.0.cast_signed());
    let found = connection.query_row(sql, params![open.session.as_str(), seq], |found| {
        let invocation = found.get_ref(0)?.as_str().ok().and_then(|id| InvocationId::new(id).ok());
        Ok((invocation, row::subject(found, 1, 2).ok().flatten()))
    });
    let found = found.optional().map_err(|source| failure(&file.path, "reading a proposal", source))?;
    Ok(found.unwrap_or_default())
}

/// The instances that have open proposals, but one.
pub(super) fn owners_of_open_proposals(
    connection: &Connection,
    file: &StoreFile,
    but: &RuntimeInstanceId,
) -> Result<Vec<RuntimeInstance>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        instance_columns!(),
        " FROM runtime_instances WHERE instance_id <> ?1 \
         AND instance_id IN (SELECT instance_id FROM attempts WHERE closed_seq IS NULL) ORDER BY instance_id"
    );
    list(connection, file, SQL, params![but.as_str()], "a runtime instance", row::instance)
}

pub(super) fn instances(
    connection: &Connection,
    file: &StoreFile,
    after: Option<&RuntimeInstanceId>,
    limit: u32,
) -> Result<Vec<RuntimeInstance>, StoreError> {
    const SQL: &str =
        concat!("SELECT ", instance_columns!(), " FROM runtime_instances WHERE instance_id > ?1 ORDER BY instance_id LIMIT ?2");
    let after = after.map_or("", |id| id.as_str());
    list(connection, file, SQL, params![after, limit], "a runtime instance", row::instance)
}

/// Counts, in one read transaction, so that they are of one moment.
pub(super) fn summary(connection: &Connection, file: &StoreFile, session: Option<&SessionId>) -> Result<Summary, StoreError> {
    let read = || {
        let transaction = connection.unchecked_transaction()?;
        let key: Option<i64> = match session {
            None => None,
            Some(session) => match find_session(&transaction, session)? {
                Some((key, _)) => Some(key),
                None => return Ok(Summary::default()),
            },
        };
        let count = |sql: &str| transaction.query_row(sql, [key], |row| Ok(row::unsigned(row, 0)))?;
        let mut summary = Summary {
            sessions: count("SELECT count(*) FROM sessions WHERE next_seq > 1 AND (?1 IS NULL OR session_key = ?1)")?,
            gaps: count("SELECT count(*) FROM capture_gaps WHERE ?1 IS NULL OR session_key = ?1")?,
            open_proposals: count("SELECT count(*) FROM attempts WHERE closed_seq IS NULL AND (?1 IS NULL OR session_key = ?1)")?,
            ..Summary::default()
        };
        // Two texts, so that one session is a range of the table and not a condition on every row.
        let mut statement = transaction.prepare(match key {
            None => "SELECT kind, count(*), sum(payload_bytes) FROM signals WHERE ?1 IS NULL GROUP BY kind",
            Some(_) => "SELECT kind, count(*), sum(payload_bytes) FROM signals WHERE session_key = ?1 GROUP BY kind",
        })?;
        let mut rows = statement.query([key])?;
        while let Some(found) = rows.next()? {
            let (kind, facts) = (SignalKind::from_stored(found.get_ref(0)?.as_str()?), row::unsigned(found, 1)?);
            summary.facts += facts;
            summary.payload_bytes += row::unsigned(found, 2)?;
            summary.by_kind.insert(kind, facts);
        }
        Ok(summary)
    };
    read().map_err(|cause: RowError| cause.at(file, || "a count".to_owned()))
}

/// The key of a session and the position of its newest fact.
fn find_session(connection: &Connection, session: &SessionId) -> rusqlite::Result<Option<(i64, u64)>> {
    let sql = "SELECT session_key, next_seq - 1 FROM sessions WHERE session_id = ?1";
    let found = connection.query_row(sql, [session.as_str()], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?))).optional()?;
    Ok(found.map(|(key, last)| (key, last.max(0).cast_unsigned())))
}

/// The session of a key.
pub(super) fn session_of(connection: &Connection, key: i64) -> Result<SessionId, RowError> {
    let mut statement = connection.prepare("SELECT session_id FROM sessions WHERE session_key = ?1")?;
    let mut rows = statement.query([key])?;
    rows.next()?.map_or(Err(RowError::Unreadable("its session is missing")), |found| row::session_id(found, 0))
}

fn large_payload(connection: &Connection, key: i64, seq: SignalSeq) -> Result<String, RowError> {
    let mut statement =
        connection.prepare("SELECT bytes, digest, body FROM large_payloads WHERE session_key = ?1 AND seq = ?2")?;
    let mut rows = statement.query(params![key, seq.0.cast_signed()])?;
    rows.next()?.map_or(Err(RowError::Unreadable("its payload is missing")), row::large_payload)
}

fn position(found: &Row<'_>, session: &SessionId) -> String {
    match row::unsigned(found, 0) {
        Ok(seq) => format!("position {seq} of session {session}"),
        Err(_) => format!("an unknown position of session {session}"),
    }
}

fn list<T>(
    connection: &Connection,
    file: &StoreFile,
    sql: &str,
    values: impl rusqlite::Params,
    what: &'static str,
    read: impl Fn(&Row<'_>) -> Result<T, RowError>,
) -> Result<Vec<T>, StoreError> {
    let collect = || {
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query(values)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read(row)?);
        }
        Ok(found)
    };
    collect().map_err(|cause: RowError| cause.at(file, || what.to_owned()))
}
