//! Every kernel that the suite's graphs select on devices of many kinds, for shader checks without such devices.

use std::collections::HashSet;

use super::{Case, Tolerance, cases, lesser};
use crate::{
    gpu::{DeviceFacts, Dialect, Dispatch, GpuCall, MatrixInt8, MatrixUnits, Part},
    graph::{Graph, backward},
};

/// A kernel with its parts and constants, as some device would run it.
#[derive(Debug)]
pub struct Variant {
    /// Kernel, parts, constants and bindings, as in the label of its pipeline.
    pub label: String,
    /// A dispatch of it.
    pub dispatch: Dispatch,
    /// The device that selected it.
    pub facts: DeviceFacts,
}

impl Variant {
    /// Whether compilers of a dialect support it: each syntax of matrix units belongs to one dialect.
    pub fn is_in(&self, dialect: Dialect) -> bool {
        let foreign = match dialect {
            Dialect::Naga => "chromium",
            Dialect::Browser => "wgpu",
        };
        let supported =
            |part: &&'static Part| part.kind != "matrix" || !part.name.contains(foreign);
        self.dispatch.parts.iter().all(supported)
    }
}

/// All variants that the suite's graphs need on any of [`devices`], each once.
pub fn variants() -> Vec<Variant> {
    let devices = devices();
    let mut seen = HashSet::new();
    let mut variants = Vec::new();
    for graph in cases().iter().flat_map(Case::graphs) {
        for facts in &devices {
            for dispatch in dispatches(&graph, facts) {
                let label = dispatch.label();
                if seen.insert((label.clone(), dispatch.params.len())) {
                    variants.push(Variant { label, dispatch, facts: facts.clone() });
                }
            }
        }
    }
    variants
}

/// Devices that differ in all facts that kernel selection depends on, the least capable first.
pub fn devices() -> Vec<DeviceFacts> {
    let large = DeviceFacts {
        binding_bytes: 2 << 30,
        buffer_bytes: 4 << 30,
        storage_buffers: 16,
        invocations: 1024,
        workgroup_bytes: 32 << 10,
        packed_dot: true,
        timestamps: true,
        ..DeviceFacts::floor()
    };
    let widths = [(4, 4), (8, 8), (16, 32), (32, 32), (64, 64), (4, 128)].map(Some);
    let mut devices = Vec::new();
    // Some tiles need a little more workgroup memory than most devices have.
    let larger = DeviceFacts { workgroup_bytes: 48 << 10, ..large.clone() };
    for size in [DeviceFacts::floor(), large, larger] {
        for subgroups in [None].into_iter().chain(widths) {
            for f16 in [false, true] {
                let units = f16 && subgroups == Some((32, 32)) && size.workgroup_bytes > 16 << 10;
                for matrix in [MatrixUnits::Wgpu16, MatrixUnits::Chromium16] {
                    let matrix = units.then_some(matrix);
                    let device = DeviceFacts { f16, subgroups, matrix, ..size.clone() };
                    devices.extend(lesser(&device).into_iter().map(|(_, facts)| facts));
                }
                if subgroups == Some((32, 32)) {
                    let matrix_int8 = Some(MatrixInt8::Chromium);
                    devices.push(DeviceFacts { f16, subgroups, matrix_int8, ..size.clone() });
                }
            }
        }
    }
    let mut unique: Vec<DeviceFacts> = Vec::new();
    devices.retain(|facts| {
        let new = !unique.contains(facts);
        if new {
            unique.push(facts.clone());
        }
        new
    });
    devices
}

/// A pipeline's label, parameters and workgroups.
pub type DispatchRecord = (String, Vec<u8>, [u32; 3]);

impl Case {
    /// The graphs of the case: its own, and if gradients are checked, the one that computes them.
    pub fn graphs(&self) -> Vec<Graph> {
        let mut graph = Graph::new();
        let results = (self.build)(&mut graph);
        let mut graphs = vec![graph];
        if self.gradient {
            let mut graph = Graph::new();
            (self.build)(&mut graph);
            let seed = graph.input("dy", graph.ty(results[0]).clone());
            let wrt: Vec<_> = super::check::differentiable(&graph)
                .into_iter()
                .map(|(value, _)| value)
                .filter(|value| *value != seed)
                .collect();
            backward(&mut graph, results[0], seed, &wrt);
            graphs.push(graph);
        }
        graphs
    }

    /// The tolerance on a device: matrix units round their factors, and so do packed dot products.
    pub(super) fn tolerance_on(&self, facts: &DeviceFacts) -> Tolerance {
        let tolerance = match self.by_matrix_units(facts) {
            true => self.tolerance.half_factors(),
            false => self.tolerance,
        };
        if self.has_part(facts, |part| part.name == "quantise/int8_pair") {
            return tolerance.int8_factors();
        }
        tolerance
    }

    /// Whether a device computes part of it with matrix units.
    pub fn by_matrix_units(&self, facts: &DeviceFacts) -> bool {
        self.has_part(facts, |part| part.kind == "matrix")
    }

    fn has_part(&self, facts: &DeviceFacts, wanted: impl Fn(&Part) -> bool) -> bool {
        dispatches(&self.graphs()[0], facts)
            .any(|dispatch| dispatch.parts.iter().any(|part| wanted(part)))
    }

    /// All dispatches of its graphs on a device: kernels with their constants, parameters and workgroups.
    pub fn dispatches(&self, facts: &DeviceFacts) -> Vec<DispatchRecord> {
        let record = |dispatch: Dispatch| (dispatch.label(), dispatch.params, dispatch.grid);
        let graphs = self.graphs();
        graphs.iter().flat_map(|graph| dispatches(graph, facts).map(record)).collect()
    }

    /// Number of workgroups of its graph on a device, the cost on a slow one.
    pub fn workgroups(&self, facts: &DeviceFacts) -> u64 {
        let count =
            |dispatch: Dispatch| dispatch.grid.iter().map(|n| u64::from(*n)).product::<u64>();
        dispatches(&self.graphs()[0], facts).map(count).sum()
    }
}

/// The dispatches of a graph on a device, in order.
pub(super) fn dispatches(graph: &Graph, facts: &DeviceFacts) -> impl Iterator<Item = Dispatch> {
    GpuCall::dispatches(facts, graph).map(|(_, dispatch)| dispatch)
}
