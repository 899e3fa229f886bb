//! A graph prepared for a device: memory, pipelines and bind groups once, then one compute pass and one submit per run.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use super::{
    Bind, Buffer, BufferRef, DeviceFacts, Dispatch, Gpu, GpuCall, Lowered, Weights, check_formats,
    memory::{Slots, assign, value_bytes, work_bytes},
    pipelines::Pipeline,
    readback::{self, PendingReadback},
    states::{STORAGE, States, create_state},
};
use crate::{
    cpu::Data,
    error::EngineError,
    graph::{Cost, Element, Graph, Node, Origin, Step, Type, Value},
    precision,
};

/// Offset between parameter structs: the uniform offset alignment of every device.
const PARAMS_STRIDE: u64 = 256;

/// A graph ready to run on a device.
#[derive(Debug)]
pub struct GpuPlan {
    gpu: Gpu,
    graph: Graph,
    dispatches: Vec<BoundDispatch>,
    step: Buffer,
    /// Owned here, used only by the bind groups.
    params: Buffer,
    memory: Memory,
    /// The commands of the next run, if they were recorded in advance.
    prerecorded: RefCell<Option<wgpu::CommandBuffer>>,
}

#[derive(Debug)]
pub(super) struct BoundDispatch {
    pub(super) node: usize,
    pub(super) pipeline: Rc<Pipeline>,
    bind_group: wgpu::BindGroup,
    grid: [u32; 3],
}

impl BoundDispatch {
    pub(super) fn encode(&self, pass: &mut wgpu::ComputePass<'_>) {
        pass.set_pipeline(&self.pipeline.compute);
        pass.set_bind_group(0, &self.bind_group, &[]);
        pass.dispatch_workgroups(self.grid[0], self.grid[1], self.grid[2]);
    }
}

/// All buffers but the weights'.
#[derive(Debug)]
struct Memory {
    slots: Slots,
    slot_buffers: Vec<Buffer>,
    named: HashMap<Value, Buffer>,
    scratch: Vec<Buffer>,
}

impl GpuPlan {
    /// Prepares a graph: `states` holds the state buffers of the session's earlier plans, and gets the new ones.
    ///
    /// # Errors
    /// If a weight is missing or in a format without kernels, a kernel is rejected or memory runs out.
    pub async fn new(
        graph: Graph,
        weights: &Weights,
        states: &mut States,
    ) -> Result<Self, EngineError> {
        let gpu = weights.gpu().clone();
        check_formats(&graph)?;
        let dispatches: Vec<(usize, Dispatch)> = GpuCall::dispatches(gpu.facts(), &graph).collect();
        let memory = Memory::new(&gpu, &graph, &dispatches, states).await?;
        let uniform = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
        let step = gpu.buffer("step", size_of::<Step>() as u64, uniform).await?;
        let params = gpu.buffer("params", params_bytes(&dispatches), uniform).await?;
        dispatches.iter().for_each(|(_, dispatch)| gpu.pipelines.start(&gpu, dispatch));
        let counters = gpu.pipelines.instrument.counters();
        let mut bound = Vec::with_capacity(dispatches.len());
        for (index, (node_index, dispatch)) in dispatches.iter().enumerate() {
            let at = index as u64 * PARAMS_STRIDE;
            gpu.queue.write_buffer(&params, at, &dispatch.params);
            let pipeline = gpu.pipelines.get(&gpu, dispatch).await?;
            let node = &graph.nodes()[*node_index];
            let mut entries = vec![
                uniform_entry(0, &params, at, dispatch.params.len().max(16)),
                uniform_entry(1, &step, 0, 16),
            ];
            for (i, bind) in dispatch.bindings.iter().enumerate() {
                let buffer = memory.buffer(&graph, node, weights, bind)?;
                entries.push(wgpu::BindGroupEntry {
                    binding: i as u32 + 2,
                    resource: buffer.as_entire_binding(),
                });
            }
            for (i, value) in dispatch.shared_reads.iter().enumerate() {
                entries.push(wgpu::BindGroupEntry {
                    binding: (2 + dispatch.bindings.len() + i) as u32,
                    resource: memory.of(*value).as_entire_binding(),
                });
            }
            if let Some(counters) = &counters {
                entries.push(wgpu::BindGroupEntry {
                    binding: entries.len() as u32,
                    resource: counters.as_entire_binding(),
                });
            }
            let bind_group = gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some(dispatch.kernel.name),
                layout: &pipeline.layout,
                entries: &entries,
            });
            bound.push(BoundDispatch {
                node: *node_index,
                pipeline,
                bind_group,
                grid: dispatch.grid,
            });
        }
        Ok(Self {
            gpu,
            graph,
            dispatches: bound,
            step,
            params,
            memory,
            prerecorded: RefCell::default(),
        })
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Writes an input or a state, for the runs that follow.
    ///
    /// # Panics
    /// If the graph has no such input or state.
    pub fn write(&self, name: &str, bytes: &[u8]) {
        let named =
            |origin: &Origin| matches!(origin, Origin::Input(n) | Origin::State(n) if n == name);
        let value =
            self.graph.values().find(|(_, info)| named(&info.origin)).map(|(value, _)| value);
        let value = value.unwrap_or_else(|| panic!("the graph has no input or state `{name}`"));
        self.gpu.queue.write_buffer(&self.memory.named[&value], 0, bytes);
    }

    /// Queues one run: one uniform write, one pass, one submit.
    ///
    /// # Errors
    /// If the device is lost.
    pub fn run(&self, step: &Step) -> Result<(), EngineError> {
        self.write_step(step)?;
        self.gpu.submit([self.commands()]);
        Ok(())
    }

    /// Queues one run and copies of some values after it, in the same submit. More runs may be queued before the copies arrive.
    ///
    /// # Errors
    /// If the device is lost or has no memory for the copies.
    pub async fn run_reading(
        &self,
        step: &Step,
        values: &[Value],
    ) -> Result<PendingReadback, EngineError> {
        self.write_step(step)?;
        let wanted: Vec<_> = values
            .iter()
            .map(|value| (self.memory.of(*value), value_bytes(self.graph.ty(*value))))
            .collect();
        readback::submit(&self.gpu, Some(self.commands()), &wanted).await
    }

    /// Records the commands of the next run in advance: encoding takes a while, which is hidden while the device is busy with a run whose
    /// results must be known before the next one is queued.
    pub fn prepare(&self) {
        let commands = self.commands();
        self.prerecorded.replace(Some(commands));
    }

    fn commands(&self) -> wgpu::CommandBuffer {
        if let Some(commands) = self.prerecorded.take() {
            return commands;
        }
        let mut encoder =
            self.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            self.dispatches.iter().for_each(|dispatch| dispatch.encode(&mut pass));
        }
        encoder.finish()
    }

    /// Writes the step uniform of the next run.
    pub(super) fn write_step(&self, step: &Step) -> Result<(), EngineError> {
        self.gpu.check()?;
        self.gpu.queue.write_buffer(&self.step, 0, bytemuck::bytes_of(step));
        Ok(())
    }

    pub(super) fn dispatches(&self) -> &[BoundDispatch] {
        &self.dispatches
    }

    pub(super) fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Waits for the queued runs and reads a value back, which must be kept, an input or a state.
    ///
    /// # Errors
    /// If the device is lost or does not respond.
    pub async fn read(&self, value: Value) -> Result<Vec<u8>, EngineError> {
        readback::read(&self.gpu, self.memory.of(value), value_bytes(self.graph.ty(value))).await
    }

    /// Writes an input or state, rounded to its precision.
    ///
    /// # Panics
    /// If the graph has no such input or state, or the data has another type.
    pub fn write_data(&self, name: &str, ty: &Type, data: &Data) {
        match (ty.element, data) {
            (Element::U32, Data::U32(ids)) => self.write(name, bytemuck::cast_slice(ids)),
            (Element::F32 | Element::F16 | Element::Q8, Data::F32(values)) => {
                let mut bytes = precision::encode(ty.element, values);
                // WebGPU writes multiples of four bytes.
                bytes.resize(bytes.len().next_multiple_of(4), 0);
                self.write(name, &bytes);
            }
            (element, _) => panic!("`{name}` is stored as {element:?}"),
        }
    }

    /// A value as f32, whatever its element type.
    ///
    /// # Errors
    /// If the device is lost or does not respond.
    pub async fn read_any(&self, value: Value) -> Result<Vec<f32>, EngineError> {
        let ty = self.graph.ty(value);
        let bytes = self.read(value).await?;
        if ty.element != Element::U32 {
            return Ok(precision::decode(ty.element, &bytes, ty.shape.len()));
        }
        let ids: Vec<u32> = bytemuck::pod_collect_to_vec(&bytes);
        Ok(ids.iter().take(ty.shape.len()).map(|id| *id as f32).collect())
    }

    /// Fills every slot with a byte pattern, so that a test notices elements that a kernel does not write.
    pub fn poison(&self) {
        for (buffer, bytes) in self.memory.slot_buffers.iter().zip(&self.memory.slots.bytes) {
            let bytes = usize::try_from(*bytes).expect("test-sized memory");
            self.gpu.queue.write_buffer(buffer, 0, &vec![0xff; bytes]);
        }
    }

    /// Labels of its pipelines, dispatch by dispatch.
    pub fn kernels(&self) -> Vec<String> {
        self.dispatches.iter().map(|dispatch| dispatch.pipeline.label.clone()).collect()
    }

    /// The cost of a run, on any device.
    pub fn cost(&self, step: &Step) -> Cost {
        Cost { dispatches: self.dispatches.len() as u64, ..self.graph.cost(step) }
    }

    /// Bytes of the buffers that only this plan uses: activations, scratch, inputs and parameters.
    pub fn own_bytes(&self) -> u64 {
        let inputs = self
            .memory
            .named
            .iter()
            .filter(|(value, _)| matches!(self.graph.info(**value).origin, Origin::Input(_)));
        let buffers = self.memory.slot_buffers.iter().chain(&self.memory.scratch);
        let all = buffers.chain(inputs.map(|(_, buffer)| buffer)).chain([&self.step, &self.params]);
        all.map(Buffer::bytes).sum()
    }
}

impl Memory {
    async fn new(
        gpu: &Gpu,
        graph: &Graph,
        dispatches: &[(usize, Dispatch)],
        states: &mut States,
    ) -> Result<Self, EngineError> {
        let slots = assign(graph);
        let mut slot_buffers = Vec::new();
        for bytes in &slots.bytes {
            slot_buffers.push(gpu.buffer("activations", *bytes, STORAGE).await?);
        }
        let mut named = HashMap::new();
        for (value, info) in graph.values() {
            let bytes = value_bytes(&info.ty);
            match &info.origin {
                Origin::Input(name) => {
                    named.insert(value, gpu.buffer(name, bytes, STORAGE).await?);
                }
                Origin::State(name) => {
                    create_state(gpu, states, name, &info.ty).await?;
                    named.insert(value, states[name].clone());
                }
                Origin::Weight(_) | Origin::Stack(_) | Origin::Node(_) => {}
            }
        }
        let mut scratch = Vec::new();
        for (index, bytes) in scratch_sizes(dispatches) {
            debug_assert_eq!(index, scratch.len());
            scratch.push(gpu.buffer("scratch", bytes, STORAGE).await?);
        }
        Ok(Self { slots, slot_buffers, named, scratch })
    }

    /// The buffer of a value that is not a weight.
    fn of(&self, value: Value) -> &wgpu::Buffer {
        match self.slots.of.get(&value) {
            Some(slot) => &self.slot_buffers[*slot],
            None => &self.named[&value],
        }
    }

    fn buffer<'a>(
        &'a self,
        graph: &Graph,
        node: &Node,
        weights: &'a Weights,
        bind: &Bind,
    ) -> Result<&'a wgpu::Buffer, EngineError> {
        let (Bind::Read(buffer) | Bind::Write(buffer)) = bind;
        let (value, slab) = match buffer {
            BufferRef::Scratch(index, _) => return Ok(&self.scratch[*index]),
            BufferRef::Input(i) => (node.inputs[*i], 0),
            BufferRef::Slab(i, slab) => (node.inputs[*i], *slab),
            BufferRef::Output(i) => (node.outputs[*i], 0),
            BufferRef::ReaderInput(i) => (graph.reader(node).inputs[*i], 0),
        };
        let origin = &graph.info(value).origin;
        match origin {
            Origin::Weight(_) | Origin::Stack(_) => {
                let name = origin.weight_name().unwrap_or_default();
                match weights.get(&name) {
                    Some(resident) => Ok(&resident.buffers[slab]),
                    None => Err(EngineError::MissingWeight { name }),
                }
            }
            Origin::Node(_) => Ok(&self.slot_buffers[self.slots.of[&value]]),
            Origin::Input(_) | Origin::State(_) => Ok(&self.named[&value]),
        }
    }
}

/// The dispatches of a graph for a device with these facts; no device is needed.
///
/// # Errors
/// If the format of a weight has no kernel.
pub fn dispatches(graph: &Graph, facts: &DeviceFacts) -> Result<Vec<Dispatch>, EngineError> {
    check_formats(graph)?;
    Ok(GpuCall::dispatches(facts, graph).map(|(_, dispatch)| dispatch).collect())
}

/// Number of dispatches of a graph for a device with these facts.
pub fn dispatch_count(graph: &Graph, facts: &DeviceFacts) -> usize {
    Lowered::new(facts, graph).dispatches().len()
}

/// [`GpuPlan::own_bytes`] of a graph for a device with these facts.
pub fn plan_bytes(graph: &Graph, facts: &DeviceFacts) -> u64 {
    let dispatches: Vec<(usize, Dispatch)> = GpuCall::dispatches(facts, graph).collect();
    let scratch: u64 = scratch_sizes(&dispatches).values().sum();
    work_bytes(graph) + scratch + params_bytes(&dispatches) + size_of::<Step>() as u64
}

fn params_bytes(dispatches: &[(usize, Dispatch)]) -> u64 {
    PARAMS_STRIDE * (dispatches.len() as u64).max(1)
}

/// Scratch buffers are shared by all operations: for each index up to the largest, the largest size that any dispatch needs.
fn scratch_sizes(dispatches: &[(usize, Dispatch)]) -> std::collections::BTreeMap<usize, u64> {
    let mut sizes = std::collections::BTreeMap::new();
    for bind in dispatches.iter().flat_map(|(_, dispatch)| &dispatch.bindings) {
        if let Bind::Read(BufferRef::Scratch(index, bytes))
        | Bind::Write(BufferRef::Scratch(index, bytes)) = bind
        {
            (0..=*index).for_each(|index| _ = sizes.entry(index).or_insert(16));
            let size = sizes.entry(*index).or_insert(16);
            *size = bytes.next_multiple_of(16).max(*size);
        }
    }
    sizes
}

fn uniform_entry(
    binding: u32,
    buffer: &wgpu::Buffer,
    offset: u64,
    bytes: usize,
) -> wgpu::BindGroupEntry<'_> {
    let resource = wgpu::BindingResource::Buffer(wgpu::BufferBinding {
        buffer,
        offset,
        size: std::num::NonZeroU64::new(bytes as u64),
    });
    wgpu::BindGroupEntry { binding, resource }
}
