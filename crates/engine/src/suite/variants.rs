//! Every kernel the suite's graphs choose, on devices of many kinds: what shader checks compile without having such a device.

use std::collections::HashSet;

use super::{Case, Tolerance, cases, lesser};
use crate::{
    gpu::{DeviceFacts, Dialect, Dispatch, GpuCall, MatrixInt8, MatrixUnits, Part},
    graph::{Graph, backward},
};

/// A kernel as some device would run it.
#[derive(Debug)]
pub struct Variant {
    /// Kernel, parts, constants and bindings, as in the label of its pipeline.
    pub label: String,
    /// A dispatch of it.
    pub dispatch: Dispatch,
    /// The device that chose it.
    pub facts: DeviceFacts,
}

impl Variant {
    /// Whether compilers of a dialect know its words: each syntax for matrix units is of one alone.
    pub fn is_in(&self, dialect: Dialect) -> bool {
        let foreign = match dialect {
            Dialect::Naga => "chromium",
            Dialect::Browser => "wgpu",
        };
        let knows = |part: &&'static Part| part.kind != "matrix" || !part.name.contains(foreign);
        self.dispatch.parts.iter().all(knows)
    }
}

/// All variants the suite's graphs need on any of [`devices`], each once.
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

/// Devices that differ in all that kernel choice may look at, the least ones first.
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
    // Some tiles are for devices with a little more memory than most.
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
    /// The graphs of the case: its own, and where gradients are checked, the one that makes them.
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

    /// How far a device may be from the reference: matrix units round what they multiply, and so do products of packed bytes.
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

    /// Whether a device's matrix units make some of it.
    pub fn by_matrix_units(&self, facts: &DeviceFacts) -> bool {
        self.has_part(facts, |part| part.kind == "matrix")
    }

    fn has_part(&self, facts: &DeviceFacts, wanted: impl Fn(&Part) -> bool) -> bool {
        dispatches(&self.graphs()[0], facts)
            .any(|dispatch| dispatch.parts.iter().any(|part| wanted(part)))
    }

    /// All that its graphs dispatch on a device: kernels with their constants, parameters and workgroups.
    pub fn dispatches(&self, facts: &DeviceFacts) -> Vec<DispatchRecord> {
        let record = |dispatch: Dispatch| (dispatch.label(), dispatch.params, dispatch.grid);
        let graphs = self.graphs();
        graphs.iter().flat_map(|graph| dispatches(graph, facts).map(record)).collect()
    }

    /// Workgroups its graph dispatches on a device: what it costs on a slow one.
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
