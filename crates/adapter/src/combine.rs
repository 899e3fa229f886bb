//! Several adapters as one: their factors concatenated along the rank.

use std::collections::BTreeMap;

use crate::Pair;

/// A LoRA pair and the weight of its adapter.
#[derive(Debug, Clone, Copy)]
pub struct Weighted<'a> {
    /// The pair.
    pub pair: &'a Pair,
    /// Factor applied to its update `scale · B A`.
    pub weight: f32,
}

/// One pair of scale 1 for each adapted tensor, whose update is the weighted sum of the updates of `pairs`.
///
/// # Panics
/// If two pairs for the same tensor have different shapes, which fitting both to the same model rules out.
pub fn combine(pairs: &[Weighted<'_>]) -> Vec<Pair> {
    let mut by_tensor: BTreeMap<&str, Vec<&Weighted<'_>>> = BTreeMap::new();
    for pair in pairs {
        by_tensor.entry(&pair.pair.tensor).or_default().push(pair);
    }
    by_tensor.into_values().map(|pairs| sum(&pairs)).collect()
}

fn sum(pairs: &[&Weighted<'_>]) -> Pair {
    let &Pair { ref tensor, experts, rows, columns, .. } = pairs[0].pair;
    let rank = pairs.iter().map(|pair| pair.pair.rank).sum();
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for expert in 0..experts {
        for Weighted { pair, .. } in pairs {
            let shape = [pair.experts, pair.rows, pair.columns];
            assert_eq!(shape, [experts, rows, columns], "pairs of {tensor}");
            let length = pair.rank * columns;
            a.extend_from_slice(&pair.a[expert * length..][..length]);
        }
    }
    for row in 0..experts * rows {
        for Weighted { pair, weight } in pairs {
            let factor = pair.scale * weight;
            let values = &pair.b[row * pair.rank..][..pair.rank];
            b.extend(values.iter().map(|value| value * factor));
        }
    }
    Pair { tensor: tensor.clone(), experts, rank, rows, columns, a, b, scale: 1.0 }
}
