//! Models as requests name them and lists show them.

use std::{sync::Arc, time::SystemTime};

use rullama_api::{
    Timestamp,
    listing::{Details, ModelEntry, ModelObject},
};
use rullama_store::{ConfigBlob, Digest, ModelFiles};
use serde_json::Map;

use crate::{
    PlainFile,
    engine::{ModelPlace, ServedModel},
    facts::Facts,
};

/// A model of a store.
pub(crate) fn of_store(
    files: ModelFiles,
    size: u64,
    modified: Option<SystemTime>,
    facts: &Facts,
    projectors: &[Arc<Facts>],
) -> ServedModel {
    // A message that cannot be read precedes nothing.
    let read = |message| serde_json::from_value(message).ok();
    ServedModel {
        name: files.name.to_string(),
        size,
        digest: files.id.hex().to_owned(),
        modified: modified.map(Timestamp::from).unwrap_or_default(),
        details: details(facts, &files.config),
        capabilities: facts.capabilities(&files.config, projectors),
        parameters: files.params.clone().unwrap_or_default(),
        system: files.system.clone(),
        messages: files.messages.iter().flatten().cloned().filter_map(read).collect(),
        place: ModelPlace::Store(Box::new(files)),
    }
}

/// A file that the user named.
pub(crate) fn of_file(
    file: &PlainFile,
    modified: Option<SystemTime>,
    digest: Option<&Digest>,
    size: u64,
    facts: &Facts,
) -> ServedModel {
    let config = ConfigBlob::default();
    ServedModel {
        name: file.name.clone(),
        size,
        digest: digest.map(|digest| digest.hex().to_owned()).unwrap_or_default(),
        modified: modified.map(Timestamp::from).unwrap_or_default(),
        details: details(facts, &config),
        capabilities: facts.capabilities(&config, &[]),
        parameters: Map::new(),
        system: None,
        messages: Vec::new(),
        place: ModelPlace::File(file.path.clone()),
    }
}

impl ServedModel {
    /// As `/api/tags` lists it.
    pub(crate) fn entry(&self) -> ModelEntry {
        ModelEntry {
            name: self.name.clone(),
            model: self.name.clone(),
            modified_at: self.modified,
            size: self.size,
            digest: self.digest.clone(),
            details: self.details.clone(),
            capabilities: self.capabilities.clone(),
        }
    }

    /// As `/v1/models` lists it.
    pub(crate) fn object(&self) -> ModelObject {
        let owner = match &self.place {
            ModelPlace::Store(files) => files.name.namespace().to_owned(),
            ModelPlace::File(_) => "local".to_owned(),
        };
        ModelObject::new(self.name.clone(), owner, self.modified)
    }
}

fn details(facts: &Facts, config: &ConfigBlob) -> Details {
    let family = facts.architecture.clone();
    let families = if config.model_families.is_empty() {
        vec![family.clone()]
    } else {
        config.model_families.clone()
    };
    Details {
        parent_model: String::new(),
        format: "gguf".to_owned(),
        family,
        families,
        parameter_size: config.model_type.clone().unwrap_or_else(|| count(facts.parameters)),
        quantization_level: config.file_type.clone().unwrap_or_default(),
        context_length: facts.context_length,
        embedding_length: facts.embedding_length,
    }
}

/// Parameters as people say them.
fn count(parameters: u64) -> String {
    match parameters {
        1_000_000_000.. => format!("{:.1}B", parameters as f64 / 1e9),
        1_000_000.. => format!("{:.1}M", parameters as f64 / 1e6),
        _ => format!("{:.1}K", parameters as f64 / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn counts() {
        for (parameters, text) in
            [(0, "0.0K"), (12_345, "12.3K"), (4_567_890, "4.6M"), (5_100_000_000, "5.1B")]
        {
            assert_eq!(count(parameters), text);
        }
    }
}
