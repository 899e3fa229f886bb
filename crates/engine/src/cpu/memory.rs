//! Memory of the CPU executor and an operation's view of it.

use std::{
    cell::{Ref, RefCell, RefMut},
    rc::Rc,
};

use bytes::Bytes;
use rullama_gguf::{DType, quant::dequantize};

use crate::{
    error::EngineError,
    graph::{Element, Graph, Node, Shape, Step, Type, Value},
    precision,
};

/// The elements of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// Activations, gradients, and caches of any precision (rounded on write).
    F32(Vec<f32>),
    /// Ids and counts.
    U32(Vec<u32>),
    /// A weight in its file's format.
    Weight(Weight),
}

impl Data {
    /// The f32 elements.
    ///
    /// # Panics
    /// If the data is of another type.
    pub fn f32(&self) -> &[f32] {
        match self {
            Self::F32(values) => values,
            other => panic!("f32 data was expected, not {other:?}"),
        }
    }

    /// The u32 elements.
    ///
    /// # Panics
    /// If the data is of another type.
    pub fn u32(&self) -> &[u32] {
        match self {
            Self::U32(ids) => ids,
            other => panic!("u32 data was expected, not {other:?}"),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::U32(ids) => ids.len(),
            Self::Weight(weight) => weight.shape.len(),
        }
    }

    pub(crate) fn same_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other) && self.len() == other.len()
    }
}

/// A weight in its file's format; rows are decoded on demand.
#[derive(Debug, Clone, PartialEq)]
pub struct Weight {
    /// Block format.
    pub dtype: DType,
    /// Sizes, outermost first.
    pub shape: Shape,
    /// All rows in order: of one tensor, or of each tensor of a stack.
    pub parts: Vec<Bytes>,
}

impl Weight {
    /// A weight of one tensor.
    pub fn new(dtype: DType, shape: impl Into<Shape>, bytes: impl Into<Bytes>) -> Self {
        Self { dtype, shape: shape.into(), parts: vec![bytes.into()] }
    }

    /// Decodes row `row` into `out`.
    ///
    /// # Panics
    /// If there is no such row; [`crate::cpu::CpuPlan::new`] has checked the bytes.
    pub fn row(&self, row: usize, out: &mut [f32]) {
        dequantize(self.dtype, self.row_bytes(row), out).expect("the plan checked type and length");
    }

    /// The bytes of row `row`.
    ///
    /// # Panics
    /// If there is no such row.
    pub(crate) fn row_bytes(&self, row: usize) -> &[u8] {
        let bytes = self.bytes_per_row();
        let (mut at, mut parts) = (row * bytes, self.parts.iter());
        let mut part = parts.next().expect("a weight has bytes");
        while at >= part.len() {
            at -= part.len();
            part = parts.next().expect("a row of the weight");
        }
        &part[at..at + bytes]
    }

    fn bytes_per_row(&self) -> usize {
        self.shape.width() / self.dtype.block_elements() * self.dtype.block_bytes()
    }

    /// Bytes of all rows.
    pub(super) fn whole_bytes(&self) -> u64 {
        self.shape.rows() as u64 * self.bytes_per_row() as u64
    }

    fn bytes(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum()
    }

    pub(super) fn check(&self, name: &str, wanted: &Type) -> Result<(), EngineError> {
        let fits = self.shape == wanted.shape
            && wanted.element == Element::Weight(self.dtype)
            && self.shape.width().is_multiple_of(self.dtype.block_elements())
            && self.bytes() == self.shape.rows() * self.bytes_per_row();
        if fits {
            return Ok(());
        }
        Err(EngineError::WrongWeight {
            name: name.into(),
            wanted: wanted.to_string(),
            found: format!("{}[{}] of {} bytes", self.dtype.name(), self.shape, self.bytes()),
        })
    }
}

/// The context of an operation's CPU reference: its inputs, its results, the step.
#[derive(Debug)]
pub struct CpuCall<'a> {
    /// The parameters of this run.
    pub step: &'a Step,
    graph: &'a Graph,
    node: &'a Node,
    memory: &'a [Rc<RefCell<Data>>],
}

impl<'a> CpuCall<'a> {
    pub(super) fn new(
        step: &'a Step,
        graph: &'a Graph,
        node: &'a Node,
        memory: &'a [Rc<RefCell<Data>>],
    ) -> Self {
        Self { step, graph, node, memory }
    }

    /// Whether a row's result must not depend on the number of rows.
    pub(crate) fn is_batch_invariant(&self) -> bool {
        self.graph.is_batch_invariant()
    }

    /// Type of input `i`.
    pub fn input(&self, i: usize) -> &'a Type {
        self.graph.ty(self.node.inputs[i])
    }

    /// Type of result `i`.
    pub fn output(&self, i: usize) -> &'a Type {
        self.graph.ty(self.node.outputs[i])
    }

    /// Number of inputs.
    pub fn inputs(&self) -> usize {
        self.node.inputs.len()
    }

    /// Elements of input `i`.
    pub fn f32(&self, i: usize) -> Ref<'a, [f32]> {
        Ref::map(self.borrow(self.node.inputs[i]), Data::f32)
    }

    /// Ids of input `i`.
    pub fn u32(&self, i: usize) -> Ref<'a, [u32]> {
        Ref::map(self.borrow(self.node.inputs[i]), Data::u32)
    }

    /// Weight `i`.
    pub fn weight(&self, i: usize) -> Ref<'a, Weight> {
        Ref::map(self.borrow(self.node.inputs[i]), |data| match data {
            Data::Weight(weight) => weight,
            other => panic!("a weight was expected, not {other:?}"),
        })
    }

    /// All elements of input `i`, decoded if it is a weight: for norms, scales and other short weights.
    pub fn decoded(&self, i: usize) -> Vec<f32> {
        match &*self.borrow(self.node.inputs[i]) {
            Data::F32(values) => values.clone(),
            Data::U32(_) => panic!("input {i} holds ids, not f32 values"),
            Data::Weight(weight) => {
                let width = weight.shape.width();
                let mut values = vec![0.0; weight.shape.len()];
                for (row, out) in values.chunks_exact_mut(width).enumerate() {
                    weight.row(row, out);
                }
                values
            }
        }
    }

    /// All elements of input `i` like [`Self::decoded`], without a copy if they are in memory as floats.
    pub(crate) fn values(&self, i: usize) -> Values<'a> {
        match &*self.borrow(self.node.inputs[i]) {
            Data::F32(_) => Values::InMemory(self.f32(i)),
            _ => Values::Decoded(self.decoded(i)),
        }
    }

    /// The memory of input `i`.
    pub(crate) fn input_memory(&self, i: usize) -> Rc<RefCell<Data>> {
        Rc::clone(&self.memory[self.node.inputs[i].index()])
    }

    /// The memory of result `i`.
    pub(crate) fn output_memory(&self, i: usize) -> Rc<RefCell<Data>> {
        Rc::clone(&self.memory[self.node.outputs[i].index()])
    }

    /// State `i`, writable.
    pub fn state(&self, i: usize) -> RefMut<'a, [f32]> {
        f32_mut(self.memory[self.node.inputs[i].index()].borrow_mut())
    }

    /// Writes values into state `i` from element `at` on, rounded to the state's precision.
    ///
    /// # Panics
    /// If they do not fit, or are not whole groups of a Q8 state.
    pub fn store(&self, i: usize, at: usize, values: &[f32]) {
        let mut state = self.state(i);
        let target = &mut state[at..at + values.len()];
        target.copy_from_slice(values);
        precision::round(self.input(i).element, target);
    }

    /// Ids of state `i`, writable.
    pub fn state_u32(&self, i: usize) -> RefMut<'a, [u32]> {
        u32_mut(self.memory[self.node.inputs[i].index()].borrow_mut())
    }

    /// Result `i`, writable.
    pub fn out(&self, i: usize) -> RefMut<'a, [f32]> {
        f32_mut(self.memory[self.node.outputs[i].index()].borrow_mut())
    }

    /// Ids of result `i`, writable.
    pub fn out_u32(&self, i: usize) -> RefMut<'a, [u32]> {
        u32_mut(self.memory[self.node.outputs[i].index()].borrow_mut())
    }

    fn borrow(&self, value: Value) -> Ref<'a, Data> {
        self.memory[value.index()].borrow()
    }
}

/// Elements of an input.
pub(crate) enum Values<'a> {
    /// As they are in memory.
    InMemory(Ref<'a, [f32]>),
    /// Decoded from a weight.
    Decoded(Vec<f32>),
}

impl std::ops::Deref for Values<'_> {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match self {
            Self::InMemory(values) => values,
            Self::Decoded(values) => values,
        }
    }
}

fn f32_mut(data: RefMut<'_, Data>) -> RefMut<'_, [f32]> {
    RefMut::map(data, |data| match data {
        Data::F32(values) => values.as_mut_slice(),
        other => panic!("f32 data was expected, not {other:?}"),
    })
}

fn u32_mut(data: RefMut<'_, Data>) -> RefMut<'_, [u32]> {
    RefMut::map(data, |data| match data {
        Data::U32(ids) => ids.as_mut_slice(),
        other => panic!("u32 data was expected, not {other:?}"),
    })
}
