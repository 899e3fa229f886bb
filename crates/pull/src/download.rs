//! One blob: lock, resume, fetch in parts, record state, hash, rename.

use std::{
    fs::{self, File, TryLockError},
    path::Path,
    sync::{
        Arc, Mutex, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    time::{Duration, Instant},
};

use rullama_store::Digest;
use sha2::{Digest as _, Sha256};

use crate::{
    PullError, PullOptions,
    error::io_error,
    fetch::{ActivePart, Transfer, Wanted},
    parts::{BlobPaths, Part, plan},
    positioned::{is_at, read_at},
    remote::{Failure, Remote},
    write::sync_folder,
};

/// The interval of checks for cancellation, completion and due state records.
const TICK: Duration = Duration::from_millis(20);
const PIECE: usize = 1 << 20;

/// The state of a download that its waiters see.
#[derive(Debug, Default)]
pub(crate) struct Status {
    pub(crate) completed: AtomicU64,
    pub(crate) verifying: AtomicBool,
    pub(crate) cancelled: AtomicBool,
}

impl Status {
    fn check(&self) -> Result<(), PullError> {
        if self.cancelled.load(Ordering::Relaxed) { Err(PullError::Cancelled) } else { Ok(()) }
    }
}

/// Downloads a blob into the store. On any error, written and recorded data is kept for the next attempt.
pub(crate) fn download(
    remote: &Arc<Remote>,
    wanted: &Wanted,
    paths: &BlobPaths,
    options: &PullOptions,
    status: &Status,
) -> Result<(), PullError> {
    fs::create_dir_all(paths.folder()).map_err(|e| io_error("create", paths.folder(), e))?;
    let Some(file) = open_locked(wanted, paths, status)? else { return Ok(()) };
    let file = Arc::new(file);
    let result = fill(remote, wanted, paths, options, status, &file);
    // Threads that still wait for bytes keep the handle, and with it the lock, for a while.
    let _ = file.unlock();
    result
}

/// Opens the data file and waits until no other process holds its lock. `None` if the blob is complete by then.
fn open_locked(
    wanted: &Wanted,
    paths: &BlobPaths,
    status: &Status,
) -> Result<Option<File>, PullError> {
    let path = paths.partial();
    loop {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|e| io_error("write", &path, e))?;
        loop {
            status.check()?;
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {
                    let parts = paths.read_parts(wanted.size).unwrap_or_default();
                    let completed = parts.iter().map(|part| part.completed).sum();
                    status.completed.store(completed, Ordering::Relaxed);
                    std::thread::sleep(TICK * 5);
                }
                // Some network drives do not support locks; Ollama uses none at all.
                Err(TryLockError::Error(_)) => break,
            }
        }
        let ours = is_at(&file, &path);
        if paths.is_complete(wanted.size) {
            if ours {
                paths.discard()?;
            }
            return Ok(None);
        }
        // Otherwise another process deleted it while we waited.
        if ours {
            return Ok(Some(file));
        }
    }
}

fn fill(
    remote: &Arc<Remote>,
    wanted: &Wanted,
    paths: &BlobPaths,
    options: &PullOptions,
    status: &Status,
    file: &Arc<File>,
) -> Result<(), PullError> {
    let mut parts = resume(wanted, paths, options, file)?;
    if parts.iter().any(|part| part.completed < part.size) {
        match transfer(remote, wanted, paths, options, status, file, parts) {
            Err(Failure::RangeIgnored) => {
                // A server without ranges: the whole file in one part.
                parts = new_parts(wanted, paths, u64::MAX, file)?;
                transfer(remote, wanted, paths, options, status, file, parts)
            }
            result => result,
        }
        .map_err(|failure| remote.explain(failure, &wanted.digest.to_string(), 1))?;
    }
    status.completed.store(wanted.size, Ordering::Relaxed);
    finish(wanted, paths, status, file)
}

/// The parts of an unfinished download, or those of a new one.
fn resume(
    wanted: &Wanted,
    paths: &BlobPaths,
    options: &PullOptions,
    file: &File,
) -> Result<Vec<Part>, PullError> {
    let path = paths.partial();
    let length = file.metadata().map_err(|e| io_error("read", &path, e))?.len();
    match paths.read_parts(wanted.size) {
        Some(parts) if length == wanted.size => Ok(parts),
        _ => fresh_parts(wanted, paths, plan(wanted.size, options.part_size), file),
    }
}

fn new_parts(
    wanted: &Wanted,
    paths: &BlobPaths,
    size: u64,
    file: &File,
) -> Result<Vec<Part>, PullError> {
    let limits = crate::PartSize { min: size, max: size };
    fresh_parts(wanted, paths, plan(wanted.size, limits), file)
}

fn fresh_parts(
    wanted: &Wanted,
    paths: &BlobPaths,
    parts: Vec<Part>,
    file: &File,
) -> Result<Vec<Part>, PullError> {
    paths.remove_states()?;
    let path = paths.partial();
    // A sparse file; the disk fills as bytes arrive.
    file.set_len(wanted.size).map_err(|e| io_error("write", &path, e))?;
    for part in &parts {
        paths.write_part(part)?;
    }
    Ok(parts)
}

/// Fetches all missing bytes with several threads, recording the state periodically.
fn transfer(
    remote: &Arc<Remote>,
    wanted: &Wanted,
    paths: &BlobPaths,
    options: &PullOptions,
    status: &Status,
    file: &Arc<File>,
    parts: Vec<Part>,
) -> Result<(), Failure> {
    let open = |part: &Part| part.completed < part.size;
    let queue = parts.iter().enumerate().filter(|(_, part)| open(part)).map(|(index, _)| index);
    let queue: std::collections::VecDeque<usize> = queue.collect();
    let threads = queue.len().min(options.parallel.max(1));
    let mut recorded = parts.clone();
    let transfer = Arc::new(Transfer {
        remote: remote.clone(),
        wanted: wanted.clone(),
        file: file.clone(),
        path: paths.partial(),
        parts: parts.into_iter().map(ActivePart::new).collect(),
        queue: Mutex::new(queue),
        closed: RwLock::new(false),
        address: Mutex::default(),
        attempts: options.attempts.max(1),
        backoff: options.backoff,
    });
    let (sender, results) = channel();
    for _ in 0..threads {
        let (transfer, sender) = (transfer.clone(), sender.clone());
        std::thread::spawn(move || {
            // After a cancellation the receiver is gone.
            let _ = sender.send(transfer.work());
        });
    }
    drop(sender);
    let result = supervise(&transfer, paths, options, status, &results, &mut recorded);
    transfer.close();
    let last = record(&transfer, paths, &mut recorded);
    result.and(last.map_err(Failure::Final))
}

/// Waits for the threads.
fn supervise(
    transfer: &Transfer,
    paths: &BlobPaths,
    options: &PullOptions,
    status: &Status,
    results: &Receiver<Result<(), Failure>>,
    recorded: &mut [Part],
) -> Result<(), Failure> {
    let mut last = Instant::now();
    loop {
        match results.recv_timeout(TICK) {
            Ok(result) => result?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if transfer.written() == transfer.wanted.size => {
                return Ok(());
            }
            // A thread ended without a result.
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::Retry(std::io::Error::other("a download thread failed")));
            }
        }
        status.check()?;
        status.completed.store(transfer.written(), Ordering::Relaxed);
        if last.elapsed() >= options.checkpoint {
            record(transfer, paths, recorded)?;
            last = Instant::now();
        }
    }
}

/// Records how much of each part is on disk: reads the counters, then syncs the data, then writes the states.
fn record(transfer: &Transfer, paths: &BlobPaths, recorded: &mut [Part]) -> Result<(), PullError> {
    let counts: Vec<u64> = transfer.parts.iter().map(ActivePart::written).collect();
    if recorded.iter().zip(&counts).all(|(part, count)| part.completed == *count) {
        return Ok(());
    }
    transfer.file.sync_data().map_err(|e| io_error("write", &transfer.path, e))?;
    for (part, count) in recorded.iter_mut().zip(counts) {
        if part.completed != count {
            part.completed = count;
            paths.write_part(part)?;
        }
    }
    Ok(())
}

/// Verifies the data and renames it to its final name.
fn finish(
    wanted: &Wanted,
    paths: &BlobPaths,
    status: &Status,
    file: &File,
) -> Result<(), PullError> {
    let path = paths.partial();
    status.verifying.store(true, Ordering::Relaxed);
    file.sync_all().map_err(|e| io_error("write", &path, e))?;
    let got = hash(file, &path, wanted.size, status)?;
    if got != wanted.digest {
        paths.discard()?;
        return Err(PullError::DigestMismatch { want: wanted.digest.clone(), got });
    }
    let blob = paths.blob();
    fs::rename(&path, &blob).map_err(|e| io_error("write", &blob, e))?;
    sync_folder(paths.folder())?;
    paths.remove_states()
}

fn hash(file: &File, path: &Path, size: u64, status: &Status) -> Result<Digest, PullError> {
    let mut hasher = Sha256::new();
    let mut piece = vec![0; PIECE];
    let mut offset = 0;
    while offset < size {
        status.check()?;
        let len = read_at(file, &mut piece, offset).map_err(|e| io_error("read", path, e))?;
        if len == 0 {
            break; // the file was truncated: its hash will not match
        }
        hasher.update(&piece[..len]);
        offset += len as u64;
    }
    Ok(crate::write::digest_of(hasher))
}
