//! A test case: a small graph, its inputs, and what is checked.

use std::collections::HashMap;

use super::Tolerance;
use crate::{
    cpu::Data,
    graph::{Graph, Step, Value},
};

/// Builds the graph of a case and returns the values to compare.
type Build = Box<dyn Fn(&mut Graph) -> Vec<Value>>;

/// A graph under test. Inputs, states and weights get random values that depend only on their names, unless given.
pub struct Case {
    /// The operation's folder.
    pub op: &'static str,
    /// Distinguishes it from the operation's other cases: shapes, formats, variants.
    pub name: String,
    pub(crate) build: Build,
    pub(super) step: Step,
    pub(super) given: HashMap<String, Data>,
    pub(super) literal: Option<Vec<f32>>,
    pub(super) gradient: bool,
    pub(super) tolerance: Tolerance,
    /// Whether it is timed instead of checked: a shape of a real model.
    pub bench: bool,
    /// Number of links, if the graph is a chain.
    pub(super) links: Option<usize>,
}

impl Case {
    /// A case of `op`; `build` builds the graph and returns the values to compare.
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

    /// Sets position and count of the step.
    #[must_use]
    pub fn step(mut self, position: u32, count: u32) -> Self {
        self.step = Step { position, count, ..self.step };
        self
    }

    /// Sets the seed of the step.
    #[must_use]
    pub fn seed(mut self, seed: u32) -> Self {
        self.step.seed = seed;
        self
    }

    /// Sets the values of an input, a state or a weight.
    #[must_use]
    pub fn given(mut self, name: &str, data: Data) -> Self {
        self.given.insert(name.into(), data);
        self
    }

    /// Expects the first result to equal `literal`, to six digits.
    #[must_use]
    pub fn gives(mut self, literal: &[f32]) -> Self {
        self.literal = Some(literal.into());
        self
    }

    /// Checks the gradients of the first result, too.
    #[must_use]
    pub fn gradient(mut self) -> Self {
        self.gradient = true;
        self
    }

    /// Sets the tolerance of the GPU against the reference.
    #[must_use]
    pub fn tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Marks it as timed by `rullama ops bench` instead of checked: for shapes that are too slow for the reference.
    #[must_use]
    pub fn bench(mut self) -> Self {
        self.bench = true;
        self
    }

    /// Times it as one link of a chain of `links`: the whole graph in one pass, as a model runs it. Links have different weights, which together
    /// must be larger than a device's caches.
    #[must_use]
    pub fn chain(self, links: usize) -> Self {
        Self { links: Some(links), ..self.bench() }
    }
}
