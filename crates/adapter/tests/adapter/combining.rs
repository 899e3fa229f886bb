use proptest::prelude::*;
use rullama_adapter::{Pair, Weighted, combine};

use crate::support::{change, pair};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_change_is_the_weighted_sum(
        shape in (1usize..6, 1usize..6),
        parts in prop::collection::vec((1usize..5, -2.0f32..2.0, -2.0f32..2.0), 1..4),
    ) {
        let (rows, columns) = shape;
        let pairs: Vec<Pair> = parts
            .iter()
            .map(|(rank, scale, _)| pair("blk.0.attn_q.weight", *rank, rows, columns, *scale))
            .collect();
        let weighted: Vec<Weighted<'_>> = pairs
            .iter()
            .zip(&parts)
            .map(|(pair, (_, _, weight))| Weighted { pair, weight: *weight })
            .collect();
        let sums = combine(&weighted);
        prop_assert_eq!(sums.len(), 1);
        prop_assert_eq!(sums[0].rank, parts.iter().map(|(rank, ..)| rank).sum::<usize>());
        for (i, found) in change(&sums[0]).iter().enumerate() {
            let wanted: f32 = weighted.iter().map(|w| w.weight * change(w.pair)[i]).sum();
            prop_assert!((found - wanted).abs() < 1e-3, "{found} and {wanted}");
        }
    }
}

#[test]
fn tensors_stay_apart() {
    let (one, other) = (pair("a", 1, 2, 2, 1.0), pair("b", 2, 3, 2, 1.0));
    let weighted = [Weighted { pair: &other, weight: 1.0 }, Weighted { pair: &one, weight: 1.0 }];
    assert_eq!(combine(&weighted), [one, other]);
}
