//! Memory read bandwidth of a device, the roofline of memory-bound kernels.

use std::collections::HashMap;

use bytemuck::NoUninit;

use super::bench::{Clock, time};
use crate::{
    cpu::CpuCall,
    error::EngineError,
    gpu::{BufferRef, Dispatch, Gpu, GpuCall, GpuPlan, Kernel, Weights},
    graph::{Graph, Op, Step, Type},
};

static READ: Kernel = Kernel { name: "bandwidth/read", source: include_str!("read.wgsl") };

/// Lanes of a workgroup.
const GROUP: usize = 256;
/// Workgroups: enough to fill the largest device several times over.
const GROUPS: usize = 4096;
/// Maximum buffer size: far more than any cache, less than the memory of small devices.
const MAX_BYTES: u64 = 1 << 30;

/// Bytes per second of a kernel that only reads, the best of several runs.
///
/// # Errors
/// If the device fails or has no memory for the buffer.
pub async fn read_bandwidth(gpu: &Gpu, clock: &Clock<'_>) -> Result<f64, EngineError> {
    // A software renderer would take seconds for a buffer that a GPU reads in a millisecond.
    let most = if gpu.is_software() { 64 << 20 } else { MAX_BYTES };
    let values = usize::try_from(most.min(gpu.facts().binding_bytes) / 4).unwrap_or(usize::MAX);
    let mut graph = Graph::new();
    let x = graph.input("x", Type::f32([values / GROUP * GROUP]));
    let y = graph.apply(Read, &[x]);
    graph.keep(y);
    let plan = GpuPlan::new(graph, &Weights::new(gpu), &mut HashMap::new()).await?;
    let runs = time(&plan, &Step::default(), y, clock).await?;
    let best = runs.iter().map(|run| run[0].nanoseconds).fold(f64::INFINITY, f64::min);
    Ok(values as f64 * 4.0 / best * 1e9)
}

/// One sum per lane, so that no read is optimised away.
#[derive(Debug)]
struct Read;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    vec4s: u32,
}

impl Op for Read {
    fn name(&self) -> &'static str {
        "bandwidth"
    }

    fn infer(&self, _: &[&Type]) -> Vec<Type> {
        vec![Type::f32([GROUPS * GROUP])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, mut y) = (call.f32(0), call.out(0));
        for (i, vec4) in x.chunks_exact(4).enumerate() {
            y[i % (GROUPS * GROUP)] += vec4.iter().sum::<f32>();
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let vec4s = (call.input(0).shape.len() / 4) as u32;
        let dispatch = Dispatch::new(&READ).params(&Params { vec4s });
        vec![dispatch.read(BufferRef::Input(0)).write(BufferRef::Output(0)).grid_over(GROUPS)]
    }
}
