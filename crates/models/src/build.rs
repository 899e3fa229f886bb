//! A list being written: a graph, a scope for names, and the tensors there are.

use rullama_engine::{
    graph::{Graph, Value},
    ops::Branch,
};

use crate::tensors::Catalog;

/// A graph whose weights are named relative to a scope: inside `blk.3`, `attn_norm` means `blk.3.attn_norm.weight`.
pub(crate) struct Build<'a> {
    pub(crate) graph: Graph,
    catalog: &'a Catalog,
    scope: String,
    eps: f32,
}

impl<'a> Build<'a> {
    pub(crate) fn new(catalog: &'a Catalog, eps: f32) -> Self {
        Self { graph: Graph::new(), catalog, scope: String::new(), eps }
    }

    /// Names that follow are inside this scope; the empty one is the whole model.
    pub(crate) fn enter(&mut self, scope: &str) {
        self.scope = if scope.is_empty() { String::new() } else { format!("{scope}.") };
    }

    /// Whether the model has this tensor.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.catalog.get(&self.full(name)).is_some()
    }

    /// The first of these names that the model has, else the first.
    pub(crate) fn spelled(&self, names: &[&'static str]) -> &'static str {
        names.iter().copied().find(|name| self.has(&format!("{name}.weight"))).unwrap_or(names[0])
    }

    /// A tensor by its whole name inside the scope: `ffn_gate_inp.scale`.
    ///
    /// # Panics
    /// If the model has none: the catalogue was checked against the configuration.
    pub(crate) fn tensor(&mut self, name: &str) -> Value {
        let full = self.full(name);
        let ty = self.catalog.get(&full).unwrap_or_else(|| panic!("no tensor {full}")).clone();
        self.graph.weight(full, ty)
    }

    /// A weight: `attn_q` means `attn_q.weight`.
    pub(crate) fn weight(&mut self, name: &str) -> Value {
        self.tensor(&format!("{name}.weight"))
    }

    /// Product with a weight, times its scale where the file has one.
    pub(crate) fn linear(&mut self, x: Value, name: &str) -> Value {
        let weight = self.weight(name);
        let y = self.graph.linear(x, weight);
        let scale = format!("{name}.scale");
        if !self.has(&scale) {
            return y;
        }
        let scale = self.tensor(&scale);
        self.graph.scale_by(y, scale)
    }

    /// Norm with a weight.
    pub(crate) fn norm(&mut self, x: Value, name: &str) -> Value {
        let weight = self.weight(name);
        self.graph.rms_norm(x, Some(weight), self.eps)
    }

    /// `h + norm(a)`, where `name` is the norm behind the branch that made `a`.
    pub(crate) fn join(&mut self, h: Value, a: Value, name: &str) -> Value {
        let branch = self.branch(h, a, name, None);
        self.graph.add_norm(&branch, self.eps)
    }

    /// `s · (h + norm(a))` and the norm that follows.
    pub(crate) fn join_norm(&mut self, join: &Join<'_>, next: Value) -> (Value, Value) {
        let branch = self.branch(join.h, join.a, join.name, join.scale);
        self.graph.add_norm_norm(&branch, next, self.eps)
    }

    pub(crate) fn tap(&mut self, value: Value, name: impl Into<String>) {
        self.graph.tap(value, name);
    }

    pub(crate) fn eps(&self) -> f32 {
        self.eps
    }

    fn branch(&mut self, h: Value, a: Value, name: &str, scale: Option<Value>) -> Branch {
        Branch { residual: h, branch: a, weight: self.weight(name), scale }
    }

    fn full(&self, name: &str) -> String {
        format!("{}{name}", self.scope)
    }
}

/// A branch that joins the residual stream at the end of a layer or inside it.
pub(crate) struct Join<'a> {
    /// The stream.
    pub(crate) h: Value,
    /// What the branch made.
    pub(crate) a: Value,
    /// The norm behind the branch.
    pub(crate) name: &'a str,
    /// The layer's scale, at its end.
    pub(crate) scale: Option<Value>,
}
