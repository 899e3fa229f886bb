//! Creates models from a base, or from GGUF files uploaded as blobs.

use std::{fs, path::Path};

use rullama_store::{Digest, ModelName, Store};
use serde_json::{Map, Value, json};

use super::{Added, install, put_blob, stored_name};
use crate::{
    OnProgress, Progress, PullError,
    error::io_error,
    facts::Facts,
    manifest::{Blob, MAX_BYTES, Manifest},
    parts::BlobPaths,
    progress::report,
};

/// Maximum length of a prompt, template or licence in bytes; the store's reader has the same limit.
const MAX_TEXT: usize = 8 << 20;
const MAX_ENTRIES: usize = 4096;

/// A request of `POST /api/create`. All fields are optional, except that a base or files are required.
#[derive(Debug, Clone, Default)]
pub struct CreateRequest {
    /// A local model to start from.
    pub from: Option<String>,
    /// GGUF files by name: weights, projectors, adapters.
    pub files: Vec<(String, Digest)>,
    /// GGUF files of LoRA adapters by name.
    pub adapters: Vec<(String, Digest)>,
    /// GGUF files of a drafter by name.
    pub draft_files: Vec<(String, Digest)>,
    /// Prompt template.
    pub template: Option<String>,
    /// System prompt; an empty one removes that of the base.
    pub system: Option<String>,
    /// Options; those of the base that are not given here are kept.
    pub parameters: Option<Map<String, Value>>,
    /// Messages at the start of every conversation; an empty list removes those of the base.
    pub messages: Option<Vec<Value>>,
    /// Licence texts, in addition to those of the base.
    pub licenses: Vec<String>,
    /// Name of a built-in prompt renderer.
    pub renderer: Option<String>,
    /// Name of a built-in output parser.
    pub parser: Option<String>,
    /// A quantisation to convert to, which is not supported.
    pub quantize: Option<String>,
}

/// A model before its texts are written.
#[derive(Debug, Default)]
pub(crate) struct Recipe {
    pub(crate) layers: Vec<Blob>,
    pub(crate) config: Map<String, Value>,
    /// Default options.
    pub(crate) params: Map<String, Value>,
}

/// Creates the model `name` in the store at `root` and returns its id.
pub fn create(
    root: &Path,
    name: &ModelName,
    request: &CreateRequest,
    on_progress: OnProgress<'_>,
) -> Result<Digest, PullError> {
    check(request)?;
    let mut recipe = match &request.from {
        Some(from) => base(root, from, on_progress)?,
        None => Recipe::default(),
    };
    add_files(root, request, &mut recipe, on_progress)?;
    compose(root, name, recipe, request, on_progress)
}

fn bad(problem: impl Into<String>) -> PullError {
    PullError::BadRequest { problem: problem.into() }
}

fn check(request: &CreateRequest) -> Result<(), PullError> {
    let CreateRequest { from, files, adapters, draft_files, .. } = request;
    if request.quantize.is_some() {
        return Err(bad("weights are not quantised here; upload a file that is"));
    }
    if from.is_some() != files.is_empty() {
        return Err(bad("give either `from`, the name of a local model, or `files`"));
    }
    if files.len() + adapters.len() + draft_files.len() > MAX_ENTRIES {
        return Err(bad("too many files"));
    }
    let texts = [&request.template, &request.system, &request.renderer, &request.parser];
    let mut texts = texts.into_iter().flatten().chain(&request.licenses);
    if texts.any(|text| text.len() > MAX_TEXT) {
        return Err(bad(format!("a text has more than {MAX_TEXT} bytes")));
    }
    for message in request.messages.iter().flatten() {
        let role = message["role"].as_str().unwrap_or_default();
        if !matches!(role, "system" | "user" | "assistant" | "tool")
            || !message["content"].is_string()
        {
            return Err(bad(
                "a message needs a `role` (system, user, assistant, tool) and a text `content`",
            ));
        }
    }
    for (key, value) in request.parameters.iter().flatten() {
        let scalar = |value: &Value| value.is_number() || value.is_string() || value.is_boolean();
        let list = value.as_array().is_some_and(|values| values.iter().all(scalar));
        if !scalar(value) && !list {
            return Err(bad(format!(
                "option {key:?} must be a number, a text, a boolean or a list of them"
            )));
        }
    }
    Ok(())
}

/// The layers and the config of a local model.
fn base(root: &Path, from: &str, on_progress: OnProgress<'_>) -> Result<Recipe, PullError> {
    let (name, path) = Store::open(root)?.manifest(&from.parse()?)?;
    let short = name.to_string();
    let mut manifest = Manifest::parse(&short, &read_limited(&path, MAX_BYTES)?)?;
    for blob in manifest.blobs() {
        if !BlobPaths::new(root, &blob.digest).is_complete(blob.size) {
            return Err(PullError::NoSuchBlob { file: short, digest: blob.digest.clone() });
        }
    }
    for layer in &mut manifest.layers {
        layer.from = Some(short.clone());
        report(on_progress, Progress::UsingLayer(layer.digest.clone()))?;
    }
    let path = BlobPaths::new(root, &manifest.config.digest).blob();
    let config = serde_json::from_slice(&read_limited(&path, MAX_TEXT as u64)?);
    let config = config.map_err(|e| bad(format!("the config of {short} is broken: {e}")))?;
    Ok(Recipe { layers: manifest.layers, config, params: Map::new() })
}

/// Adds the layers of all files in the request.
fn add_files(
    root: &Path,
    request: &CreateRequest,
    recipe: &mut Recipe,
    on_progress: OnProgress<'_>,
) -> Result<(), PullError> {
    let CreateRequest { files, adapters, draft_files, .. } = request;
    let all = [(files, None), (adapters, Some("adapter")), (draft_files, Some("draft"))];
    if !draft_files.is_empty() {
        recipe.layers.retain(|layer| layer.kind() != Some("draft"));
    }
    for (file, digest, wanted) in
        all.into_iter().flat_map(|(files, kind)| files.iter().map(move |(f, d)| (f, d, kind)))
    {
        report(on_progress, Progress::ParsingGguf)?;
        let path = BlobPaths::new(root, digest).blob();
        let Ok(found) = fs::metadata(&path) else {
            return Err(PullError::NoSuchBlob { file: file.clone(), digest: digest.clone() });
        };
        let facts = Facts::read(&path).map_err(|error| match error {
            PullError::BadGguf { problem, .. } => {
                bad(format!("{file:?} is not a usable gguf file: {problem}"))
            }
            error => error,
        })?;
        let kind = match (wanted, facts.layer_kind()) {
            (Some("adapter"), "adapter") | (None, "adapter") => "adapter",
            (Some("adapter"), _) => {
                return Err(bad(format!(
                    "{file:?} is not an adapter; convert it to a gguf adapter"
                )));
            }
            (Some(_), "model") => "draft",
            (Some(_), _) => return Err(bad(format!("{file:?} is not a drafter"))),
            (None, kind) => kind,
        };
        if kind == "model" {
            facts.describe(&mut recipe.config);
            recipe.params = facts.default_params();
        }
        recipe.layers.push(Blob::layer(kind, digest.clone(), found.len()));
        report(on_progress, Progress::UsingLayer(digest.clone()))?;
    }
    if recipe.layers.iter().any(|layer| layer.kind() == Some("model")) {
        return Ok(());
    }
    Err(bad("there are no weights among the files; name a gguf model"))
}

/// Writes the texts and the config of `recipe`, then its manifest.
pub(crate) fn compose(
    root: &Path,
    name: &ModelName,
    mut recipe: Recipe,
    request: &CreateRequest,
    on_progress: OnProgress<'_>,
) -> Result<Digest, PullError> {
    let mut writer = Writer { root, layers: &mut recipe.layers, on_progress };
    if let Some(template) = &request.template {
        writer.replace("template", template.as_bytes())?;
    }
    if let Some(system) = &request.system {
        writer.replace("system", system.as_bytes())?;
    }
    for license in request.licenses.iter().filter(|text| !text.is_empty()) {
        writer.add("license", license.as_bytes())?;
    }
    let changed = request.parameters.as_ref();
    if changed.is_some() || !recipe.params.is_empty() {
        let stored = writer.stored_params()?;
        let mut params = recipe.params.clone();
        params.extend(stored);
        params.extend(changed.into_iter().flatten().map(|(key, value)| {
            let list = key == "stop" && value.is_string();
            (key.clone(), if list { json!([value]) } else { value.clone() })
        }));
        if !params.is_empty() {
            writer.replace("params", Value::Object(params).to_string().as_bytes())?;
        }
    }
    if let Some(messages) = &request.messages {
        let text = if messages.is_empty() { String::new() } else { json!(messages).to_string() };
        writer.replace("messages", text.as_bytes())?;
    }
    let mut config = recipe.config;
    for (key, value) in [("renderer", &request.renderer), ("parser", &request.parser)] {
        if let Some(value) = value {
            config.insert(key.into(), json!(value));
        }
    }
    config.entry("architecture").or_insert_with(|| json!("amd64"));
    config.entry("os").or_insert_with(|| json!("linux"));
    let digests: Vec<String> = recipe.layers.iter().map(|layer| layer.digest.to_string()).collect();
    config.insert("rootfs".into(), json!({ "type": "layers", "diff_ids": digests }));
    let text = Value::Object(config).to_string();
    let (digest, added) = put_blob(root, text.as_bytes())?;
    announce(on_progress, &digest, added)?;
    let manifest = Manifest::new(Blob::config(digest, text.len() as u64), recipe.layers);
    let name = stored_name(root, name)?;
    let installed = install(root, &name, &manifest, &manifest.to_bytes(), on_progress)?;
    installed.ok_or_else(|| bad("its base was deleted meanwhile; try again"))
}

/// Adds texts to a list of layers.
struct Writer<'a, 'b> {
    root: &'a Path,
    layers: &'a mut Vec<Blob>,
    on_progress: OnProgress<'b>,
}

impl Writer<'_, '_> {
    fn add(&mut self, kind: &str, bytes: &[u8]) -> Result<(), PullError> {
        let (digest, added) = put_blob(self.root, bytes)?;
        announce(self.on_progress, &digest, added)?;
        self.layers.push(Blob::layer(kind, digest, bytes.len() as u64));
        Ok(())
    }

    /// Replaces all layers of `kind`; an empty text only removes them.
    fn replace(&mut self, kind: &str, bytes: &[u8]) -> Result<(), PullError> {
        let legacy = |layer: &Blob| kind == "template" && layer.kind() == Some("prompt");
        self.layers.retain(|layer| layer.kind() != Some(kind) && !legacy(layer));
        if bytes.is_empty() { Ok(()) } else { self.add(kind, bytes) }
    }

    /// The options in the layers so far.
    fn stored_params(&self) -> Result<Map<String, Value>, PullError> {
        let mut params = Map::new();
        for layer in self.layers.iter().filter(|layer| layer.kind() == Some("params")) {
            let path = BlobPaths::new(self.root, &layer.digest).blob();
            let stored: Map<String, Value> =
                serde_json::from_slice(&read_limited(&path, MAX_TEXT as u64)?)
                    .map_err(|e| bad(format!("the options of the base are broken: {e}")))?;
            params.extend(stored);
        }
        Ok(params)
    }
}

fn announce(on_progress: OnProgress<'_>, digest: &Digest, added: Added) -> Result<(), PullError> {
    report(
        on_progress,
        match added {
            Added::Created => Progress::CreatingLayer(digest.clone()),
            Added::Existing => Progress::UsingLayer(digest.clone()),
        },
    )
}

fn read_limited(path: &Path, max: u64) -> Result<Vec<u8>, PullError> {
    let length = fs::metadata(path).map_err(|e| io_error("read", path, e))?.len();
    if length > max {
        return Err(bad(format!("{} has {length} bytes, more than {max}", path.display())));
    }
    fs::read(path).map_err(|e| io_error("read", path, e))
}
