//! `tipstaff replay`: transcripts through the three planes, and what came of it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use tipstaff_core::clock::Deadline;
use tipstaff_core::declare::Digest;
use tipstaff_core::guard::{Policy, PolicyError};
use tipstaff_core::state::{Durability, JournalReader, SqliteOptions, SqliteStore, StoreError, StoreSize, Summary};
use tipstaff_core::transcript::TranscriptError;

use super::args::{Global, ReplayArgs};
use super::exit::Exit;
use super::output::{self, Paint};
use super::{files, replay_json, replay_text};
use crate::guards::policy_plan;
use crate::replay::{Decisions, Replay, ReplayError, Replayed};
use crate::runtime::{Runtime, RuntimeError};

/// How long the runtime may take to stop.
const STOP: Duration = Duration::from_secs(30);

/// Runs the command.
pub(super) fn run(
    global: &Global,
    args: ReplayArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
    open: impl FnOnce(&Path, SqliteOptions) -> Result<SqliteStore, StoreError>,
) -> Result<Exit, Failed> {
    let paths = files::transcripts(&args.paths).map_err(|(path, source)| Failed::Path { path, source })?;
    let policy = args.policy.as_deref().map(read_policy).transpose()?;
    // The temporary store lives as long as this value.
    let temporary = if global.db.is_none() { Some(tempfile::tempdir().map_err(Failed::Temporary)?) } else { None };
    let (db, options) = match (&global.db, &temporary) {
        (Some(db), _) => (db.clone(), SqliteOptions::default()),
        (None, Some(folder)) => (folder.path().join("replay.db"), SqliteOptions::default().durability(Durability::ProcessCrash)),
        (None, None) => unreachable!("a command without --db has a temporary folder"),
    };
    let store = open(&db, options)?;
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_time().build().map_err(Failed::Tokio)?;
    tokio.block_on(async {
        let digest = policy.as_ref().map(|policy| policy.digest());
        let runtime = start(store, policy.as_ref()).await?;
        let ran = replay(&runtime, &paths, digest, err).await;
        let written = match ran {
            Ok(ran) => write(global, &args, &runtime, &ran, digest, out, err),
            Err(failed) => Err(failed),
        };
        let stopped = runtime.shutdown(Deadline::after(STOP)).await;
        let exit = written?;
        stopped.map_err(|_still_alive| Failed::Stop)?;
        Ok(exit)
    })
}

fn read_policy(path: &Path) -> Result<Arc<Policy>, Failed> {
    let text = fs::read_to_string(path).map_err(|source| Failed::Path { path: path.to_owned(), source })?;
    Ok(Arc::new(Policy::parse(&text, &path.display().to_string())?))
}

async fn start(store: SqliteStore, policy: Option<&Arc<Policy>>) -> Result<Runtime, Failed> {
    let builder = Runtime::builder().store(store).program("tipstaff replay");
    let builder = match policy {
        Some(policy) => builder.actions(policy_plan("replay", policy).map_err(RuntimeError::from)?),
        None => builder,
    };
    Ok(builder.spawn().await?)
}

/// What was replayed, and what was refused.
pub(super) struct Ran {
    pub(super) files: Vec<(PathBuf, Replayed)>,
    pub(super) refused: Vec<(PathBuf, String)>,
}

async fn replay(runtime: &Runtime, paths: &[PathBuf], digest: Option<Digest>, err: &mut dyn Write) -> Result<Ran, Failed> {
    let replay = Replay::new(runtime.clone(), digest);
    let bar = progress(paths.len());
    let mut ran = Ran { files: Vec::new(), refused: Vec::new() };
    for path in paths {
        bar.set_message(path.display().to_string());
        match replay.file(path, |line| bar.set_prefix(format!("line {line}"))).await {
            Ok(replayed) => ran.files.push((path.clone(), replayed)),
            Err(ReplayError::Transcript(error @ (TranscriptError::Read { .. } | TranscriptError::Open { .. }))) => {
                refuse(&mut ran, path, &error, err)?;
            }
            Err(ReplayError::Transcript(error)) => refuse(&mut ran, path, &error, err)?,
            Err(error @ (ReplayError::Identity(_) | ReplayError::Signal(_))) => refuse(&mut ran, path, &error, err)?,
            Err(error) => return Err(error.into()),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(ran)
}

/// A refused file is told at once; the others are replayed all the same.
fn refuse(ran: &mut Ran, path: &Path, error: &dyn std::error::Error, err: &mut dyn Write) -> Result<(), Failed> {
    let text = output::chain(error);
    writeln!(err, "tipstaff: {text}")?;
    ran.refused.push((path.to_owned(), text));
    Ok(())
}

/// A bar on standard error, if that is a terminal.
fn progress(files: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(files as u64), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg} {prefix}").expect("the literal is a template");
    bar.set_style(style);
    bar
}

/// What the journal says after the run.
#[derive(Serialize)]
pub(super) struct JournalReport {
    /// The file, if the user named one.
    pub(super) db: Option<String>,
    pub(super) sessions: u64,
    pub(super) facts: u64,
    pub(super) payload_bytes: u64,
    pub(super) file_bytes: u64,
    pub(super) gaps: u64,
    pub(super) open_proposals: u64,
    /// Facts of this run that are not in the journal.
    pub(super) lost: u64,
    pub(super) by_kind: std::collections::BTreeMap<String, u64>,
}

impl JournalReport {
    fn read(global: &Global, runtime: &Runtime, lost: u64) -> Result<Self, Failed> {
        let reader = runtime.reader().expect("a replay has a store");
        let Summary { sessions, facts, payload_bytes, gaps, open_proposals, by_kind } = reader.summary(None)?;
        let StoreSize { file_bytes, wal_bytes } = runtime.store().expect("a replay has a store").size()?;
        Ok(Self {
            db: global.db.as_ref().map(|db| db.display().to_string()),
            sessions,
            facts,
            payload_bytes,
            file_bytes: file_bytes + wal_bytes,
            gaps,
            open_proposals,
            lost,
            by_kind: by_kind.into_iter().map(|(kind, count)| (kind.to_string(), count)).collect(),
        })
    }
}

/// Everything that a report is made of. The decisions are read while they are written, so that no list of them is held.
pub(super) struct Report<'r> {
    pub(super) ran: &'r Ran,
    pub(super) journal: JournalReport,
    pub(super) reader: &'r dyn JournalReader,
    pub(super) policy: Option<Digest>,
}

impl Report<'_> {
    pub(super) fn decisions(&self, file: &Replayed) -> Decisions<'_> {
        Decisions::of(self.reader, file.session.clone(), self.policy)
    }
}

fn write(
    global: &Global,
    args: &ReplayArgs,
    runtime: &Runtime,
    ran: &Ran,
    policy: Option<Digest>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, Failed> {
    let lost = ran.files.iter().map(|(_, file)| file.lost).sum();
    let journal = JournalReport::read(global, runtime, lost)?;
    let report = Report { ran, journal, reader: &**runtime.reader().expect("a replay has a store"), policy };
    let denied = if global.json {
        replay_json::write(&report, out)?
    } else {
        replay_text::write(&report, Paint::new(global.color), out)?
    };
    out.flush()?;
    if lost > 0 {
        writeln!(err, "tipstaff: the journal did not take {lost} facts, so what is shown is not all that happened; run with -v to see why")?;
        return Ok(Exit::StoreUnavailable);
    }
    Ok(match (ran.refused.is_empty(), args.fail_on_deny && denied) {
        (false, _) => Exit::Refused,
        (true, true) => Exit::Found,
        (true, false) => Exit::Done,
    })
}

/// Why the command could not be done.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    #[error("{}", path.display())]
    Path { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error("no temporary folder for the journal: name a store with --db")]
    Temporary(#[source] io::Error),
    #[error("the asynchronous runtime did not start")]
    Tokio(#[source] io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    #[error(transparent)]
    Replay(#[from] ReplayError),
    #[error("the runtime did not stop in time")]
    Stop,
    #[error("the output cannot be written")]
    Output(#[from] io::Error),
    #[error("the output cannot be written")]
    Json(#[from] serde_json::Error),
}

impl Failed {
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Path { .. } | Self::Policy(_) | Self::Output(_) | Self::Json(_) => Exit::Refused,
            Self::Temporary(_) | Self::Tokio(_) | Self::Store(_) | Self::Runtime(_) | Self::Replay(_) | Self::Stop => {
                Exit::StoreUnavailable
            }
        }
    }

    pub(super) fn is_broken_pipe(&self) -> bool {
        match self {
            Self::Output(error) => error.kind() == io::ErrorKind::BrokenPipe,
            Self::Json(error) => error.io_error_kind() == Some(io::ErrorKind::BrokenPipe),
            _ => false,
        }
    }
}
