//! Requests of the client, as JSON.

use rullama_gguf::Gguf;
use rullama_runtime::{
    RuntimeError,
    model::{CacheType, LoadOptions, Summary, TablePlace},
    session::{DEFAULT_CONTEXT, SessionOptions},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::error::Failure;

pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(Failure::Request)
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Cache {
    F32,
    F16,
    Q8,
}

impl From<Cache> for CacheType {
    fn from(cache: Cache) -> Self {
        match cache {
            Cache::F32 => Self::F32,
            Cache::F16 => Self::F16,
            Cache::Q8 => Self::Q8,
        }
    }
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Table {
    Fits,
    Gpu,
    File,
}

/// How to load.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Load {
    pub(crate) context: Option<usize>,
    pub(crate) cache: Option<Cache>,
    table: Table,
    gpu_memory: Option<f64>,
    /// Parameters stored with the model's name, under Ollama's names.
    #[serde(default)]
    pub(crate) parameters: Map<String, Value>,
}

impl Load {
    /// Context in tokens: as requested, else as stored with the model's name, else the default.
    pub(crate) fn context_of(&self, gguf: &Gguf) -> Result<usize, RuntimeError> {
        let trained = Summary::of(gguf)?.trained_context;
        let named = self.parameters.get("num_ctx").and_then(Value::as_u64);
        let named = named.and_then(|n| usize::try_from(n).ok()).map(|n| n.min(trained));
        Ok(self.context.or(named).unwrap_or(DEFAULT_CONTEXT.min(trained)))
    }

    pub(crate) fn options(&self) -> LoadOptions {
        LoadOptions {
            table: match self.table {
                Table::Fits => TablePlace::IfItFits,
                Table::Gpu => TablePlace::Gpu,
                Table::File => TablePlace::Host,
            },
            gpu_budget: self.gpu_memory.map(|bytes| bytes as u64),
            context: self.context,
            cache: self.cache.map(Into::into).unwrap_or_default(),
            // Pages have no threads for them.
            host_experts: Some(0),
        }
    }
}

/// How a session is set up.
#[derive(Deserialize, Default)]
pub(crate) struct SessionRequest {
    context: Option<usize>,
    cache: Option<Cache>,
}

impl SessionRequest {
    /// Missing options have the model's values.
    pub(crate) fn options(&self, context: usize, cache: CacheType) -> SessionOptions {
        SessionOptions {
            context: Some(self.context.unwrap_or(context)),
            cache: self.cache.map_or(cache, Into::into),
            ..SessionOptions::default()
        }
    }
}
