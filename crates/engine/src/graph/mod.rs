//! A forward pass as data: a graph of operations over named values.
//!
//! A model builds the graph once; the GPU plan, the CPU executor, the gradient transform, the printer and the cost counter read it. A
//! wrong shape is a bug in a model's graph, not in its input, and panics here with both shapes.

mod backward;
mod cost;
mod fold;
mod lifetimes;
mod op;
mod origin;
mod print;
mod shape;
mod step;

use std::{collections::HashMap, rc::Rc};

pub(crate) use backward::walk;
pub use backward::{Gradients, backward};
pub use cost::Cost;
pub(crate) use lifetimes::Lifetimes;
pub use op::{NodeValues, Op};
pub use origin::{Member, Origin};
pub use shape::{Element, Shape, Type};
pub use step::Step;

use rullama_gguf::DType;

/// A value of a graph: something an operation reads or computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(u32);

impl Value {
    /// Its index in [`Graph::values`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A node of the graph.
#[derive(Debug)]
pub struct Node {
    /// The operation.
    pub op: Rc<dyn Op>,
    /// The values it reads (and, for states the op names, writes).
    pub inputs: Vec<Value>,
    /// The values it computes.
    pub outputs: Vec<Value>,
}

/// Properties of a value.
#[derive(Debug, Clone)]
pub struct ValueInfo {
    /// Shape and element.
    pub ty: Type,
    /// Where it comes from.
    pub origin: Origin,
    /// The name by which tests and traces request it.
    pub tap: Option<String>,
    /// Whether its memory is kept until the end of the run, so that it can be read back.
    pub kept: bool,
}

/// The operations of a forward pass, in the order they run.
#[derive(Debug, Default)]
pub struct Graph {
    values: Vec<ValueInfo>,
    nodes: Vec<Node>,
    /// Weights and states by origin, for a fast lookup: models of hundreds of layers have thousands.
    named: HashMap<Origin, Value>,
    batch_invariant: bool,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty graph whose tokens are computed batch-invariantly: each bit-identical to a graph with that token alone, by the same kernels.
    /// Rows past the step's count are not computed.
    pub fn new_batch_invariant() -> Self {
        Self { batch_invariant: true, ..Self::default() }
    }

    /// Whether tokens are computed batch-invariantly.
    pub fn is_batch_invariant(&self) -> bool {
        self.batch_invariant
    }

    /// A value the host writes before each run.
    pub fn input(&mut self, name: impl Into<String>, ty: Type) -> Value {
        self.value(ty, Origin::Input(name.into()))
    }

    /// A tensor of the model's file; the same name gives the same value.
    ///
    /// # Panics
    /// If the name was used with another type before.
    pub fn weight(&mut self, name: impl Into<String>, ty: Type) -> Value {
        self.named(Origin::Weight(name.into()), ty)
    }

    /// Several tensors of the model's file stacked by rows; the same members give the same value.
    ///
    /// # Panics
    /// If there are no members, or rows cannot follow one of them: see [`Member::stackable`].
    pub fn weight_rows(&mut self, members: &[Member], dtype: DType, width: usize) -> Value {
        let (last, before) = members.split_last().expect("a stack has members");
        for member in before {
            assert!(member.stackable(), "{} has {} rows", member.name, member.rows);
        }
        let rows = last.rows + before.iter().map(|member| member.rows).sum::<usize>();
        self.named(Origin::Stack(members.into()), Type::weight(dtype, [rows, width]))
    }

    /// Memory that outlives a run; the same name gives the same value.
    ///
    /// # Panics
    /// If the name was used with another type before.
    pub fn state(&mut self, name: impl Into<String>, ty: Type) -> Value {
        self.named(Origin::State(name.into()), ty)
    }

    /// Appends an operation with one result. Operations' builder methods end here.
    ///
    /// # Panics
    /// If the operation does not accept the inputs' shapes, or has another number of results.
    #[track_caller]
    pub fn apply(&mut self, op: impl Op, inputs: &[Value]) -> Value {
        match self.apply_all(op, inputs).as_slice() {
            [one] => *one,
            several => panic!("an operation with {} results where one was expected", several.len()),
        }
    }

    /// Appends an operation with any number of results.
    ///
    /// # Panics
    /// If the operation does not accept the inputs' shapes.
    #[track_caller]
    pub fn apply_all(&mut self, op: impl Op, inputs: &[Value]) -> Vec<Value> {
        self.apply_shared(Rc::new(op), inputs)
    }

    /// Appends an operation that other nodes may share.
    #[track_caller]
    fn apply_shared(&mut self, op: Rc<dyn Op>, inputs: &[Value]) -> Vec<Value> {
        let types: Vec<&Type> = inputs.iter().map(|v| self.ty(*v)).collect();
        let results = op.infer(&types);
        for written in op.writes() {
            let origin = &self.info(inputs[*written]).origin;
            assert!(
                matches!(origin, Origin::State(_)),
                "{} writes {origin:?}, which is no state",
                op.name()
            );
        }
        let node = self.nodes.len();
        let outputs: Vec<Value> =
            results.into_iter().map(|ty| self.value(ty, Origin::Node(node))).collect();
        self.nodes.push(Node { op, inputs: inputs.into(), outputs: outputs.clone() });
        outputs
    }

    /// Names a value, so that tests and traces can request it.
    pub fn tap(&mut self, value: Value, name: impl Into<String>) {
        self.values[value.index()].tap = Some(name.into());
    }

    /// Keeps a value's memory until the end of the run.
    pub fn keep(&mut self, value: Value) {
        self.values[value.index()].kept = true;
    }

    /// The value with this tap name.
    pub fn tapped(&self, name: &str) -> Option<Value> {
        let index = self.values.iter().position(|info| info.tap.as_deref() == Some(name))?;
        Some(Value(u32::try_from(index).ok()?))
    }

    /// The type of a value.
    pub fn ty(&self, value: Value) -> &Type {
        &self.info(value).ty
    }

    /// The properties of a value.
    pub fn info(&self, value: Value) -> &ValueInfo {
        &self.values[value.index()]
    }

    /// All values, in order of creation.
    pub fn values(&self) -> impl Iterator<Item = (Value, &ValueInfo)> {
        (0u32..).map(Value).zip(&self.values)
    }

    /// All operations, in the order they run.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The first operation that reads the first result of another one.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn reader(&self, node: &Node) -> &Node {
        let reads = |other: &&Node| other.inputs.contains(&node.outputs[0]);
        self.nodes.iter().find(reads).expect("the result has a reader")
    }

    fn named(&mut self, origin: Origin, ty: Type) -> Value {
        if let Some(value) = self.named.get(&origin).copied() {
            assert_eq!(*self.ty(value), ty, "{origin:?} was requested with two types");
            return value;
        }
        let value = self.value(ty, origin.clone());
        self.named.insert(origin, value);
        value
    }

    fn value(&mut self, ty: Type, origin: Origin) -> Value {
        let index = u32::try_from(self.values.len()).expect("a graph has fewer than 2^32 values");
        self.values.push(ValueInfo { ty, origin, tap: None, kept: false });
        Value(index)
    }
}
