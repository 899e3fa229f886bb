//! One case: a small graph, its numbers, and what is to be checked.

use std::collections::HashMap;

use super::Tolerance;
use crate::{
    cpu::Data,
    graph::{Graph, Step, Value},
};

/// Writes the graph of a case and returns the values to compare.
type Build = Box<dyn Fn(&mut Graph) -> Vec<Value>>;

/// A graph under test. Inputs, states and weights get random numbers that depend on their names alone, unless given.
pub struct Case {
    /// The operation's folder.
    pub op: &'static str,
    /// What tells it apart from the operation's other cases: shapes, formats, variants.
    pub name: String,
    pub(crate) build: Build,
    pub(super) step: Step,
    pub(super) given: HashMap<String, Data>,
    pub(super) literal: Option<Vec<f32>>,
    pub(super) gradient: bool,
    pub(super) tolerance: Tolerance,
    /// Worth timing: a shape of a real model.
    pub bench: bool,
    /// Where the graph is a chain, how many links it has.
    pub(super) links: Option<usize>,
}

impl Case {
    /// A case of `op`; `build` writes the graph and returns the values to compare.
    pub fn new(
        op: &'static str,
        name: impl Into<String>,
        build: impl Fn(&mut Graph) -> Vec<Value> + 'static,
    ) -> Self {
        Self {
            op,
            name: name.into(),
            build: Box::new(build),
            step: Step { count: 1, ..Step::default() },
            given: HashMap::new(),
            literal: None,
            gradient: false,
            tolerance: Tolerance::ARITHMETIC,
            bench: false,
            links: None,
        }
    }

    /// Runs with this step.
    #[must_use]
    pub fn step(mut self, position: u32, count: u32) -> Self {
        self.step = Step { position, count, ..self.step };
        self
    }

    /// Draws random numbers from this seed.
    #[must_use]
    pub fn seed(mut self, seed: u32) -> Self {
        self.step.seed = seed;
        self
    }

    /// Takes these numbers for an input, a state or a weight.
    #[must_use]
    pub fn given(mut self, name: &str, data: Data) -> Self {
        self.given.insert(name.into(), data);
        self
    }

    /// The first result must be this, to six digits.
    #[must_use]
    pub fn gives(mut self, literal: &[f32]) -> Self {
        self.literal = Some(literal.into());
        self
    }

    /// The gradients of the first result are checked too.
    #[must_use]
    pub fn gradient(mut self) -> Self {
        self.gradient = true;
        self
    }

    /// How far the GPU may be from the reference.
    #[must_use]
    pub fn tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Timed by `rullama ops bench` rather than checked: for shapes the reference is too slow for.
    #[must_use]
    pub fn bench(mut self) -> Self {
        self.bench = true;
        self
    }

    /// Timed as one link of a chain of `links`: the whole graph in one pass, as a model runs it. Links differ in their weights, which
    /// together must be larger than a device's caches.
    #[must_use]
    pub fn chain(self, links: usize) -> Self {
        Self { links: Some(links), ..self.bench() }
    }
}
