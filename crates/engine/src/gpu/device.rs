//! The GPU device: opening it, its features and facts, loss detection.

use std::{
    cell::Cell,
    rc::Rc,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    Allocated, Buffer, DeviceFacts, MatrixInt8, MatrixUnits, States, Tuning,
    pipeline_cache::{PipelineCache, PipelineStore},
    pipelines::Pipelines,
    readback::{self, StagingPool},
};
use crate::error::EngineError;

/// Features that kernels have variants for.
const USEFUL: wgpu::Features = wgpu::Features::SHADER_F16
    .union(wgpu::Features::SUBGROUP)
    .union(wgpu::Features::SUBGROUP_BARRIER)
    .union(wgpu::Features::TIMESTAMP_QUERY)
    .union(MATRIX);

/// Matrix units (cooperative matrices), which wgpu calls experimental.
const MATRIX: wgpu::Features = wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX;

/// A device with its queue and facts.
#[derive(Debug, Clone)]
pub struct Gpu {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) backend: wgpu::Backend,
    facts: Rc<DeviceFacts>,
    name: String,
    driver: String,
    software: bool,
    discrete: bool,
    lost: Arc<AtomicBool>,
    refused: Arc<OnceLock<String>>,
    pub(super) pipelines: Rc<Pipelines>,
    pub(super) staging: Rc<StagingPool>,
    pub(super) traffic: Rc<Cell<Traffic>>,
    allocated: Rc<Cell<Allocated>>,
}

/// Which adapter to open, and facts about it that wgpu does not report. In browsers wgpu knows neither names nor types of adapters nor
/// their backend, and does not request subgroups or matrix units.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// Prefers the adapter that uses less power.
    pub low_power: bool,
    /// Smallest and largest subgroup size.
    pub subgroups: Option<(u32, u32)>,
    /// Packed int8 dot products are single instructions.
    pub packed_dot: bool,
    /// Matrix units; used only if all subgroups have 32 lanes and f16 is available.
    pub matrix: Option<MatrixUnits>,
    /// Matrix units for int8; used only if all subgroups have 32 lanes.
    pub matrix_int8: Option<MatrixInt8>,
    /// Display name of the adapter.
    pub name: Option<String>,
    /// Whether it is a software renderer.
    pub software: bool,
    /// Where compiled pipelines are kept between runs; used if the adapter has pipeline caches, as Vulkan's do.
    pub pipelines: Option<Rc<dyn PipelineStore>>,
}

/// Transfers since a device was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of queue submits.
    pub submits: u64,
    /// Bytes read back.
    pub bytes_read_back: u64,
}

impl Gpu {
    /// Opens the default high-performance adapter, with all features that kernels can use.
    ///
    /// # Errors
    /// If there is no adapter, or it gives no device.
    pub async fn open() -> Result<Self, EngineError> {
        Self::open_with(OpenOptions::default()).await
    }

    /// Opens an adapter with options.
    ///
    /// # Errors
    /// If there is no adapter, or it gives no device.
    pub async fn open_with(options: OpenOptions) -> Result<Self, EngineError> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let request = wgpu::RequestAdapterOptions {
            power_preference: match options.low_power {
                true => wgpu::PowerPreference::LowPower,
                false => wgpu::PowerPreference::HighPerformance,
            },
            ..Default::default()
        };
        let adapter = instance
            .request_adapter(&request)
            .await
            .map_err(|source| EngineError::NoAdapter { source })?;
        let gpu = Self::from_adapter(&adapter, options.pipelines).await?;
        let subgroups = options.subgroups.or(gpu.facts.subgroups);
        let packed_dot = gpu.facts.packed_dot || options.packed_dot;
        let (name, software) = (options.name.unwrap_or(gpu.name), gpu.software || options.software);
        let usable = gpu.facts.f16 && subgroups == Some((32, 32));
        let matrix = options.matrix.filter(|_| usable).or(gpu.facts.matrix);
        let matrix_int8 = options.matrix_int8.filter(|_| subgroups == Some((32, 32)));
        let facts =
            DeviceFacts { subgroups, matrix, matrix_int8, packed_dot, ..(*gpu.facts).clone() };
        Ok(Self { name, software, facts: facts.into(), ..gpu })
    }

    async fn from_adapter(
        adapter: &wgpu::Adapter,
        store: Option<Rc<dyn PipelineStore>>,
    ) -> Result<Self, EngineError> {
        let mut useful = USEFUL;
        useful.set(wgpu::Features::PIPELINE_CACHE, store.is_some());
        let (features, limits) = (adapter.features() & useful, adapter.limits());
        let info = adapter.get_info();
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("rullama"),
            required_features: features,
            required_limits: limits.clone(),
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            experimental_features: experimental(features),
            ..Default::default()
        };
        let (device, queue) = adapter
            .request_device(&descriptor)
            .await
            .map_err(|source| EngineError::NoDevice { source })?;
        let lost = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&lost);
        device.set_device_lost_callback(move |_, _| flag.store(true, Ordering::Relaxed));
        let refused = Arc::new(OnceLock::new());
        let first = Arc::clone(&refused);
        // Without a handler wgpu panics; a device that is being lost rejects commands before the loss is reported.
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            // Only the first error counts, later ones follow from it.
            let _ = first.set(error.to_string());
        }));
        let cache = match store {
            Some(store) => PipelineCache::open(&device, &info, store).await,
            None => None,
        };
        let subgroups = features.contains(wgpu::Features::SUBGROUP);
        let facts = DeviceFacts {
            f16: features.contains(wgpu::Features::SHADER_F16),
            subgroups: subgroups.then_some((info.subgroup_min_size, info.subgroup_max_size)),
            matrix: matrix_units(adapter, features, &info),
            // wgpu supports none.
            matrix_int8: None,
            binding_bytes: limits.max_storage_buffer_binding_size,
            buffer_bytes: limits.max_buffer_size,
            storage_buffers: limits.max_storage_buffers_per_shader_stage,
            invocations: limits.max_compute_invocations_per_workgroup,
            workgroup_bytes: limits.max_compute_workgroup_storage_size,
            // WebGPU guarantees the function, not its speed; these two backends have an instruction for it.
            packed_dot: matches!(info.backend, wgpu::Backend::Vulkan | wgpu::Backend::Dx12),
            tuning: Tuning::default(),
            timestamps: features.contains(wgpu::Features::TIMESTAMP_QUERY),
        };
        Ok(Self {
            device,
            queue,
            backend: info.backend,
            facts: facts.into(),
            software: info.device_type == wgpu::DeviceType::Cpu,
            discrete: info.device_type == wgpu::DeviceType::DiscreteGpu,
            driver: driver(&info),
            name: info.name,
            lost,
            refused,
            pipelines: Rc::new(Pipelines::new(cache)),
            staging: Rc::default(),
            traffic: Rc::default(),
            allocated: Rc::default(),
        })
    }

    /// Opens every adapter of this machine.
    ///
    /// # Errors
    /// If an adapter cannot be opened.
    pub async fn all() -> Result<Vec<Self>, EngineError> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let mut devices = Vec::new();
        for adapter in instance.enumerate_adapters(wgpu::Backends::all()).await {
            devices.push(Self::from_adapter(&adapter, None).await?);
        }
        Ok(devices)
    }

    /// The same device with the facts of a lesser one, by which kernels are selected.
    #[must_use]
    pub fn emulating(&self, facts: DeviceFacts) -> Self {
        Self { facts: facts.into(), ..self.clone() }
    }

    /// The same device with other constants of kernel selection.
    #[must_use]
    pub fn tuned(&self, tuning: Tuning) -> Self {
        self.emulating(DeviceFacts { tuning, ..(*self.facts).clone() })
    }

    /// The same device without kernels that round more than f32 sums do: matrix units, which take f16 or int8 pairs.
    #[must_use]
    pub fn exact(&self) -> Self {
        self.emulating(DeviceFacts { matrix: None, matrix_int8: None, ..(*self.facts).clone() })
    }

    /// The facts that kernel selection depends on.
    pub fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    /// The adapter's display name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Backend and driver with version, where known.
    pub fn driver(&self) -> &str {
        &self.driver
    }

    /// Whether the adapter is a software renderer, useful only for tests.
    pub fn is_software(&self) -> bool {
        self.software
    }

    /// Transfers so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic.get()
    }

    /// Bytes of all buffers on the device: weights, caches, activations, staging.
    pub fn allocated(&self) -> Allocated {
        self.allocated.get()
    }

    /// Submits commands to the device.
    pub(super) fn submit(
        &self,
        commands: impl IntoIterator<Item = wgpu::CommandBuffer>,
    ) -> wgpu::SubmissionIndex {
        let mut traffic = self.traffic.get();
        traffic.submits += 1;
        self.traffic.set(traffic);
        self.queue.submit(commands)
    }

    /// Whether the adapter is known to have dedicated memory.
    pub fn is_discrete(&self) -> bool {
        self.discrete
    }

    /// Labels of the pipelines compiled so far, on this device at all feature levels: which variants were selected.
    pub fn pipeline_labels(&self) -> Vec<String> {
        self.pipelines.labels()
    }

    /// What the driver has compiled so far, to be loaded by a [`PipelineStore`] in a later run. `None` without
    /// [`OpenOptions::pipelines`], if the adapter has no pipeline caches, and if the device is lost.
    pub fn pipeline_cache(&self) -> Option<Vec<u8>> {
        self.pipelines.cache()?.data()
    }

    /// Fails if the device is lost or has rejected a command.
    pub(super) fn check(&self) -> Result<(), EngineError> {
        if self.lost.load(Ordering::Relaxed) {
            return Err(EngineError::DeviceLost);
        }
        match self.refused.get() {
            None => Ok(()),
            Some(message) => Err(EngineError::Refused { message: message.clone() }),
        }
    }

    /// Destroys the device, as a driver reset would.
    pub fn destroy(&self) {
        self.device.destroy();
        // Natively the loss is noticed by polling; browsers report it. Polling a lost device may fail.
        let _ = self.device.poll(wgpu::PollType::Poll);
    }

    /// Copies states into new buffers.
    pub(crate) async fn copy_states(&self, states: &States) -> Result<States, EngineError> {
        let mut encoder =
            self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut copies = States::new();
        for (name, buffer) in states {
            let copy = self.buffer(name, buffer.size(), buffer.usage()).await?;
            encoder.copy_buffer_to_buffer(buffer, 0, &copy, 0, buffer.size());
            copies.insert(name.clone(), copy);
        }
        self.submit([encoder.finish()]);
        Ok(copies)
    }

    /// The first bytes of a buffer, after everything that was queued.
    pub(crate) async fn read_buffer(
        &self,
        buffer: &wgpu::Buffer,
        bytes: u64,
    ) -> Result<Vec<u8>, EngineError> {
        let mut read = readback::read(self, buffer, bytes.next_multiple_of(4)).await?;
        read.truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
        Ok(read)
    }

    /// Queues a write, padded to whole words.
    pub(crate) fn write_buffer(&self, buffer: &wgpu::Buffer, bytes: &[u8]) {
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(4), 0);
        self.queue.write_buffer(buffer, 0, &padded);
    }

    /// Creates a buffer; running out of memory is an error, not a lost device.
    pub(super) async fn buffer(
        &self,
        label: &str,
        bytes: u64,
        usage: wgpu::BufferUsages,
    ) -> Result<Buffer, EngineError> {
        self.check()?;
        if bytes > self.facts.buffer_bytes {
            return Err(EngineError::OutOfMemory { what: label.into(), bytes });
        }
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let descriptor = wgpu::BufferDescriptor {
            label: Some(label),
            size: bytes,
            usage,
            mapped_at_creation: false,
        };
        let buffer = self.device.create_buffer(&descriptor);
        match scope.pop().await {
            None => Ok(Buffer::new(buffer, &self.allocated)),
            Some(_) => Err(EngineError::OutOfMemory { what: label.into(), bytes }),
        }
    }
}

/// Backend and driver of an adapter.
fn driver(info: &wgpu::AdapterInfo) -> String {
    let parts = [info.backend.to_str(), &info.driver, &info.driver_info];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Consent to wgpu's experimental features, if the device has one that is used.
#[expect(
    unsafe_code,
    reason = "wgpu asks for consent to experimental features by an unsafe function"
)]
fn experimental(features: wgpu::Features) -> wgpu::ExperimentalFeatures {
    if !features.contains(MATRIX) {
        return wgpu::ExperimentalFeatures::disabled();
    }
    // SAFETY: no memory safety on the host is at stake; the function warns of bugs in wgpu's new features. The one feature enabled here
    // adds instructions to kernels, which access with them only workgroup memory at indices the kernels bound themselves, and blocks of
    // heads and of x in scratch buffers that are allocated for whole blocks.
    unsafe { wgpu::ExperimentalFeatures::enabled() }
}

/// The matrix units that kernels have a variant for, if the adapter offers them.
fn matrix_units(
    adapter: &wgpu::Adapter,
    features: wgpu::Features,
    info: &wgpu::AdapterInfo,
) -> Option<MatrixUnits> {
    let subgroups = wgpu::Features::SUBGROUP | wgpu::Features::SUBGROUP_BARRIER;
    let needs = MATRIX | wgpu::Features::SHADER_F16 | subgroups;
    // Kernels compute an invocation's subgroup by division, so all subgroups must have one size, and tiles are chosen for 32 lanes.
    let usable =
        features.contains(needs) && (info.subgroup_min_size, info.subgroup_max_size) == (32, 32);
    let wanted = |form: &wgpu::CooperativeMatrixProperties| {
        (form.m_size, form.n_size, form.k_size) == (16, 16, 16)
            && form.ab_type == wgpu::CooperativeScalarType::F16
            && form.cr_type == wgpu::CooperativeScalarType::F32
    };
    let offered = usable && adapter.cooperative_matrix_properties().iter().any(wanted);
    offered.then_some(MatrixUnits::Wgpu16)
}
