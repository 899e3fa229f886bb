//! Folded LoRA: the down-projection `A` of a matmul, applied by the dispatch that ends the branch before that matmul.

use rullama_engine::{
    graph::{Graph, Type, Value},
    ops::{FoldedDown, LoraPair},
};
use rullama_gguf::DType;

use crate::{adapted::FactorGroup, build::Build, tensors::Catalog};

/// Maximum bytes of both folded weights.
const FOLDED_BYTES: usize = 2 << 20;

/// The matmuls that read the residual stream after a branch: the branch is normed and added, and the sum may be normed again.
#[derive(Debug, Clone)]
pub(crate) struct NextMatmul {
    /// The norm after the branch, if it has one.
    pub(crate) post_norm: Option<&'static str>,
    /// The scope of the norm and matmuls that follow.
    pub(crate) scope: String,
    /// The norm before the next matmuls, if there is one.
    pub(crate) norm: Option<&'static str>,
    /// Weights of the next matmuls.
    pub(crate) names: &'static [&'static str],
}

/// A down-projection `A` folded into two weights: see [`FoldedDown`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldedLora {
    /// Name of the weight `P`.
    pub p: String,
    /// Name of the weight `Q`, stacked below `A` of the branch's LoRA pair if it has one.
    pub q: String,
    /// Names of the matrices stacked in `A`, as in [`FactorGroup::a`].
    pub a: Vec<String>,
    /// The weight of the matmul that ends the branch.
    pub weight: String,
    /// Name of `A` of that matmul's LoRA pair, if it has one.
    pub own: Option<String>,
    /// The norms after the branch and before the next matmul.
    pub norms: [String; 2],
}

impl Build<'_> {
    /// The folded down-projections of the matmuls after a branch. The matmul `name` of the rows `x` ends the branch; `own` is its LoRA
    /// pair, if it has one.
    pub(crate) fn fold_lora(
        &mut self,
        (x, h): (Value, Value),
        (name, own): (&str, Option<&LoraPair>),
        next: &NextMatmul,
    ) -> Option<FoldedDown> {
        self.adapted.filter(|adapted| adapted.fold)?;
        let (weight, post_norm) = (self.full(&format!("{name}.weight")), next.post_norm?);
        let post_norm = self.full(&format!("{post_norm}.weight"));
        let here = self.enter(&next.scope);
        let norm = next.norm.map(|norm| self.full(&format!("{norm}.weight")));
        let groups: Vec<FactorGroup> = self
            .dispatch_groups(next.names)
            .into_iter()
            .filter_map(|names| self.group(names))
            .collect();
        self.enter(&here);
        let (rank, norm) = (groups.iter().map(|group| group.rank).sum::<usize>(), norm?);
        let (k, d) = (self.graph.ty(x).shape.width(), self.graph.ty(h).shape.width());
        let own_rank = own.map_or(0, |own| self.graph.ty(own.a).shape.rows());
        let [q, p] = [[own_rank + rank, k], [rank, d]];
        if rank == 0 || 4 * (q[0] * q[1] + p[0] * p[1]) > FOLDED_BYTES {
            return None;
        }
        let a: Vec<String> = groups.into_iter().map(|group| group.a).collect();
        let names = FoldedLora {
            p: format!("folded_p.{}", a.join("+")),
            q: format!("folded_q.{}", a.join("+")),
            a,
            own: own.and_then(|_| self.factors.last()).map(|own| own.a.clone()),
            weight,
            norms: [post_norm, norm],
        };
        let q = self.graph.weight(names.q.clone(), Type::weight(DType::F32, q));
        let p = self.graph.weight(names.p.clone(), Type::weight(DType::F32, p));
        self.folded.push(names);
        Some(FoldedDown { q, h, p })
    }

    /// Matmuls that share x, grouped by dispatch: one group, or the last matmul in its own group. Empty if they need more dispatches.
    fn dispatch_groups<'n>(&mut self, names: &'n [&'n str]) -> Vec<&'n [&'n str]> {
        if names.is_empty() || self.stack(names).is_some() {
            return vec![names];
        }
        let (others, last) = names.split_at(names.len() - 1);
        let stacked = !others.is_empty() && self.stack(others).is_some();
        if stacked && self.stack(last).is_some() { vec![others, last] } else { Vec::new() }
    }

    /// The LoRA pair of stacked weights, without adding it to the graph.
    fn group(&self, names: &[&str]) -> Option<FactorGroup> {
        let (tensors, size) = self.tensors(names)?;
        self.adapted?.group(&tensors, size, false)
    }

    /// The padded rank of the stacked weights' LoRA pair; 0 without one.
    pub(crate) fn rank_of(&self, names: &[&str]) -> usize {
        self.group(names).map_or(0, |group| group.rank)
    }
}

/// The graph that folds down-projections.
#[derive(Debug)]
pub struct FoldedLoraGraph {
    /// The graph; its inputs are the matrices `A`, by name.
    pub graph: Graph,
    /// `P` and `Q` (without the rows stacked above it) for each `A` of each group.
    pub outputs: Vec<[Value; 2]>,
}

/// Builds the graph that computes the folded weights of these groups from a model's weights and the LoRA factors.
///
/// # Panics
/// If a group does not belong to a graph of this model with these factors.
pub fn folded_lora_graph(
    catalog: &Catalog,
    (groups, factors): (&[FoldedLora], &[FactorGroup]),
    dtype: DType,
) -> FoldedLoraGraph {
    let mut graph = Graph::new();
    let all = groups.iter().flat_map(|group| group.a.iter().map(move |a| (group, a)));
    let outputs = all.map(|(group, a)| {
        let of = |a: &str| factors.iter().find(|other| other.a == a).expect("a group of the graph");
        let tensor = |graph: &mut Graph, name: &str| {
            let ty = catalog.get(name).expect("a tensor of the model").clone();
            graph.weight(name, ty)
        };
        let next = of(a);
        let a = graph.input(a.clone(), Type::f32([next.rank, next.columns]));
        let [post_norm, norm] = [0, 1].map(|i| tensor(&mut graph, &group.norms[i]));
        let p = graph.scale_row(a, norm, 1.0);
        let scaled = graph.scale_row(p, post_norm, 1.0);
        let weight = tensor(&mut graph, &group.weight);
        let mut q = graph.linear_t(scaled, weight);
        if let Some(own) = group.own.as_deref().map(of) {
            let (rows, width) = (graph.ty(scaled).shape.width(), own.columns);
            let b = graph.weight(own.b.clone(), Type::weight(dtype, [rows, own.rank]));
            let a = graph.weight(own.a.clone(), Type::weight(dtype, [own.rank, width]));
            let inner = graph.linear_t(scaled, b);
            let lora = graph.linear_t(inner, a);
            q = graph.add(q, lora);
        }
        graph.keep(p);
        graph.keep(q);
        [p, q]
    });
    let outputs = outputs.collect();
    FoldedLoraGraph { graph, outputs }
}
