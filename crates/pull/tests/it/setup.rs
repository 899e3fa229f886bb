//! A store with a puller, and assertions on the store.

use std::{
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::Duration,
};

use rullama_pull::{PartSize, Progress, PullError, PullOptions, Pulled, Puller};
use rullama_store::{Digest, ModelName, Store};
use tempfile::TempDir;

pub(crate) const PART: u64 = 128 << 10;

pub(crate) struct Setup {
    folder: TempDir,
    pub(crate) puller: Puller,
}

pub(crate) fn options() -> PullOptions {
    PullOptions {
        insecure: true,
        backoff: Duration::from_millis(5),
        // Longer than a busy machine needs to respond.
        stall: Duration::from_secs(10),
        checkpoint: Duration::from_millis(5),
        part_size: PartSize { min: PART, max: PART },
        ..PullOptions::default()
    }
}

/// For servers that stall.
pub(crate) fn impatient() -> PullOptions {
    PullOptions { stall: Duration::from_millis(400), ..options() }
}

impl Setup {
    pub(crate) fn new() -> Self {
        Self::with(options())
    }

    pub(crate) fn with(options: PullOptions) -> Self {
        let folder = TempDir::new().unwrap();
        let puller = Puller::new(folder.path().join("models"), options);
        Self { folder, puller }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("models")
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(self.root()).unwrap()
    }

    pub(crate) fn pull(&self, name: &ModelName) -> Result<Pulled, PullError> {
        self.puller.pull(name, &mut |_| ControlFlow::Continue(()))
    }

    /// Pulls and returns the status lines without repetitions.
    pub(crate) fn pull_lines(&self, name: &ModelName) -> Vec<String> {
        let mut lines = Vec::new();
        let mut on_progress = |progress: Progress| {
            lines.extend(progress.status());
            ControlFlow::Continue(())
        };
        self.puller.pull(name, &mut on_progress).unwrap();
        lines.dedup();
        lines
    }

    pub(crate) fn blob(&self, content: &[u8]) -> PathBuf {
        self.root().join("blobs").join(format!("sha256-{}", Digest::of(content).hex()))
    }

    pub(crate) fn partial(&self, content: &[u8]) -> PathBuf {
        let name = format!("sha256-{}-partial", Digest::of(content).hex());
        self.root().join("blobs").join(name)
    }

    /// The names of all files in the blobs folder.
    pub(crate) fn blobs(&self) -> Vec<String> {
        names(&self.root().join("blobs"))
    }

    /// Checks that the store holds `name` with these weights and no partial files.
    pub(crate) fn assert_whole(&self, name: &ModelName, weights: &[u8]) {
        let files = self.store().resolve(name).unwrap();
        assert!(fs::read(&files.model.path).unwrap() == weights, "other bytes than published");
        for layer in &files.blobs {
            rullama_store::verify(
                &layer.path,
                &layer.digest,
                &mut |_, _| ControlFlow::Continue(()),
            )
            .unwrap();
        }
        let strange = |name: &String| name.len() != "sha256-".len() + 64;
        assert_eq!(self.blobs().into_iter().filter(strange).collect::<Vec<_>>(), [] as [&str; 0]);
        let hidden = |name: &String| name.starts_with('.');
        assert!(!names(&self.root().join("manifests")).iter().any(hidden));
    }

    /// Checks that Ollama sees no model.
    pub(crate) fn assert_no_model(&self) {
        if self.root().is_dir() {
            assert!(self.store().list().entries.is_empty());
        }
    }
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
