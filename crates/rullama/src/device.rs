//! The device a model runs on.

use std::rc::Rc;

use pollster::block_on;
use rullama_engine::{
    EngineError,
    executor::Device,
    gpu::{self, Gpu, PipelineStore},
};
use rullama_runtime::RuntimeError;

use crate::{error::Error, options::OpenOptions, pipelines::PipelineFolder};

/// Which device to run on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A GPU; the CPU if there is none or only a software one.
    #[default]
    Auto,
    /// A GPU, possibly a software one.
    Gpu,
    /// The CPU.
    Cpu,
}

/// An open device.
#[derive(Debug, Clone)]
pub struct OpenedDevice {
    /// The device.
    pub device: Device,
    /// Whether the CPU was chosen because there is no GPU.
    pub no_gpu: bool,
}

impl OpenOptions {
    /// Opens the device of these options.
    ///
    /// ```
    /// use rullama::{DeviceChoice, OpenOptions};
    ///
    /// let options = OpenOptions { device: DeviceChoice::Cpu, ..OpenOptions::default() };
    /// assert!(!options.open_device()?.no_gpu);
    /// # Ok::<(), rullama::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a GPU was requested and there is none.
    pub fn open_device(&self) -> Result<OpenedDevice, Error> {
        block_on(self.open_device_async())
    }

    /// Async variant of [`Self::open_device`].
    ///
    /// # Errors
    /// As [`Self::open_device`].
    pub async fn open_device_async(&self) -> Result<OpenedDevice, Error> {
        let cpu = |no_gpu| Ok(OpenedDevice { device: Device::Cpu, no_gpu });
        let is_auto = self.device == DeviceChoice::Auto;
        if self.device == DeviceChoice::Cpu {
            return cpu(false);
        }
        let store = |folder| Rc::new(PipelineFolder(folder)) as Rc<dyn PipelineStore>;
        let pipelines = self.pipeline_cache.clone().map(store);
        match Gpu::open_with(gpu::OpenOptions { pipelines, ..gpu::OpenOptions::default() }).await {
            // A software GPU has to compile every kernel first, and the CPU reference is as fast.
            Ok(gpu) if is_auto && gpu.is_software() => cpu(false),
            Ok(gpu) => {
                let device = Device::Gpu(if self.exact { gpu.exact() } else { gpu });
                Ok(OpenedDevice { device, no_gpu: false })
            }
            Err(EngineError::NoAdapter { .. } | EngineError::NoDevice { .. }) if is_auto => {
                cpu(true)
            }
            Err(error) => Err(RuntimeError::from(error).into()),
        }
    }
}
