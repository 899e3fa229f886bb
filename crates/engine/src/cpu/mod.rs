//! Runs a graph on the CPU, one operation after the other, in f32: the reference for tests, and the fallback without a GPU.

mod memory;
pub(crate) mod simd;
mod slots;
mod weights;

pub use memory::{CpuCall, Data, Weight};
pub(crate) use simd::{add_scaled, dot};
pub use slots::work_bytes;
use slots::{Slots, assign};
pub use weights::Weights;

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use crate::{
    error::EngineError,
    graph::{Element, Graph, Origin, Step, Type, Value},
    precision,
};

/// State memory by name; plans of one session share it.
pub type CpuStates = HashMap<String, Rc<RefCell<Data>>>;

/// A graph with its memory, ready to run.
#[derive(Debug)]
pub struct CpuPlan {
    graph: Graph,
    memory: Vec<Rc<RefCell<Data>>>,
}

impl CpuPlan {
    /// Prepares a graph with its own states, all of whose values can be read after a run. `weights` is called for each tensor of a stack.
    ///
    /// # Errors
    /// If a weight is missing or has another shape than in the graph.
    pub fn new(
        graph: Graph,
        weights: impl FnMut(&str, &Type) -> Option<Weight>,
    ) -> Result<Self, EngineError> {
        Self::with(graph, weights, &mut CpuStates::new(), &Slots::default())
    }

    /// Prepares a graph: `states` holds the states of the session's earlier plans, and gets the new ones. Only kept values, inputs and states
    /// can be read after a run: the others share memory.
    ///
    /// # Errors
    /// If a weight is missing or has another shape than in the graph.
    pub fn with_states(
        graph: Graph,
        weights: impl FnMut(&str, &Type) -> Option<Weight>,
        states: &mut CpuStates,
    ) -> Result<Self, EngineError> {
        let slots = assign(&graph);
        Self::with(graph, weights, states, &slots)
    }

    /// Values without a slot get memory of their own.
    fn with(
        graph: Graph,
        mut weights: impl FnMut(&str, &Type) -> Option<Weight>,
        states: &mut CpuStates,
        slots: &Slots,
    ) -> Result<Self, EngineError> {
        let new = |ty: &Type| Rc::new(RefCell::new(zeros(ty)));
        let shared: Vec<_> = slots.types.iter().map(new).collect();
        let mut memory = Vec::new();
        for (value, info) in graph.values() {
            memory.push(match (&info.origin, info.ty.element) {
                (Origin::Weight(_) | Origin::Stack(_), Element::Weight(dtype)) => {
                    let shape = info.ty.shape.clone();
                    let mut whole = Weight { dtype, shape, parts: vec![] };
                    for (name, _, ty) in info.origin.tensors(&info.ty) {
                        let weight = weights(name, &ty)
                            .ok_or_else(|| EngineError::MissingWeight { name: name.into() })?;
                        weight.check(name, &ty)?;
                        whole.parts.extend(weight.parts);
                    }
                    Rc::new(RefCell::new(Data::Weight(whole)))
                }
                (Origin::State(name), _) => {
                    Rc::clone(states.entry(name.clone()).or_insert_with(|| new(&info.ty)))
                }
                _ => match slots.of.get(&value) {
                    Some(slot) => Rc::clone(&shared[*slot]),
                    None => new(&info.ty),
                },
            });
        }
        Ok(Self { graph, memory })
    }

    /// Prepares a graph whose inputs, weights and states all have memory already; other values get their own.
    pub(crate) fn with_memory(graph: Graph, given: &HashMap<Value, Rc<RefCell<Data>>>) -> Self {
        let memory = graph.values().map(|(value, info)| match given.get(&value) {
            Some(memory) => Rc::clone(memory),
            None => Rc::new(RefCell::new(zeros(&info.ty))),
        });
        let memory = memory.collect();
        Self { graph, memory }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Writes an input or a state, rounded to its precision.
    ///
    /// # Panics
    /// If there is no such value, or the data has another length or type.
    pub fn write(&self, name: &str, mut data: Data) {
        let value =
            self.find(name).unwrap_or_else(|| panic!("the graph has no input or state `{name}`"));
        if let Data::F32(values) = &mut data {
            precision::round(self.graph.ty(value).element, values);
        }
        let mut slot = self.memory[value.index()].borrow_mut();
        assert!(
            slot.same_kind(&data),
            "`{name}` takes {} elements; the data has another type or length",
            slot.len()
        );
        *slot = data;
    }

    /// Runs the graph once.
    pub fn run(&self, step: &Step) {
        for node in self.graph.nodes() {
            node.op.cpu(&CpuCall::new(step, &self.graph, node, &self.memory));
        }
    }

    /// A value after a run.
    ///
    /// # Panics
    /// If it is not f32.
    pub fn read(&self, value: Value) -> Vec<f32> {
        self.memory[value.index()].borrow().f32().to_vec()
    }

    /// A value after a run, in its own type.
    pub fn data(&self, value: Value) -> Data {
        self.memory[value.index()].borrow().clone()
    }

    /// A value after a run, ids converted to f32.
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

pub(crate) fn zeros(ty: &Type) -> Data {
    let len = ty.shape.len();
    match ty.element {
        Element::U32 => Data::U32(vec![0; len]),
        _ => Data::F32(vec![0.0; len]),
    }
}
