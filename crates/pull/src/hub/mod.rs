//! Repositories on Hugging Face, read through the hub's API if the registry protocol fails.

mod choose;

use std::{collections::HashMap, sync::Arc};

use rullama_store::{Digest, ModelName};
use serde::Deserialize;
use serde_json::{Map, Value};
use ureq::http::{HeaderName, header};

use self::choose::{Choice, choose};
use crate::{
    OnProgress, Progress, PullError, Pulled, Puller,
    facts::Facts,
    headers::{etag_digest, next_link, number, text},
    manifest::Blob,
    parts::BlobPaths,
    progress::report,
    pull::{fetch, in_background},
    remote::{FetchedResponse, Remote, RequestSpec, encode},
    write::{CreateRequest, Recipe, compose},
};

const MAX_LISTING: u64 = 16 << 20;
const MAX_PAGES: usize = 50;
const MAX_TEXT: u64 = 8 << 20;
const MAX_FILE: u64 = 1 << 43;

/// A file of a repository.
#[derive(Debug, Clone, Default, Deserialize)]
struct Entry {
    #[serde(default, rename = "type")]
    kind: String,
    path: String,
    #[serde(default)]
    size: u64,
    lfs: Option<Lfs>,
}

/// Git LFS metadata of a large file.
#[derive(Debug, Clone, Deserialize)]
struct Lfs {
    oid: String,
    size: u64,
}

#[derive(Debug, Deserialize)]
struct Refs {
    #[serde(default)]
    branches: Vec<Branch>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Branch {
    name: String,
    target_commit: String,
}

/// Whether the hub's API may succeed after the registry protocol failed with `error`.
pub(crate) fn may_know_better(error: &PullError) -> bool {
    match error {
        PullError::NotFound { .. }
        | PullError::BadManifest { .. }
        | PullError::BadResponse { .. } => true,
        PullError::Refused { what, status, .. } => {
            what == "the manifest" && (400..500).contains(status)
        }
        _ => false,
    }
}

/// Pulls the file of a repository that `name` refers to and creates a model from it.
pub(crate) fn pull(
    puller: &Puller,
    remote: &Arc<Remote>,
    name: &ModelName,
    stored: &ModelName,
    on_progress: OnProgress<'_>,
    first: PullError,
) -> Result<Pulled, PullError> {
    let repository = Repository::open(remote, name, on_progress, first)?;
    let entries = repository.list(on_progress)?;
    let tag = Some(name.tag()).filter(|tag| !tag.eq_ignore_ascii_case("latest"));
    let paths: Vec<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
    let Choice { weights, projector } =
        choose(&paths, tag).ok_or_else(|| PullError::NoSuchFile {
            repository: repository.id.clone(),
            wanted: tag.map(str::to_owned),
            available: choose::models(&paths).into_iter().map(str::to_owned).collect(),
        })?;
    // The first file last: readers of manifests use the last model layer, and only that file has the metadata.
    let mut files: Vec<(usize, &str)> =
        weights.iter().skip(1).map(|&file| (file, "model")).collect();
    files.extend(weights.first().map(|&file| (file, "model")));
    files.extend(projector.map(|file| (file, "projector")));
    let mut recipe = Recipe::default();
    for (file, kind) in files {
        let entry = &entries[file];
        let mut blob = repository.blob(entry, kind, on_progress)?;
        // Distinguishes the files of split weights from layers that a later one replaces.
        let split = kind == "model" && weights.len() > 1;
        blob.name = split.then(|| entry.path.rsplit('/').next().unwrap_or_default().to_owned());
        puller.get_blob(remote, &blob, repository.resolve(&entry.path)?, on_progress)?;
        recipe.layers.push(blob);
    }
    report(on_progress, Progress::Verifying)?;
    describe(puller, &mut recipe)?;
    let request = repository.texts(&entries, on_progress)?;
    let id = compose(puller.root(), stored, recipe, &request, on_progress)?;
    Ok(Pulled { name: stored.clone(), id })
}

/// Adds the metadata of the files' headers, and rejects files of another kind than their names say.
fn describe(puller: &Puller, recipe: &mut Recipe) -> Result<(), PullError> {
    for layer in &recipe.layers {
        let path = BlobPaths::new(puller.root(), &layer.digest).blob();
        let facts = Facts::read(&path)?;
        if layer.kind() != Some(facts.layer_kind()) {
            let problem = format!("it holds a {}", facts.layer_kind());
            return Err(PullError::BadGguf { path, problem });
        }
        // Of several model layers the last one describes the model.
        if layer.kind() == Some("model") {
            facts.describe(&mut recipe.config);
            recipe.params = facts.default_params();
        }
    }
    Ok(())
}

/// A repository at one commit.
struct Repository<'a> {
    remote: &'a Arc<Remote>,
    id: String,
    commit: String,
}

impl<'a> Repository<'a> {
    /// Resolves the commit of the main branch.
    fn open(
        remote: &'a Arc<Remote>,
        name: &ModelName,
        on_progress: OnProgress<'_>,
        first: PullError,
    ) -> Result<Self, PullError> {
        let id = format!("{}/{}", name.namespace(), name.model());
        let what = format!("the branches of {id}");
        let uri = remote.at(&format!("/api/models/{id}/refs"))?;
        let response = fetch(remote, uri, None, MAX_LISTING, &what, on_progress)?;
        match response.status {
            200 => {}
            404 => return Err(first),
            _ => return Err(remote.refused(&what, &response)),
        }
        let refs: Refs = parse(remote, &what, &response)?;
        let main = refs.branches.into_iter().find(|branch| branch.name == "main");
        let is_commit =
            |text: &String| text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let commit = main
            .map(|branch| branch.target_commit)
            .filter(is_commit)
            .ok_or_else(|| remote.bad_response(&what, "no branch main with a commit"))?;
        Ok(Self { remote, id, commit })
    }

    /// All files.
    fn list(&self, on_progress: OnProgress<'_>) -> Result<Vec<Entry>, PullError> {
        let what = format!("the files of {}", self.id);
        let path = format!("/api/models/{}/tree/{}?recursive=true", self.id, self.commit);
        let mut next = Some(self.remote.at(&path)?);
        let mut entries = Vec::new();
        for _ in 0..MAX_PAGES {
            let Some(uri) = next else { return Ok(entries) };
            let response = fetch(self.remote, uri.clone(), None, MAX_LISTING, &what, on_progress)?;
            if response.status != 200 {
                return Err(self.remote.refused(&what, &response));
            }
            let page: Vec<Entry> = parse(self.remote, &what, &response)?;
            entries.extend(
                page.into_iter().filter(|entry| entry.kind == "file" && is_plain(&entry.path)),
            );
            let link = text(&response.headers, header::LINK).and_then(next_link);
            // Credentials are sent to this server only, so the next page must be on it.
            next = link
                .and_then(|link| rullama_source::follow(&uri, link))
                .filter(|next| self.remote.is_same(next));
        }
        Err(self.remote.bad_response(&what, "an endless list"))
    }

    fn resolve(&self, path: &str) -> Result<ureq::http::Uri, PullError> {
        self.remote.at(&format!("/{}/resolve/{}/{}", self.id, self.commit, encode(path)))
    }

    /// The layer for a file. Its SHA-256 must be known before it is downloaded.
    fn blob(
        &self,
        entry: &Entry,
        kind: &str,
        on_progress: OnProgress<'_>,
    ) -> Result<Blob, PullError> {
        let known = entry.lfs.as_ref().and_then(|lfs| {
            let hex = lfs.oid.trim_start_matches("sha256:").to_ascii_lowercase();
            Some((Digest::parse(&format!("sha256:{hex}"))?, lfs.size))
        });
        let (digest, size) = match known {
            Some(known) => known,
            None => self.linked(entry, on_progress)?,
        };
        if size > MAX_FILE {
            return Err(self.remote.bad_response(&entry.path, &format!("a size of {size} bytes")));
        }
        Ok(Blob::layer(kind, digest, size))
    }

    /// Digest and length from the headers of the file's URL.
    fn linked(
        &self,
        entry: &Entry,
        on_progress: OnProgress<'_>,
    ) -> Result<(Digest, u64), PullError> {
        let (remote, uri, path) =
            (self.remote.clone(), self.resolve(&entry.path)?, entry.path.clone());
        let response = in_background(on_progress, move || {
            let spec = RequestSpec {
                head: true,
                stop_at_other_host: true,
                what: &path,
                ..RequestSpec::default()
            };
            remote.fetch(&uri, spec, 0)
        });
        let headers = response.transpose()?.map(|response| response.headers).unwrap_or_default();
        let [tag, size] = ["x-linked-etag", "x-linked-size"].map(HeaderName::from_static);
        let digest =
            text(&headers, tag).or_else(|| text(&headers, header::ETAG)).and_then(etag_digest);
        let size = text(&headers, size).and_then(number).unwrap_or(entry.size);
        let digest = digest.ok_or_else(|| PullError::NoDigest { path: entry.path.clone() })?;
        Ok((digest, size))
    }

    /// The files `template`, `system` and `params` in the root of the repository.
    fn texts(
        &self,
        entries: &[Entry],
        on_progress: OnProgress<'_>,
    ) -> Result<CreateRequest, PullError> {
        let mut texts = HashMap::new();
        for name in ["template", "system", "params"] {
            if !entries.iter().any(|entry| entry.path == name) {
                continue;
            }
            let response =
                fetch(self.remote, self.resolve(name)?, None, MAX_TEXT, name, on_progress)?;
            if response.status != 200 {
                return Err(self.remote.refused(name, &response));
            }
            let text = String::from_utf8(response.body);
            texts.insert(
                name,
                text.map_err(|_| self.remote.bad_response(name, "text that is not UTF-8"))?,
            );
        }
        let params = texts.remove("params").map(|text| {
            let parsed: Result<Map<String, Value>, _> = serde_json::from_str(&text);
            parsed.map_err(|e| self.remote.bad_response("params", &e.to_string()))
        });
        Ok(CreateRequest {
            template: texts.remove("template"),
            system: texts.remove("system"),
            parameters: params.transpose()?,
            ..CreateRequest::default()
        })
    }
}

/// Whether URL normalisation leaves the path unchanged.
fn is_plain(path: &str) -> bool {
    path.len() <= 1024
        && !path.chars().any(char::is_control)
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn parse<T: serde::de::DeserializeOwned>(
    remote: &Remote,
    what: &str,
    response: &FetchedResponse,
) -> Result<T, PullError> {
    serde_json::from_slice(&response.body).map_err(|e| remote.bad_response(what, &e.to_string()))
}
