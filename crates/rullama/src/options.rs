//! Options for opening a model.

use std::path::PathBuf;

use rullama_engine::executor::Device;
use rullama_gguf::Gguf;
use rullama_runtime::model::{CacheType, LoadOptions, Progress, TablePlace};

use crate::{
    device::DeviceChoice,
    error::Error,
    locate::Stores,
    tuning::{TuningKey, Tunings},
};

/// A callback that gets loading progress and may cancel.
pub type OnProgress<'a> = &'a mut dyn FnMut(Progress) -> std::ops::ControlFlow<()>;

/// Options for opening a model.
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
    /// Stores in which names are looked up.
    pub stores: Stores,
    /// Device to run on.
    pub device: DeviceChoice,
    /// Context of its sessions in tokens; `None` = the store's `num_ctx`, or 4096.
    pub context: Option<usize>,
    /// Element type of KV caches.
    pub cache: CacheType,
    /// Where the per-layer embedding table of E2B and E4B is kept.
    pub table: TablePlace,
    /// GPU memory that may be used, in bytes; `None` = all of the device.
    pub gpu_memory: Option<u64>,
    /// Number of last layers whose experts stay on the CPU; `None` = as many as `gpu_memory` requires.
    pub host_experts: Option<usize>,
    /// Excludes kernels with larger rounding errors than f32 sums, for comparisons.
    pub exact: bool,
    /// The file in which `rullama tune` stores the constants of kernel selection that it measured; a model and GPU that are not in it, or a
    /// damaged file, take the defaults.
    pub tuning: Option<PathBuf>,
    /// A folder in which pipelines that the GPU's driver compiled are kept between runs, so that a later start need not compile them: a
    /// file for each GPU, driver and version of this library, written when the device closes. It is used with Vulkan. The driver runs what is in
    /// there: a folder that others than the user can write to is ignored, like damaged files and a folder that cannot be written to.
    ///
    /// ```
    /// # let cache = tempfile::tempdir().expect("a folder");
    /// # let cache = cache.path();
    /// use rullama::{Model, OpenOptions};
    ///
    /// let pipeline_cache = Some(cache.join("my-program/pipelines"));
    /// let options = OpenOptions { pipeline_cache, ..OpenOptions::default() };
    /// let model = Model::open_with("demo", &options)?;
    /// # Ok::<(), rullama::Error>(())
    /// ```
    pub pipeline_cache: Option<PathBuf>,
    /// LoRA adapters that all sessions use, each with its strength: PEFT folders, safetensors or GGUF files.
    pub adapters: Vec<(PathBuf, f32)>,
    /// The projector file (mmproj) with the vision and audio encoders: name, path or URL. `None` = the store's, or the
    /// encoders inside the model.
    pub projector: Option<String>,
}

impl OpenOptions {
    /// Loads a model file onto a device.
    ///
    /// # Errors
    /// If the model is not supported or does not fit, the device fails, or `progress` cancels.
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
            ..LoadOptions::default()
        };
        let device = self.tuned(device, &gguf);
        Ok(rullama_runtime::Model::load(gguf, device, &options, progress).await?)
    }

    /// The device with the constants that were measured for a model.
    fn tuned(&self, device: Device, gguf: &Gguf) -> Device {
        let (Device::Gpu(gpu), Some(path)) = (&device, &self.tuning) else { return device };
        let stored = Tunings::read(path).unwrap_or_default();
        stored
            .find(&TuningKey::new(gpu, gguf))
            .map_or(device.clone(), |tuning| Device::Gpu(gpu.tuned(tuning)))
    }
}
