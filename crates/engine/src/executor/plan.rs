//! A graph prepared for either executor.

use super::{Memory, Weights};
use crate::{
    cpu::{CpuPlan, Data},
    error::EngineError,
    gpu::{GpuPlan, PendingReadback, profile::Table},
    graph::{Cost, Element, Graph, Origin, Step, Type, Value},
    precision,
};

/// A graph prepared for a device.
#[derive(Debug)]
pub enum Plan {
    /// Operation by operation on the CPU.
    Cpu(CpuPlan),
    /// One pass on a GPU.
    Gpu(Box<GpuPlan>),
}

/// The results of a run, possibly still in flight.
#[derive(Debug)]
pub enum Results {
    /// Ready.
    Ready(Vec<Data>),
    /// Being read back from a GPU.
    Pending(Box<PendingReadback>, Vec<Type>),
}

impl Plan {
    /// Prepares a graph: `memory` holds the states of the session's earlier plans, and gets the new ones.
    ///
    /// # Errors
    /// If a weight is missing, a kernel is rejected or memory runs out.
    ///
    /// # Panics
    /// If weights and memory are on different executors.
    pub async fn new(
        graph: Graph,
        weights: &Weights,
        memory: &mut Memory,
    ) -> Result<Self, EngineError> {
        match (weights, memory) {
            (Weights::Cpu(weights), Memory::Cpu(states)) => {
                let find = |name: &str, _: &Type| weights.get(name).cloned();
                Ok(Self::Cpu(CpuPlan::with_states(graph, find, states)?))
            }
            (Weights::Gpu(weights), Memory::Gpu(_, states)) => {
                Ok(Self::Gpu(Box::new(GpuPlan::new(graph, weights, states).await?)))
            }
            _ => panic!("weights and memory are on different executors"),
        }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        match self {
            Self::Cpu(plan) => plan.graph(),
            Self::Gpu(plan) => plan.graph(),
        }
    }

    /// Whether the graph has an input or a state of this name.
    pub fn has(&self, name: &str) -> bool {
        let named =
            |origin: &Origin| matches!(origin, Origin::Input(n) | Origin::State(n) if n == name);
        self.graph().values().any(|(_, info)| named(&info.origin))
    }

    /// Writes ids into an input or a state, for the runs that follow.
    ///
    /// # Panics
    /// If the graph has no such input or state.
    pub fn write_ids(&self, name: &str, ids: Vec<u32>) {
        match self {
            Self::Cpu(plan) => plan.write(name, Data::U32(ids)),
            Self::Gpu(plan) => plan.write(name, bytemuck::cast_slice(&ids)),
        }
    }

    /// Like [`Self::write_ids`], from little-endian bytes.
    ///
    /// # Panics
    /// If the graph has no such input or state.
    pub fn write_words(&self, name: &str, bytes: &[u8]) {
        match self {
            Self::Cpu(plan) => plan.write(name, Data::U32(bytemuck::pod_collect_to_vec(bytes))),
            Self::Gpu(plan) => plan.write(name, bytes),
        }
    }

    /// Writes an f32 input, for the runs that follow.
    ///
    /// # Panics
    /// If the graph has no such input.
    pub fn write_f32(&self, name: &str, values: Vec<f32>) {
        match self {
            Self::Cpu(plan) => plan.write(name, Data::F32(values)),
            Self::Gpu(plan) => plan.write(name, bytemuck::cast_slice(&values)),
        }
    }

    /// Queues one run.
    ///
    /// # Errors
    /// If the device is lost.
    pub fn run(&self, step: &Step) -> Result<(), EngineError> {
        match self {
            Self::Cpu(plan) => {
                plan.run(step);
                Ok(())
            }
            Self::Gpu(plan) => plan.run(step),
        }
    }

    /// Queues one run that reads some values back (kept ones, inputs or states); on a GPU more runs may be queued before they arrive.
    ///
    /// # Errors
    /// If the device is lost or has no memory for the copies.
    pub async fn run_reading(&self, step: &Step, values: &[Value]) -> Result<Results, EngineError> {
        match self {
            Self::Cpu(plan) => {
                plan.run(step);
                Ok(Results::Ready(values.iter().map(|value| plan.data(*value)).collect()))
            }
            Self::Gpu(plan) => {
                let types = values.iter().map(|value| plan.graph().ty(*value).clone()).collect();
                Ok(Results::Pending(Box::new(plan.run_reading(step, values).await?), types))
            }
        }
    }

    /// Records the commands of the next run in advance, while the device is busy.
    pub fn prepare(&self) {
        if let Self::Gpu(plan) = self {
            plan.prepare();
        }
    }

    /// The cost of a run, on any device.
    pub fn cost(&self, step: &Step) -> Cost {
        match self {
            Self::Cpu(plan) => plan.graph().cost(step),
            Self::Gpu(plan) => plan.cost(step),
        }
    }

    /// Times of each kernel of a run, by timestamps around every dispatch; `None` on the CPU. States change as by two runs.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn profile(&self, step: &Step) -> Result<Option<Table>, EngineError> {
        let Self::Gpu(plan) = self else { return Ok(None) };
        // The first run raises the GPU's clock rate.
        plan.profile(step).await?;
        let run = plan.profile(step).await?;
        Ok(Some(plan.profile_table(&[run], step, None)))
    }

    /// Bytes of the buffers that only this plan uses.
    pub fn gpu_bytes(&self) -> u64 {
        match self {
            Self::Cpu(_) => 0,
            Self::Gpu(plan) => plan.own_bytes(),
        }
    }
}

impl Results {
    /// Waits for the values, in the order of the request.
    ///
    /// # Errors
    /// If the device is lost or does not respond.
    pub async fn wait(self) -> Result<Vec<Data>, EngineError> {
        match self {
            Self::Ready(data) => Ok(data),
            Self::Pending(readback, types) => {
                let parts = readback.wait().await?;
                Ok(parts.iter().zip(&types).map(|(bytes, ty)| decode(bytes, ty)).collect())
            }
        }
    }
}

fn decode(bytes: &[u8], ty: &Type) -> Data {
    let len = ty.shape.len();
    match ty.element {
        Element::U32 => Data::U32(bytemuck::pod_collect_to_vec(&bytes[..len * 4])),
        element => Data::F32(precision::decode(element, bytes, len)),
    }
}
