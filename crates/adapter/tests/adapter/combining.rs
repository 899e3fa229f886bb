use proptest::prelude::*;
use rullama_adapter::{Pair, Weighted, combine};

use crate::support::{pair, pairs, update};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_update_is_the_weighted_sum(
        shape in (1usize..4, 1usize..6, 1usize..6),
        parts in prop::collection::vec((1usize..5, -2.0f32..2.0, -2.0f32..2.0), 1..4),
    ) {
        let (experts, rows, columns) = shape;
        let all: Vec<Pair> = parts
            .iter()
            .map(|(rank, scale, _)| pairs("w", (experts, *rank), [rows, columns], *scale))
            .collect();
        let weighted: Vec<Weighted<'_>> = all
            .iter()
            .zip(&parts)
            .map(|(pair, (_, _, weight))| Weighted { pair, weight: *weight })
            .collect();
        let sums = combine(&weighted);
        prop_assert_eq!(sums.len(), 1);
        prop_assert_eq!(sums[0].rank, parts.iter().map(|(rank, ..)| rank).sum::<usize>());
        let mut merged = vec![0.0; experts * rows * columns];
        sums[0].add_to(0, &mut merged);
        let mut later = vec![0.0; (experts * rows - rows / 2) * columns];
        sums[0].add_to(rows / 2, &mut later);
        prop_assert_eq!(&merged[rows / 2 * columns..], &later[..]);
        for (i, found) in merged.iter().enumerate() {
            let wanted: f32 = weighted.iter().map(|w| w.weight * update(w.pair)[i]).sum();
            prop_assert!((found - wanted).abs() < 1e-3, "{found} and {wanted}");
        }
    }
}

#[test]
fn different_tensors_stay_separate() {
    let (one, other) = (pair("a", 1, 2, 2, 1.0), pair("b", 2, 3, 2, 1.0));
    let weighted = [Weighted { pair: &other, weight: 1.0 }, Weighted { pair: &one, weight: 1.0 }];
    assert_eq!(combine(&weighted), [one, other]);
}
