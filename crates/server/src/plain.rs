//! Files the user named: served like blobs, but they may change while we run.

use std::{
    fs::{self, File, Metadata},
    io,
    sync::Arc,
    time::SystemTime,
};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rullama_source::{ByteSource, FileSource};
use rullama_store::Digest;
use serde_json::Map;

use crate::{
    PlainFile, ServerError,
    catalog::{LayerRow, ModelRow, rfc3339},
    content::{Content, regular_file},
    facts::{Facts, HeaderError},
    served,
};

/// Larger files would take too long to hash at the start.
const MAX_HASHED: u64 = 256 << 20;

/// Left as they are in a path.
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A file as it was found at the start.
#[derive(Debug)]
pub(crate) struct ServedFile {
    file: PlainFile,
    file_name: String,
    facts: Facts,
    digest: Option<Digest>,
    stamp: Stamp,
}

/// What a change of a file changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self { len: metadata.len(), modified: metadata.modified().ok() }
    }

    fn etag(self) -> String {
        let since = self.modified.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        format!("\"{:x}-{:x}\"", self.len, since.map_or(0, |since| since.as_nanos()))
    }
}

impl ServedFile {
    /// Checks that the file holds a model we serve, and hashes it where that is quick.
    pub(crate) fn open(file: PlainFile) -> Result<Self, ServerError> {
        let path = &file.path;
        let facts = Facts::of_file(path).map_err(|error| match error {
            HeaderError::Source(source) => source.into(),
            HeaderError::Gguf(source) => ServerError::Gguf { path: path.clone(), source },
        })?;
        if !facts.is_served() {
            let architecture = facts.architecture;
            return Err(ServerError::OtherFamily { path: path.clone(), architecture });
        }
        let stopped = |source| ServerError::Stopped { source };
        let stamp = Stamp::of(&fs::metadata(path).map_err(stopped)?);
        let digest = (stamp.len <= MAX_HASHED).then(|| hash(path)).transpose()?;
        let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { file, file_name, facts, digest, stamp })
    }

    pub(crate) fn name(&self) -> &str {
        &self.file.name
    }

    /// Whether a request for a model means this file; the tag `latest` may be left out.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        let bare = name.strip_suffix(":latest").unwrap_or(name);
        [name, bare].iter().any(|name| self.file.name.eq_ignore_ascii_case(name))
    }

    /// Whether `/rullama/files/<name>/<file name>` means this file.
    pub(crate) fn is_called(&self, name: &str, file_name: &str) -> bool {
        self.file.name == name && self.file_name == file_name
    }

    /// Its bytes as they are now.
    pub(crate) fn content(&self) -> io::Result<Content> {
        regular_file(&self.file.path)?;
        let file = File::open(&self.file.path)?;
        let stamp = Stamp::of(&file.metadata()?);
        let etag = match self.digest_at(stamp) {
            Some(digest) => format!("\"sha256-{}\"", digest.hex()),
            None => stamp.etag(),
        };
        // The name may mean other bytes tomorrow.
        Ok(Content { file, len: stamp.len, etag, cache: "private, no-cache" })
    }

    /// Its place in the list of models.
    pub(crate) fn row(&self) -> ModelRow {
        let metadata = regular_file(&self.file.path);
        let stamp = metadata.as_ref().map_or(self.stamp, Stamp::of);
        let modified = stamp.modified.and_then(rfc3339);
        let name = self.file.name.clone();
        let mut row = ModelRow {
            name,
            modified,
            size: stamp.len,
            layers: vec![],
            parameters: Map::new(),
            system: None,
            error: None,
            time: stamp.modified,
            model: None,
        };
        if let Err(error) = metadata {
            let path = self.file.path.display();
            row.error =
                Some(format!("cannot read {path}: {error}; restore it, or restart without it"));
            return row;
        }
        let digest = self.digest_at(stamp);
        row.layers.push(LayerRow {
            kind: "model",
            digest: digest.map(Digest::to_string),
            size: stamp.len,
            url: self.url(),
        });
        row.model = Some(Arc::new(served::of_file(
            &self.file,
            stamp.modified,
            digest,
            stamp.len,
            &self.facts,
        )));
        row
    }

    /// The digest, unless the file is another one by now.
    fn digest_at(&self, stamp: Stamp) -> Option<&Digest> {
        self.digest.as_ref().filter(|_| stamp == self.stamp)
    }

    fn url(&self) -> String {
        let encode = |text| utf8_percent_encode(text, IN_PATH);
        format!("/rullama/files/{}/{}", encode(&self.file.name), encode(&self.file_name))
    }
}

fn hash(path: &std::path::Path) -> Result<Digest, ServerError> {
    let source = FileSource::open(path)?;
    let bytes = pollster::block_on(source.read(0..source.len()))?;
    Ok(Digest::of(&bytes))
}
