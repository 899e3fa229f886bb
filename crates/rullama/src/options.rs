//! How a model is opened.

use std::path::PathBuf;

use rullama_engine::executor::Device;
use rullama_gguf::Gguf;
use rullama_runtime::model::{CacheType, LoadOptions, Progress, TablePlace};

use crate::{device::DeviceChoice, error::Error, locate::Stores};

/// Is told how far loading is, and may cancel it.
pub type OnProgress<'a> = &'a mut dyn FnMut(Progress) -> std::ops::ControlFlow<()>;

/// How a model is opened; the default suits most.
///
/// ```
/// use rullama::{DeviceChoice, Model, OpenOptions};
///
/// let options = OpenOptions { device: DeviceChoice::Cpu, context: Some(512), ..OpenOptions::default() };
/// let model = Model::open_with("demo", &options)?;
/// assert_eq!(model.session()?.context(), 512);
/// # Ok::<(), rullama::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// Where names are looked up.
    pub stores: Stores,
    /// Where the model runs.
    pub device: DeviceChoice,
    /// Context of its sessions in tokens; without it, the model's own wish, or 4096.
    pub context: Option<usize>,
    /// How KV caches store numbers.
    pub cache: CacheType,
    /// Where the per-layer embedding table of E2B and E4B goes.
    pub table: TablePlace,
    /// GPU memory that may be used, in bytes; without it, what the device offers.
    pub gpu_memory: Option<u64>,
    /// How many of the last layers keep their experts on the CPU; without it, as many as `gpu_memory` requires.
    pub host_experts: Option<usize>,
    /// Leaves out kernels that round more than f32 sums do, for comparisons.
    pub exact: bool,
    /// LoRA adapters that all sessions use, each with its strength: PEFT folders, safetensors or GGUF files.
    pub adapters: Vec<(PathBuf, f32)>,
    /// The projector file (mmproj) with the vision and audio encoders: name, path or URL. Without it, the store's, or the encoders
    /// inside the model.
    pub projector: Option<String>,
}

impl OpenOptions {
    /// Loads a model file onto a device.
    ///
    /// # Errors
    /// If the file is no model that can be run, it does not fit, the device fails, or `progress` cancels.
    pub async fn load(
        &self,
        gguf: Gguf,
        device: Device,
        context: Option<usize>,
        progress: OnProgress<'_>,
    ) -> Result<rullama_runtime::Model, Error> {
        let options = LoadOptions {
            table: self.table,
            gpu_budget: self.gpu_memory,
            context,
            cache: self.cache,
            host_experts: self.host_experts,
        };
        Ok(rullama_runtime::Model::load(gguf, device, &options, progress).await?)
    }
}
