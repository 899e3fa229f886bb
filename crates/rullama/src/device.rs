//! The device a model runs on.

use pollster::block_on;
use rullama_engine::{EngineError, executor::Device, gpu::Gpu};
use rullama_runtime::RuntimeError;

use crate::error::Error;

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

impl DeviceChoice {
    /// Opens the device; `exact` excludes kernels with larger rounding errors than f32 sums.
    ///
    /// ```
    /// use rullama::DeviceChoice;
    ///
    /// let opened = DeviceChoice::Cpu.open(false)?;
    /// assert!(!opened.no_gpu);
    /// # Ok::<(), rullama::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a GPU was requested and there is none.
    pub fn open(self, exact: bool) -> Result<OpenedDevice, Error> {
        block_on(self.open_async(exact))
    }

    /// Async variant of [`Self::open`].
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_async(self, exact: bool) -> Result<OpenedDevice, Error> {
        let cpu = |no_gpu| Ok(OpenedDevice { device: Device::Cpu, no_gpu });
        if self == Self::Cpu {
            return cpu(false);
        }
        match Gpu::open().await {
            // A software GPU has to compile every kernel first, and the CPU reference is as fast.
            Ok(gpu) if self == Self::Auto && gpu.is_software() => cpu(false),
            Ok(gpu) => {
                let device = Device::Gpu(if exact { gpu.exact() } else { gpu });
                Ok(OpenedDevice { device, no_gpu: false })
            }
            Err(EngineError::NoAdapter { .. } | EngineError::NoDevice { .. })
                if self == Self::Auto =>
            {
                cpu(true)
            }
            Err(error) => Err(RuntimeError::from(error).into()),
        }
    }
}
