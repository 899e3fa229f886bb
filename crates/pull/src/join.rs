//! Downloads that several callers may wait for: a second pull of a blob joins the first.

use std::{
    collections::HashMap,
    sync::{Arc, Condvar, Mutex, atomic::Ordering},
    time::Duration,
};

use rullama_store::Digest;

use crate::{OnProgress, Progress, PullError, download::Status, progress::report, remote::lock};

/// The interval of progress reports.
const REPORT: Duration = Duration::from_millis(60);

/// Active downloads by digest.
#[derive(Debug, Default)]
pub(crate) struct Downloads {
    active: Mutex<HashMap<String, Arc<Download>>>,
}

/// An active download.
#[derive(Debug, Default)]
struct Download {
    status: Status,
    /// The number of waiting callers; guarded by the lock of the map.
    waiters: Mutex<usize>,
    result: Mutex<Option<Result<(), PullError>>>,
    ended: Condvar,
}

/// Ends a download for its waiters, even if its thread panics.
struct Ending {
    downloads: Arc<Downloads>,
    download: Arc<Download>,
    key: String,
    result: Result<(), PullError>,
}

impl Ending {
    fn end(mut self, result: Result<(), PullError>) {
        self.result = result;
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        lock(&self.downloads.active).remove(&self.key);
        *lock(&self.download.result) = Some(self.result.clone());
        self.download.ended.notify_all();
    }
}

impl Downloads {
    /// Waits until the blob `digest` of `total` bytes is in the store; `start` downloads it, unless a download is active.
    pub(crate) fn get(
        self: &Arc<Self>,
        digest: &Digest,
        total: u64,
        on_progress: OnProgress<'_>,
        start: impl FnOnce(&Status) -> Result<(), PullError> + Send + 'static,
    ) -> Result<(), PullError> {
        let key = digest.hex().to_ascii_lowercase();
        let mut start = Some(start);
        let download = loop {
            if let Some(download) = self.enter(&key, &mut start) {
                break download;
            }
            // An earlier download is being cancelled.
            report(on_progress, Progress::Waiting)?;
            std::thread::sleep(REPORT);
        };
        let outcome = wait(&download, digest, total, on_progress);
        let last = {
            let _map = lock(&self.active);
            let mut waiters = lock(&download.waiters);
            *waiters -= 1;
            *waiters == 0
        };
        if last && outcome.is_none() {
            download.status.cancelled.store(true, Ordering::Relaxed);
            // Waits until the download has recorded its state.
            let mut result = lock(&download.result);
            while result.is_none() {
                result =
                    download.ended.wait(result).unwrap_or_else(std::sync::PoisonError::into_inner);
            }
        }
        outcome.unwrap_or(Err(PullError::Cancelled))
    }

    /// Joins the download of `key`, or starts it. `None` while one is being cancelled.
    fn enter<F>(self: &Arc<Self>, key: &str, start: &mut Option<F>) -> Option<Arc<Download>>
    where
        F: FnOnce(&Status) -> Result<(), PullError> + Send + 'static,
    {
        let mut active = lock(&self.active);
        if let Some(download) = active.get(key) {
            let mut waiters = lock(&download.waiters);
            if *waiters == 0 {
                return None;
            }
            *waiters += 1;
            return Some(download.clone());
        }
        let start = start.take()?;
        let download = Arc::new(Download { waiters: Mutex::new(1), ..Download::default() });
        active.insert(key.to_owned(), download.clone());
        let ending = Ending {
            downloads: self.clone(),
            download: download.clone(),
            key: key.to_owned(),
            result: Err(PullError::Cancelled),
        };
        std::thread::spawn(move || {
            let result = start(&ending.download.status);
            ending.end(result);
        });
        Some(download)
    }
}

/// Reports progress until the download ends; `None` if the caller cancels.
fn wait(
    download: &Download,
    digest: &Digest,
    total: u64,
    on_progress: OnProgress<'_>,
) -> Option<Result<(), PullError>> {
    let layer = |completed| Progress::Layer { digest: digest.clone(), total, completed };
    let mut verifying = false;
    let mut last = None;
    loop {
        let completed = download.status.completed.load(Ordering::Relaxed).min(total);
        let progress = if last != Some(completed) {
            last = Some(completed);
            layer(completed)
        } else if download.status.verifying.load(Ordering::Relaxed) && !verifying {
            verifying = true;
            Progress::Verifying
        } else {
            Progress::Waiting
        };
        if report(on_progress, progress).is_err() {
            return None;
        }
        let result = lock(&download.result);
        let (result, _) = download
            .ended
            .wait_timeout_while(result, REPORT, |result| result.is_none())
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(result) = result.clone() {
            if result.is_ok() && last != Some(total) && report(on_progress, layer(total)).is_err() {
                return None;
            }
            return Some(result);
        }
    }
}
