//! The device: found, queried for its features, watched for loss.

use std::{
    cell::Cell,
    rc::Rc,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    Buffer, DeviceFacts, Held, MatrixInt8, MatrixUnits, States,
    pipelines::Pipelines,
    readback::{self, Landing},
};
use crate::error::EngineError;

/// What kernels have variants for.
const USEFUL: wgpu::Features = wgpu::Features::SHADER_F16
    .union(wgpu::Features::SUBGROUP)
    .union(wgpu::Features::TIMESTAMP_QUERY)
    .union(MATRIX);

/// Matrix units, which wgpu calls experimental.
const MATRIX: wgpu::Features = wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX;

/// A device with its queue and facts.
#[derive(Debug, Clone)]
pub struct Gpu {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) backend: wgpu::Backend,
    facts: DeviceFacts,
    name: String,
    software: bool,
    discrete: bool,
    lost: Arc<AtomicBool>,
    refused: Arc<OnceLock<String>>,
    pub(super) pipelines: Rc<Pipelines>,
    pub(super) landing: Rc<Landing>,
    pub(super) traffic: Rc<Cell<Traffic>>,
    held: Rc<Cell<Held>>,
}

/// Which adapter is wanted, and what is known about it that wgpu does not tell. Browsers tell wgpu neither names nor kinds of
/// adapters nor what they run on, and wgpu asks them neither for subgroups nor for matrix units.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Rather the adapter that takes less power.
    pub low_power: bool,
    /// Smallest and largest width of the subgroups that the device will have.
    pub subgroups: Option<(u32, u32)>,
    /// Products of packed bytes are single instructions on it.
    pub packed_dot: bool,
    /// Matrix units that it will have, where all subgroups have 32 lanes and kernels may use halves.
    pub matrix: Option<MatrixUnits>,
    /// Matrix units of bytes that it will have, where all subgroups have 32 lanes.
    pub matrix_int8: Option<MatrixInt8>,
    /// What to call it.
    pub name: Option<String>,
    /// It is a program on the CPU.
    pub software: bool,
}

/// What went to and from a device since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Command buffers submitted together.
    pub submits: u64,
    /// Bytes that came back.
    pub bytes_read_back: u64,
}

impl Gpu {
    /// The adapter with the most to offer, with everything we can use switched on.
    ///
    /// # Errors
    /// If there is no adapter, or it gives no device.
    pub async fn open() -> Result<Self, EngineError> {
        Self::open_with(OpenOptions::default()).await
    }

    /// An adapter of this machine's choice, as [`Self::open`], under some wishes.
    ///
    /// # Errors
    /// If there is no adapter, or it gives no device.
    pub async fn open_with(wishes: OpenOptions) -> Result<Self, EngineError> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let options = wgpu::RequestAdapterOptions {
            power_preference: match wishes.low_power {
                true => wgpu::PowerPreference::LowPower,
                false => wgpu::PowerPreference::HighPerformance,
            },
            ..Default::default()
        };
        let adapter = instance
            .request_adapter(&options)
            .await
            .map_err(|source| EngineError::NoAdapter { source })?;
        let gpu = Self::from_adapter(&adapter).await?;
        let subgroups = wishes.subgroups.or(gpu.facts.subgroups);
        let packed_dot = gpu.facts.packed_dot || wishes.packed_dot;
        let (name, software) = (wishes.name.unwrap_or(gpu.name), gpu.software || wishes.software);
        let usable = gpu.facts.f16 && subgroups == Some((32, 32));
        let matrix = wishes.matrix.filter(|_| usable).or(gpu.facts.matrix);
        let matrix_int8 = wishes.matrix_int8.filter(|_| subgroups == Some((32, 32)));
        let facts = DeviceFacts { subgroups, matrix, matrix_int8, packed_dot, ..gpu.facts };
        Ok(Self { name, software, facts, ..gpu })
    }

    async fn from_adapter(adapter: &wgpu::Adapter) -> Result<Self, EngineError> {
        let (features, limits) = (adapter.features() & USEFUL, adapter.limits());
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
        // Without a handler wgpu panics; a device that is being lost refuses commands before we hear of the loss.
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            // The first one says what went wrong, later ones follow from it.
            let _ = first.set(error.to_string());
        }));
        let subgroups = features.contains(wgpu::Features::SUBGROUP);
        let facts = DeviceFacts {
            f16: features.contains(wgpu::Features::SHADER_F16),
            subgroups: subgroups.then_some((info.subgroup_min_size, info.subgroup_max_size)),
            matrix: matrix_units(adapter, features, &info),
            // wgpu has none.
            matrix_int8: None,
            binding_bytes: limits.max_storage_buffer_binding_size,
            buffer_bytes: limits.max_buffer_size,
            storage_buffers: limits.max_storage_buffers_per_shader_stage,
            invocations: limits.max_compute_invocations_per_workgroup,
            workgroup_bytes: limits.max_compute_workgroup_storage_size,
            // WebGPU promises the function, not its speed; these two have an instruction for it.
            packed_dot: matches!(info.backend, wgpu::Backend::Vulkan | wgpu::Backend::Dx12),
            busy_lanes: DeviceFacts::floor().busy_lanes,
            timestamps: features.contains(wgpu::Features::TIMESTAMP_QUERY),
        };
        Ok(Self {
            device,
            queue,
            backend: info.backend,
            facts,
            software: info.device_type == wgpu::DeviceType::Cpu,
            discrete: info.device_type == wgpu::DeviceType::DiscreteGpu,
            name: info.name,
            lost,
            refused,
            pipelines: Rc::default(),
            landing: Rc::default(),
            traffic: Rc::default(),
            held: Rc::default(),
        })
    }

    /// Every adapter of this machine, with all it offers.
    ///
    /// # Errors
    /// If an adapter gives no device.
    pub async fn all() -> Result<Vec<Self>, EngineError> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let mut devices = Vec::new();
        for adapter in instance.enumerate_adapters(wgpu::Backends::all()).await {
            devices.push(Self::from_adapter(&adapter).await?);
        }
        Ok(devices)
    }

    /// The same device, playing one that offers less: kernels are chosen by facts.
    #[must_use]
    pub fn playing(&self, facts: DeviceFacts) -> Self {
        Self { facts, ..self.clone() }
    }

    /// The same device without kernels that round more than f32 sums do: matrix units take f16 or int8 pairs.
    #[must_use]
    pub fn exact(&self) -> Self {
        self.playing(DeviceFacts { matrix: None, matrix_int8: None, ..self.facts.clone() })
    }

    /// What the device offers.
    pub fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    /// The adapter's name, for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the adapter is a program on the CPU, good for tests alone.
    pub fn is_software(&self) -> bool {
        self.software
    }

    /// What went to and from the device so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic.get()
    }

    /// Bytes of all buffers on the device: weights, caches, activations and whatever else there is.
    pub fn held(&self) -> Held {
        self.held.get()
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

    /// Whether the adapter is known to have memory of its own.
    pub fn is_discrete(&self) -> bool {
        self.discrete
    }

    /// Labels of the pipelines compiled so far, on this device and those it plays: which variants were chosen.
    pub fn pipeline_labels(&self) -> Vec<String> {
        self.pipelines.labels()
    }

    /// Fails once the device is gone or has refused a command.
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
        // Natively the loss is noticed by looking; a browser tells us by itself. A device that is gone cannot answer.
        let _ = self.device.poll(wgpu::PollType::Poll);
    }

    /// Copies of states.
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

    /// The first bytes of a buffer, after all that was queued before.
    pub(crate) async fn read_buffer(
        &self,
        buffer: &wgpu::Buffer,
        bytes: u64,
    ) -> Result<Vec<u8>, EngineError> {
        let mut read = readback::read(self, buffer, bytes.next_multiple_of(4)).await?;
        read.truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
        Ok(read)
    }

    /// Queues a write of whole words.
    pub(crate) fn write_buffer(&self, buffer: &wgpu::Buffer, bytes: &[u8]) {
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(4), 0);
        self.queue.write_buffer(buffer, 0, &padded);
    }

    /// A buffer, or an error one can react to when there is no memory for it.
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
            None => Ok(Buffer::new(buffer, &self.held)),
            Some(_) => Err(EngineError::OutOfMemory { what: label.into(), bytes }),
        }
    }
}

/// Consent to what wgpu calls experimental, where the device offers it.
#[expect(
    unsafe_code,
    reason = "wgpu asks for consent to experimental features by an unsafe function"
)]
fn experimental(features: wgpu::Features) -> wgpu::ExperimentalFeatures {
    if !features.contains(MATRIX) {
        return wgpu::ExperimentalFeatures::disabled();
    }
    // SAFETY: there is no memory to keep safe on our side; the function warns of bugs in wgpu's new features. The one we switch on
    // adds instructions to kernels, and ours reach with them workgroup memory of their own, at indices they bound themselves, and blocks of
    // heads in scratch memory that is made for whole blocks.
    unsafe { wgpu::ExperimentalFeatures::enabled() }
}

/// The form of matrix units that kernels have a variant for, if it is offered.
fn matrix_units(
    adapter: &wgpu::Adapter,
    features: wgpu::Features,
    info: &wgpu::AdapterInfo,
) -> Option<MatrixUnits> {
    let needs = MATRIX | wgpu::Features::SHADER_F16 | wgpu::Features::SUBGROUP;
    // Lanes must know their subgroup, which is a division only where all subgroups have one width; kernels are cut for this one.
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
