//! Runs a list on the CPU, one operation after the other, in plain f32: the reference of the tests, and the fallback where
//! there is no GPU.

mod memory;
mod product;

pub use memory::{CpuCall, Data, Weight};
pub(crate) use product::{Meeting, add_scaled, dot, products};

use std::{cell::RefCell, collections::HashMap};

use crate::{
    error::EngineError,
    graph::{Element, Graph, Origin, Step, Type, Value},
    precision,
};

/// A list with its memory, ready to be run again and again.
#[derive(Debug)]
pub struct CpuPlan {
    graph: Graph,
    memory: Vec<RefCell<Data>>,
}

impl CpuPlan {
    /// Takes a list and the weights it names.
    ///
    /// # Errors
    /// If a weight is missing or has another shape than the list says.
    pub fn new(
        graph: Graph,
        mut weights: impl FnMut(&str, &Type) -> Option<Weight>,
    ) -> Result<Self, EngineError> {
        let mut memory = Vec::new();
        for (_, info) in graph.values() {
            let len = info.ty.shape.len();
            memory.push(RefCell::new(match (&info.origin, info.ty.element) {
                (Origin::Weight(name), _) => {
                    let weight = weights(name, &info.ty)
                        .ok_or_else(|| EngineError::MissingWeight { name: name.clone() })?;
                    weight.check(name, &info.ty)?;
                    Data::Weight(weight)
                }
                (_, Element::U32) => Data::U32(vec![0; len]),
                _ => Data::F32(vec![0.0; len]),
            }));
        }
        Ok(Self { graph, memory })
    }

    /// The list.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Writes an input or a state, rounded to the precision it is kept in.
    ///
    /// # Panics
    /// If there is no such value, or the data has another length or element.
    pub fn write(&mut self, name: &str, mut data: Data) {
        let value =
            self.find(name).unwrap_or_else(|| panic!("the list has no input or state `{name}`"));
        if let Data::F32(numbers) = &mut data {
            precision::round(self.graph.ty(value).element, numbers);
        }
        let slot = self.memory[value.index()].get_mut();
        assert!(
            slot.same_kind(&data),
            "`{name}` takes {} numbers of another kind or count",
            slot.len()
        );
        *slot = data;
    }

    /// Runs the list once.
    pub fn run(&mut self, step: &Step) {
        for node in self.graph.nodes() {
            node.op.cpu(&CpuCall::new(step, &self.graph, node, &self.memory));
        }
    }

    /// A value after a run.
    ///
    /// # Panics
    /// If it is not made of f32.
    pub fn read(&self, value: Value) -> Vec<f32> {
        self.memory[value.index()].borrow().f32().to_vec()
    }

    /// A value after a run, ids as numbers.
    pub fn read_any(&self, value: Value) -> Vec<f32> {
        match &*self.memory[value.index()].borrow() {
            Data::U32(ids) => ids.iter().map(|id| *id as f32).collect(),
            other => other.f32().to_vec(),
        }
    }

    /// All tapped values after a run.
    pub fn taps(&self) -> HashMap<String, Vec<f32>> {
        let tapped =
            self.graph.values().filter_map(|(value, info)| Some((info.tap.clone()?, value)));
        tapped.map(|(name, value)| (name, self.read(value))).collect()
    }

    fn find(&self, name: &str) -> Option<Value> {
        let named =
            |origin: &Origin| matches!(origin, Origin::Input(n) | Origin::State(n) if n == name);
        self.graph.values().find(|(_, info)| named(&info.origin)).map(|(value, _)| value)
    }
}
