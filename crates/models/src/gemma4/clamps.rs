//! Clamped matmuls of encoders: limits on input and output.

use std::collections::HashMap;

use rullama_engine::{
    graph::Value,
    ops::{Clamp, ClampedPrologue, Slice, Stacked},
};

use crate::build::Build;

const LIMITS: [&str; 4] = ["input_min", "input_max", "output_min", "output_max"];

/// Limits by matmul name: input minimum and maximum, output minimum and maximum.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Clamps(HashMap<String, [f32; 4]>);

impl Clamps {
    /// Names of the tensors that may hold the limits of these matmuls.
    pub fn tensors(matmuls: &[String]) -> Vec<String> {
        matmuls.iter().flat_map(|name| LIMITS.map(|limit| format!("{name}.{limit}"))).collect()
    }

    /// The limits of matmuls, from the scalar tensors that the file has. `packed` holds four limits for each matmul in order, if the
    /// file packs them; these take precedence.
    pub fn new(matmuls: &[String], scalars: &HashMap<String, Vec<f32>>, packed: &[f32]) -> Self {
        let mut known = HashMap::new();
        let mut fours = packed.as_chunks::<4>().0.iter();
        for name in matmuls {
            let scalar =
                |limit: usize| scalars.get(&format!("{name}.{}", LIMITS[limit]))?.first().copied();
            let from_scalars = [
                scalar(0).unwrap_or(f32::NEG_INFINITY),
                scalar(1).unwrap_or(f32::INFINITY),
                scalar(2).unwrap_or(f32::NEG_INFINITY),
                scalar(3).unwrap_or(f32::INFINITY),
            ];
            let limits = fours.next().copied().unwrap_or(from_scalars);
            // Four zeros mean no limits: as limits they would clamp everything to zero.
            let ordered = limits[0] <= limits[1] && limits[2] <= limits[3];
            if ordered && limits != [0.0; 4] && limits.iter().any(|limit| limit.is_finite()) {
                known.insert(name.clone(), limits);
            }
        }
        Self(known)
    }

    /// The limits of a matmul; `None` if it has none.
    pub fn get(&self, name: &str) -> Option<[f32; 4]> {
        self.0.get(name).copied()
    }
}

/// A graph builder whose matmuls may be clamped. Each matmul clamps its input itself, because others read the same value.
pub(super) struct ClampedBuild<'a> {
    pub(super) b: Build<'a>,
    pub(super) clamps: &'a Clamps,
    /// Maximum rows of a stacked weight: larger outputs exceed the device's binding size.
    pub(super) max_rows: usize,
}

impl ClampedBuild<'_> {
    /// A clamped matmul with a weight of this name inside the scope.
    pub(super) fn linear(&mut self, x: Value, name: &str) -> Value {
        self.fused_linear(&ClampedPrologue::Rows(x), name).1
    }

    /// The prologue fused with a clamped matmul, and the residual stream if the prologue computes a new one.
    pub(super) fn fused_linear(
        &mut self,
        prologue: &ClampedPrologue,
        name: &str,
    ) -> (Option<Value>, Value) {
        let (h, outputs) = self.fused_linears(prologue, &[name]);
        (h, outputs[0].value)
    }

    /// The stream, normed before the next matmuls.
    pub(super) fn after_norm(&mut self, h: Value, name: &str, eps: f32) -> ClampedPrologue {
        ClampedPrologue::Norm { h, weight: self.b.weight(name), eps }
    }

    /// Input and output limits of a matmul.
    fn limits(&self, name: &str) -> [Clamp; 2] {
        let Some([in_least, in_most, least, most]) = self.clamps.get(&self.b.full(name)) else {
            return [Clamp::NONE; 2];
        };
        [Clamp { least: in_least, most: in_most }, Clamp { least, most }]
    }

    /// The prologue fused with matmuls of several weights (one matmul if they can be stacked), and the residual stream if the prologue
    /// computes a new one.
    pub(super) fn fused_linears(
        &mut self,
        prologue: &ClampedPrologue,
        names: &[&str],
    ) -> (Option<Value>, Vec<Slice>) {
        let stacked: Vec<Stacked> = names.iter().map(|name| self.stacked(name)).collect();
        let rows: usize = stacked.iter().map(|tensor| tensor.rows).sum();
        let stackable = rows <= self.max_rows && Stacked::can_be_fused(&stacked);
        // `stack` adds the weight to the graph: call it only if the weight is used.
        match stackable.then(|| self.b.stack(names)).flatten() {
            Some((weight, _)) => {
                let (h, y) = self.b.graph.clamped_linear(prologue, weight, &stacked);
                let mut first = 0;
                let slice = |tensor: &Stacked| {
                    first += tensor.rows;
                    Slice::new(y, first - tensor.rows, tensor.rows)
                };
                (h, stacked.iter().map(slice).collect())
            }
            None => self.separate_linears(prologue, names),
        }
    }

    /// Rows and limits of a tensor.
    fn stacked(&self, name: &str) -> Stacked {
        let [input, output] = self.limits(name);
        Stacked { rows: self.b.rows_of(name), input, output }
    }

    /// One matmul per weight; only the first computes the residual sum.
    fn separate_linears(
        &mut self,
        prologue: &ClampedPrologue,
        names: &[&str],
    ) -> (Option<Value>, Vec<Slice>) {
        let (mut prologue, mut stream, mut outputs) = (*prologue, None, Vec::new());
        for name in names {
            let one = self.stacked(name);
            let (h, y) = match self.b.stack(&[name]) {
                Some((weight, _)) => self.b.graph.clamped_linear(&prologue, weight, &[one]),
                // Scaled weights have no fused kernel.
                None => {
                    let (h, x) = self.b.graph.clamped_prologue(&prologue);
                    let x = one.input.clamp(&mut self.b.graph, x);
                    let y = self.b.linear(x, name);
                    (h, one.output.clamp(&mut self.b.graph, y))
                }
            };
            if let (Some(h), ClampedPrologue::ResidualAdd { next: weight, eps, .. }) = (h, prologue)
            {
                stream = Some(h);
                prologue = ClampedPrologue::Norm { h, weight, eps };
            }
            outputs.push(y.into());
        }
        (stream, outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar_tensors(pairs: &[(&str, f32)]) -> HashMap<String, Vec<f32>> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), vec![*value])).collect()
    }

    #[test]
    fn scalar_limits_may_be_missing() {
        let scalars = scalar_tensors(&[("up.input_min", -2.0), ("up.output_max", 3.0)]);
        let clamps = Clamps::new(&["up".into(), "down".into()], &scalars, &[]);
        let limits = [-2.0, f32::INFINITY, f32::NEG_INFINITY, 3.0];
        assert_eq!(clamps.get("up"), Some(limits));
        assert_eq!(clamps.get("down"), None);
    }

    #[test]
    fn packed_limits_take_precedence_and_zeros_mean_none() {
        let packed = [0.0, 0.0, 0.0, 0.0, -1.0, 1.0, -5.0, 5.0, 0.0, 0.0, 0.0, 0.0];
        let scalars = scalar_tensors(&[("q.input_min", -9.0)]);
        let clamps = Clamps::new(&["q".into(), "k".into()], &scalars, &packed);
        assert_eq!(clamps.get("q"), None);
        assert_eq!(clamps.get("k"), Some([-1.0, 1.0, -5.0, 5.0]));
    }
}
