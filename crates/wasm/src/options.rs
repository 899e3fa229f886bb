//! Requests of the client, as JSON.

use rullama_gguf::Gguf;
use rullama_runtime::{
    RuntimeError,
    model::{CacheType, LoadOptions, Summary, TablePlace},
    session::{DEFAULT_CONTEXT, SessionOptions},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::{device::Device, error::Failure};

/// Memory of a model on the CPU: what a wasm module can have (4 GiB), less what the vocabulary, the page's data and allocation take.
const CPU_BYTES: u64 = 3_500_000_000;
/// Maximum tokens of a pass on the CPU: a third of a second for a model of 270 million parameters, in which no message arrives.
const CPU_CHUNK: usize = 32;

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
    /// Whether memory is planned for the CPU.
    #[serde(default)]
    cpu: bool,
    /// Parameters stored with the model's name, under Ollama's names.
    #[serde(default)]
    pub(crate) parameters: Map<String, Value>,
}

impl Load {
    /// The options of a load onto a device.
    pub(crate) fn of(options: &str, device: &Device) -> Result<Self, Failure> {
        Ok(Self { cpu: device.is_cpu(), ..parse(options)? })
    }

    /// Context in tokens: as requested, else as stored with the model's name, else the default.
    pub(crate) fn context_of(&self, gguf: &Gguf) -> Result<usize, RuntimeError> {
        let trained = Summary::of(gguf)?.trained_context;
        let named = self.parameters.get("num_ctx").and_then(Value::as_u64);
        let named = named.and_then(|n| usize::try_from(n).ok()).map(|n| n.min(trained));
        Ok(self.context.or(named).unwrap_or(DEFAULT_CONTEXT.min(trained)))
    }

    pub(crate) fn options(&self) -> LoadOptions {
        let given = self.gpu_memory.map(|bytes| bytes as u64);
        LoadOptions {
            on_cpu: self.cpu,
            chunk: self.cpu.then_some(CPU_CHUNK),
            table: match self.table {
                Table::Fits => TablePlace::IfItFits,
                Table::Gpu => TablePlace::Gpu,
                Table::File => TablePlace::Host,
            },
            gpu_budget: match self.cpu {
                true => Some(given.unwrap_or(CPU_BYTES).min(CPU_BYTES)),
                false => given,
            },
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
    /// Missing options have the model's values. Passes on the CPU are short.
    pub(crate) fn options(&self, context: usize, cache: CacheType, cpu: bool) -> SessionOptions {
        let usual = SessionOptions::default();
        SessionOptions {
            context: Some(self.context.unwrap_or(context)),
            cache: self.cache.map_or(cache, Into::into),
            chunk: if cpu { CPU_CHUNK } else { usual.chunk },
            ..usual
        }
    }
}
