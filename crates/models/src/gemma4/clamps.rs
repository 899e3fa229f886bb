//! Limits of what enters and leaves the products of some towers.

use std::collections::HashMap;

use rullama_engine::{
    graph::Value,
    ops::{Clamp, ClampedPrologue, Slice, Stacked},
};

use crate::build::Build;

const ENDS: [&str; 4] = ["input_min", "input_max", "output_min", "output_max"];

/// Limits by the name of the product: least and most of what enters, least and most of what leaves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Clamps(HashMap<String, [f32; 4]>);

impl Clamps {
    /// Names of the tensors that may hold the limits of these products.
    pub fn tensors(products: &[String]) -> Vec<String> {
        products.iter().flat_map(|name| ENDS.map(|end| format!("{name}.{end}"))).collect()
    }

    /// The limits of products, from the numbers of those tensors that the file has. `packed` holds those of all products in
    /// order, four each, where a file keeps them together; they come first.
    pub fn new(products: &[String], numbers: &HashMap<String, Vec<f32>>, packed: &[f32]) -> Self {
        let mut known = HashMap::new();
        let mut fours = packed.as_chunks::<4>().0.iter();
        for name in products {
            let given =
                |end: usize| numbers.get(&format!("{name}.{}", ENDS[end]))?.first().copied();
            let scattered = [
                given(0).unwrap_or(f32::NEG_INFINITY),
                given(1).unwrap_or(f32::INFINITY),
                given(2).unwrap_or(f32::NEG_INFINITY),
                given(3).unwrap_or(f32::INFINITY),
            ];
            let limits = fours.next().copied().unwrap_or(scattered);
            // Four zeros stand for no limits: anything else would make everything zero.
            let sensible = limits[0] <= limits[1] && limits[2] <= limits[3];
            if sensible && limits != [0.0; 4] && limits.iter().any(|limit| limit.is_finite()) {
                known.insert(name.clone(), limits);
            }
        }
        Self(known)
    }

    /// The limits of a product; `None` if it has none.
    pub fn get(&self, name: &str) -> Option<[f32; 4]> {
        self.0.get(name).copied()
    }
}

/// A graph whose products may have limits. Each limits what it reads by itself: others read the same.
pub(super) struct Clipped<'a> {
    pub(super) b: Build<'a>,
    pub(super) clamps: &'a Clamps,
    /// Rows of weights that a product may have: what it makes must not be too large for the device.
    pub(super) most_rows: usize,
}

impl Clipped<'_> {
    /// A product whose weight has this name inside the scope.
    pub(super) fn linear(&mut self, x: Value, name: &str) -> Value {
        self.product(&ClampedPrologue::Rows(x), name).1
    }

    /// The product of what `start` makes with a weight of this name, and the stream if that makes a new one.
    pub(super) fn product(
        &mut self,
        start: &ClampedPrologue,
        name: &str,
    ) -> (Option<Value>, Value) {
        let (h, products) = self.products(start, &[name]);
        (h, products[0].value)
    }

    /// The stream after a norm, about to enter products.
    pub(super) fn after_norm(&mut self, h: Value, name: &str, eps: f32) -> ClampedPrologue {
        ClampedPrologue::Norm { h, weight: self.b.weight(name), eps }
    }

    /// Limits of what enters a product, and of what leaves it.
    fn limits(&self, name: &str) -> [Clamp; 2] {
        let Some([in_least, in_most, least, most]) = self.clamps.get(&self.b.full(name)) else {
            return [Clamp::NONE; 2];
        };
        [Clamp { least: in_least, most: in_most }, Clamp { least, most }]
    }

    /// Products of what `start` makes with several weights, one product where they are stored alike and may be one; and the stream if
    /// `start` makes a new one.
    pub(super) fn products(
        &mut self,
        start: &ClampedPrologue,
        names: &[&str],
    ) -> (Option<Value>, Vec<Slice>) {
        let stacked: Vec<Stacked> = names.iter().map(|name| self.stacked(name)).collect();
        let rows: usize = stacked.iter().map(|tensor| tensor.rows).sum();
        let together = rows <= self.most_rows && Stacked::may_be_one(&stacked);
        // What is stacked is loaded: only where it is used.
        match together.then(|| self.b.stack(names)).flatten() {
            Some((weight, _)) => {
                let (h, y) = self.b.graph.clamped_linear(start, weight, &stacked);
                let mut first = 0;
                let slice = |tensor: &Stacked| {
                    first += tensor.rows;
                    Slice::new(y, first - tensor.rows, tensor.rows)
                };
                (h, stacked.iter().map(slice).collect())
            }
            None => self.apart(start, names),
        }
    }

    /// A tensor about to be stacked.
    fn stacked(&self, name: &str) -> Stacked {
        let [takes, gives] = self.limits(name);
        Stacked { rows: self.b.rows_of(name), input: takes, output: gives }
    }

    /// The same one by one.
    fn apart(&mut self, start: &ClampedPrologue, names: &[&str]) -> (Option<Value>, Vec<Slice>) {
        let (mut start, mut stream, mut products) = (*start, None, Vec::new());
        for name in names {
            let one = self.stacked(name);
            let (h, y) = match self.b.stack(&[name]) {
                Some((weight, _)) => self.b.graph.clamped_linear(&start, weight, &[one]),
                // It has a scale.
                None => {
                    let (h, x) = self.b.graph.clamped_prologue(&start);
                    let x = one.input.clamp(&mut self.b.graph, x);
                    let y = self.b.linear(x, name);
                    (h, one.output.clamp(&mut self.b.graph, y))
                }
            };
            if let (Some(h), ClampedPrologue::ResidualAdd { next: weight, eps, .. }) = (h, start) {
                stream = Some(h);
                start = ClampedPrologue::Norm { h, weight, eps };
            }
            products.push(y.into());
        }
        (stream, products)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(pairs: &[(&str, f32)]) -> HashMap<String, Vec<f32>> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), vec![*value])).collect()
    }

    #[test]
    fn scattered_limits_may_be_missing() {
        let given = numbers(&[("up.input_min", -2.0), ("up.output_max", 3.0)]);
        let clamps = Clamps::new(&["up".into(), "down".into()], &given, &[]);
        let limits = [-2.0, f32::INFINITY, f32::NEG_INFINITY, 3.0];
        assert_eq!(clamps.get("up"), Some(limits));
        assert_eq!(clamps.get("down"), None);
    }

    #[test]
    fn packed_limits_come_first_and_zeros_are_none() {
        let packed = [0.0, 0.0, 0.0, 0.0, -1.0, 1.0, -5.0, 5.0, 0.0, 0.0, 0.0, 0.0];
        let given = numbers(&[("q.input_min", -9.0)]);
        let clamps = Clamps::new(&["q".into(), "k".into()], &given, &packed);
        assert_eq!(clamps.get("q"), None);
        assert_eq!(clamps.get("k"), Some([-1.0, 1.0, -5.0, 5.0]));
    }
}
