//! Several adapters as one: factors side by side along the rank.

use std::collections::BTreeMap;

use crate::Pair;

/// Pairs and how much they count.
#[derive(Debug, Clone, Copy)]
pub struct Weighted<'a> {
    /// A pair.
    pub pair: &'a Pair,
    /// What its change is multiplied with.
    pub weight: f32,
}

/// One pair of scale 1 for each tensor that any of them changes, whose change is the weighted sum of theirs.
///
/// # Panics
/// If two pairs of a tensor have different shapes: both were fitted to the same model.
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
            let numbers = &pair.b[row * pair.rank..][..pair.rank];
            b.extend(numbers.iter().map(|number| number * factor));
        }
    }
    Pair { tensor: tensor.clone(), experts, rank, rows, columns, a, b, scale: 1.0 }
}
