//! Two processes on one store: models are replaced, as Ollama does, while others read.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::{Program, Row, golden, in_parallel};
use crate::command::output;

/// Two versions of a model that alternate under one name.
const VERSIONS: [&str; 2] = ["gguf/micro-e2b-Q8_0.gguf", "gguf/micro-e2b-Q4_0.gguf"];

pub(super) fn drill(program: &Program, runs: usize, report: &mut dyn FnMut(Row)) -> Result<()> {
    let folder = TempDir::new()?;
    let store = Store::new(folder.path())?;
    store.point_at(0)?;
    let done = AtomicBool::new(false);
    let rows = thread::scope(|scope| -> Result<[Row; 3]> {
        let writer = scope.spawn(|| -> Result<()> {
            for version in (0..VERSIONS.len()).cycle() {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                store.point_at(version)?;
                thread::sleep(Duration::from_millis(3));
            }
            Ok(())
        });
        let read = |args: &[&str]| -> Result<()> {
            let all = [&["--store", "."], args].concat();
            program.succeeds(folder.path(), &all, "").map(|_| ())
        };
        let listed = in_parallel(runs, |_| read(&["list"]));
        let verified = in_parallel(runs, |_| read(&["verify", "gemma4:drill"]));
        let replied = in_parallel(runs, |_| {
            read(&["run", "gemma4:drill", "Hi", "--device", "cpu", "--num-predict", "2"])
        });
        done.store(true, Ordering::Relaxed);
        writer.join().expect("the writer panicked").context("writing the store")?;
        Ok([("list", listed), ("verify", verified), ("run", replied)].map(|(command, attempts)| {
            Row::of(format!("`{command}` while another process replaces the model"), attempts)
        }))
    })?;
    rows.into_iter().for_each(report);
    let left = fs::read_dir(folder.path())?.count();
    ensure!(left == 2, "the store has {left} entries instead of blobs and manifests");
    Ok(())
}

struct Store<'a> {
    folder: &'a Path,
    manifests: Vec<String>,
}

impl<'a> Store<'a> {
    /// Writes the blobs of both versions, and prepares their manifests.
    fn new(folder: &'a Path) -> Result<Self> {
        fs::create_dir_all(folder.join("blobs"))?;
        fs::create_dir_all(folder.join("manifests/registry.ollama.ai/library/gemma4"))?;
        let mut manifests = Vec::new();
        for version in VERSIONS {
            let bytes = fs::read(golden(version))?;
            let config = b"{}".to_vec();
            let (model, config) = (blob(folder, &bytes)?, blob(folder, &config)?);
            let layer = |digest: &str, size: usize, kind: &str| {
                serde_json::json!({
                    "mediaType": format!("application/vnd.ollama.image.{kind}"),
                    "digest": format!("sha256:{digest}"), "size": size,
                })
            };
            let mut config = layer(&config, 2, "config");
            config["mediaType"] = "application/vnd.docker.container.image.v1+json".into();
            manifests.push(
                serde_json::json!({
                    "schemaVersion": 2,
                    "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
                    "config": config,
                    "layers": [layer(&model, bytes.len(), "model")],
                })
                .to_string(),
            );
        }
        Ok(Self { folder, manifests })
    }

    /// Replaces the manifest atomically.
    fn point_at(&self, version: usize) -> Result<()> {
        let folder = self.folder.join("manifests/registry.ollama.ai/library/gemma4");
        let part = tempfile::NamedTempFile::new()?;
        fs::write(part.path(), &self.manifests[version])?;
        part.persist(folder.join("drill")).context("the manifest could not be replaced")?;
        Ok(())
    }
}

/// Writes a blob under its digest and returns the digest.
fn blob(folder: &Path, bytes: &[u8]) -> Result<String> {
    let draft = folder.join("blobs/draft");
    fs::write(&draft, bytes)?;
    let sum = output("sha256sum", &[&draft.display().to_string()])?;
    let digest = sum.split_whitespace().next().context("no digest")?.to_owned();
    fs::rename(&draft, folder.join("blobs").join(format!("sha256-{digest}")))?;
    Ok(digest)
}
