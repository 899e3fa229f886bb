//! `cargo xtask drill`: what survives when processes are interrupted or killed, disks are full and clients misbehave. Each
//! drill prints a row of what was tried and what survived.

mod conversations;
mod download;
mod exits;
mod files;
mod program;
mod serve;
mod store;

use std::{
    hash::{BuildHasher, RandomState},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context, Result, bail};

pub(crate) use program::Program;

use crate::{
    command::{root, say},
    test,
};

/// One row of the report.
#[derive(Debug)]
pub(crate) struct Row {
    /// The scenario.
    pub(crate) what: String,
    /// Number of attempts.
    pub(crate) tried: usize,
    /// Number of attempts with the expected result.
    pub(crate) survived: usize,
    /// The first failure, or why nothing was tried.
    pub(crate) note: String,
}

impl Row {
    /// A row of these attempts.
    pub(crate) fn of(what: impl Into<String>, attempts: Vec<Result<()>>) -> Self {
        let tried = attempts.len();
        let mut failures = attempts.into_iter().filter_map(Result::err).peekable();
        let note = failures.peek().map(|error| format!("{error:#}")).unwrap_or_default();
        Self { what: what.into(), tried, survived: tried - failures.count(), note }
    }

    /// A row of a drill that this machine does not allow.
    fn not_tried(what: &str, why: &str) -> Self {
        Self { what: what.into(), tried: 0, survived: 0, note: format!("not tried: {why}") }
    }
}

/// The drills by name.
const ALL: [(&str, Drill); 7] = [
    ("exits", exits::drill),
    ("kill", files::kill),
    ("disk", files::disk_full),
    ("serve", serve::drill),
    ("store", store::drill),
    ("memory", conversations::drill),
    (DOWNLOAD, download::drill),
];

/// Excluded from the ordinary tests, which run these end-to-end tests with all others of the storage.
const DOWNLOAD: &str = "download";

/// Runs the given number of attempts and passes each row to the callback.
type Drill = fn(&Program, usize, &mut dyn FnMut(Row)) -> Result<()>;

/// Attempts of each kind unless `--runs` says otherwise, and in the ordinary tests.
const RUNS: usize = 50;
const SHORT: usize = 2;

/// `cargo xtask drill [NAME…] [--runs N] [--program FILE] [--device cpu|gpu]`
pub(crate) fn drill(options: &[&str]) -> Result<()> {
    let (mut names, mut runs, mut program, mut device) = (Vec::new(), RUNS, None, "gpu");
    let mut options = options.iter().copied();
    while let Some(option) = options.next() {
        let mut value = || options.next().with_context(|| format!("{option} needs a value"));
        match option {
            "--runs" => runs = value()?.parse().context("--runs takes a number")?,
            "--program" => program = Some(std::fs::canonicalize(value()?)?),
            "--device" => device = value()?,
            name if ALL.iter().any(|(known, _)| *known == name) => names.push(name),
            other => bail!("unknown drill or option `{other}`; drills: {}", known()),
        }
    }
    let program = match program {
        Some(path) => path,
        None => PathBuf::from(test::program()?),
    };
    let program = Program { path: program, device: device.into(), variables: vec![] };
    report(&rows(&program, runs, &names)?)
}

/// All drills but `download`, short enough for every test run, with environment variables that select a software GPU.
pub(crate) fn short(variables: &[(&'static str, String)]) -> Result<()> {
    let path = test::program()?.into();
    let program = Program { path, device: "gpu".into(), variables: variables.to_vec() };
    let names: Vec<_> =
        ALL.iter().map(|(name, _)| *name).filter(|name| *name != DOWNLOAD).collect();
    report(&rows(&program, SHORT, &names)?)
}

/// Runs these drills, or all.
pub(crate) fn rows(program: &Program, runs: usize, names: &[&str]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, drill) in ALL.iter().filter(|(name, _)| names.is_empty() || names.contains(name)) {
        say(&format!("\ndrill {name}"));
        drill(program, runs, &mut |row| {
            say(&format!("  {}: {} of {} {}", row.what, row.survived, row.tried, row.note));
            rows.push(row);
        })
        .with_context(|| format!("drill {name}"))?;
    }
    Ok(rows)
}

/// Prints the table; fails if anything did not survive.
fn report(rows: &[Row]) -> Result<()> {
    say(&table(rows));
    let lost: usize = rows.iter().map(|row| row.tried - row.survived).sum();
    if lost > 0 {
        bail!("{lost} attempts did not survive");
    }
    Ok(())
}

/// The rows in Markdown, for a terminal and for an issue.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = String::from("| tried | times | survived | note |\n| --- | --- | --- | --- |\n");
    for Row { what, tried, survived, note } in rows {
        let note = note.replace(['\n', '|'], " ");
        text.push_str(&format!("| {what} | {tried} | {survived} | {} |\n", note.trim()));
    }
    text
}

fn known() -> String {
    ALL.map(|(name, _)| name).join(", ")
}

/// A golden file.
fn golden(name: &str) -> String {
    root().join("goldens").join(name).display().to_string()
}

/// A random delay up to `max`.
fn moment(max: Duration) -> Duration {
    let random = (RandomState::new().hash_one(0) % 10_000) as f64 / 10_000.0;
    max.mul_f64(random)
}

/// Calls `attempt` `runs` times, on one thread per core.
fn in_parallel(runs: usize, attempt: impl Fn(usize) -> Result<()> + Sync) -> Vec<Result<()>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(runs.max(1));
    let next = std::sync::atomic::AtomicUsize::new(0);
    let worker = || {
        let mut outcomes = Vec::new();
        loop {
            let run = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if run >= runs {
                return outcomes;
            }
            outcomes.push(attempt(run));
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a drill panicked")).collect()
    })
}
