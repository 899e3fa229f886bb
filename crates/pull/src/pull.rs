//! Pulls a model: fetches the manifest and the blobs, then writes the manifest to the store.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, channel},
    },
    time::Duration,
};

use rullama_store::{Digest, ModelName};
use ureq::http::Uri;

use crate::{
    OnProgress, Progress, PullError, PullOptions,
    download::download,
    fetch::Wanted,
    hub,
    join::Downloads,
    manifest::{Blob, MANIFEST_TYPE, MAX_BYTES, Manifest},
    options::is_hugging_face,
    parts::BlobPaths,
    progress::report,
    remote::{FetchedResponse, Remote, RequestSpec},
    write::{install, stored_name},
};

/// How often to restart when another process deletes blobs that we need.
const ROUNDS: usize = 3;

/// Pulls models into one store. Clones share their downloads: two pulls of one blob download it once.
#[derive(Debug, Clone)]
pub struct Puller {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    root: PathBuf,
    options: PullOptions,
    downloads: Arc<Downloads>,
}

/// A model that was pulled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pulled {
    /// The name it is stored under.
    pub name: ModelName,
    /// Its id: the digest of its manifest.
    pub id: Digest,
}

impl Puller {
    /// Pulls into the store at `root`, which is created with the first model.
    pub fn new(root: impl Into<PathBuf>, options: PullOptions) -> Self {
        let (root, downloads) = (root.into(), Arc::default());
        Self { shared: Arc::new(Shared { root, options, downloads }) }
    }

    /// The same store and downloads with other options, such as those of one request.
    #[must_use]
    pub fn with_options(&self, options: PullOptions) -> Self {
        let Shared { root, downloads, .. } = &*self.shared;
        Self {
            shared: Arc::new(Shared { root: root.clone(), options, downloads: downloads.clone() }),
        }
    }

    /// Its options.
    pub fn options(&self) -> &PullOptions {
        &self.shared.options
    }

    /// Its store.
    pub fn root(&self) -> &Path {
        &self.shared.root
    }

    /// Pulls `name`. `on_progress` is called at least every 100 ms or so, on this thread.
    ///
    /// # Errors
    /// After any error, the data downloaded so far is kept, and the next pull resumes there. Only data with a wrong digest is
    /// deleted.
    pub fn pull(&self, name: &ModelName, on_progress: OnProgress<'_>) -> Result<Pulled, PullError> {
        report(on_progress, Progress::PullingManifest)?;
        let remote = Remote::new(self.options(), name)?;
        let stored = stored_name(self.root(), &canonical(name)?)?;
        let first = self.pull_registry(&remote, name, &stored, on_progress);
        match first {
            Err(error) if is_hugging_face(name) && hub::may_know_better(&error) => {
                hub::pull(self, &remote, name, &stored, on_progress, error)
            }
            result => result,
        }
    }

    /// Pulls from a server with the registry protocol.
    fn pull_registry(
        &self,
        remote: &Arc<Remote>,
        name: &ModelName,
        stored: &ModelName,
        on_progress: OnProgress<'_>,
    ) -> Result<Pulled, PullError> {
        let repository = format!("/v2/{}/{}", name.namespace(), name.model());
        let uri = remote.at(&format!("{repository}/manifests/{}", name.tag()))?;
        let response = fetch(remote, uri, Some(MANIFEST_TYPE), MAX_BYTES, "manifest", on_progress)?;
        match response.status {
            200 => {}
            404 => return Err(PullError::NotFound { name: name.to_string() }),
            _ => return Err(remote.refused("the manifest", &response)),
        }
        let manifest = Manifest::parse(&name.to_string(), &response.body)?;
        for _ in 0..ROUNDS {
            for blob in manifest.blobs() {
                let origin = remote.at(&format!("{repository}/blobs/{}", blob.digest))?;
                self.get_blob(remote, blob, origin, on_progress)?;
            }
            report(on_progress, Progress::Verifying)?;
            let id = install(self.root(), stored, &manifest, &response.body, on_progress)?;
            if let Some(id) = id {
                return Ok(Pulled { name: stored.clone(), id });
            }
        }
        let problem = "another process keeps deleting its blobs".into();
        Err(PullError::BadManifest { name: name.to_string(), problem })
    }

    /// Downloads a blob, unless it is in the store.
    pub(crate) fn get_blob(
        &self,
        remote: &Arc<Remote>,
        blob: &Blob,
        origin: Uri,
        on_progress: OnProgress<'_>,
    ) -> Result<(), PullError> {
        let paths = BlobPaths::new(self.root(), &blob.digest);
        let (digest, total) = (blob.digest.clone(), blob.size);
        if paths.is_complete(total) {
            paths.remove_leftovers();
            return report(on_progress, Progress::Layer { digest, total, completed: total });
        }
        let wanted = Wanted { digest, size: total, origin };
        let (remote, shared) = (remote.clone(), self.shared.clone());
        self.shared.downloads.get(&blob.digest, total, on_progress, move |status| {
            download(&remote, &wanted, &paths, &shared.options, status)
        })
    }
}

/// The name to store a model under: Hugging Face has two hosts.
fn canonical(name: &ModelName) -> Result<ModelName, PullError> {
    if !is_hugging_face(name) {
        return Ok(name.clone());
    }
    Ok(format!("hf.co/{}/{}:{}", name.namespace(), name.model(), name.tag()).parse()?)
}

/// Fetches a small file on another thread, so that the caller can cancel meanwhile.
pub(crate) fn fetch(
    remote: &Arc<Remote>,
    uri: Uri,
    accept: Option<&'static str>,
    max: u64,
    what: &str,
    on_progress: OnProgress<'_>,
) -> Result<FetchedResponse, PullError> {
    let (thread_remote, thread_what) = (remote.clone(), what.to_owned());
    in_background(on_progress, move || {
        let spec = RequestSpec { accept, what: &thread_what, ..RequestSpec::default() };
        thread_remote.fetch(&uri, spec, max)
    })
    .unwrap_or_else(|| Err(remote.bad_response(what, "the request failed")))
}

/// Runs `work` on another thread and reports [`Progress::Waiting`]; `None` if it panics.
pub(crate) fn in_background<T: Send + 'static>(
    on_progress: OnProgress<'_>,
    work: impl FnOnce() -> Result<T, PullError> + Send + 'static,
) -> Option<Result<T, PullError>> {
    let (sender, result) = channel();
    std::thread::spawn(move || {
        // After a cancellation the receiver is gone.
        let _ = sender.send(work());
    });
    loop {
        match result.recv_timeout(Duration::from_millis(60)) {
            Ok(result) => return Some(result),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                if let Err(cancelled) = report(on_progress, Progress::Waiting) {
                    return Some(Err(cancelled));
                }
            }
        }
    }
}
