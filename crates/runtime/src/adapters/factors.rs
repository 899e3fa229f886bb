//! Stacks the LoRA pairs of several tensors into the two weights a graph reads.

use std::collections::BTreeMap;

use rullama_adapter::Pair;
use rullama_models::FactorGroup;

/// Both weights, row-major.
pub(super) struct Stacked {
    pub(super) a: Vec<f32>,
    pub(super) b: Vec<f32>,
}

/// Stacks `A` of all tensors by rows, and `B` as a block-diagonal matrix, for each expert. The scales of `pairs` must be 1, their ranks at most those of
/// the group.
pub(super) fn of_group(group: &FactorGroup, pairs: &BTreeMap<&str, &Pair>) -> Stacked {
    let FactorGroup { experts, rank: all, columns, .. } = *group;
    let all_rows: usize = group.tensors.iter().map(|(_, rows, _)| rows).sum();
    let (a, b) = (vec![0.0; experts * all * columns], vec![0.0; experts * all_rows * all]);
    let mut stacked = Stacked { a, b };
    let (mut first_row, mut first) = (0, 0);
    for (tensor, rows, rank) in &group.tensors {
        if let Some(pair) = pairs.get(tensor.as_str()) {
            let (up, down) = balance(pair);
            for (i, row) in pair.a.chunks_exact(columns).enumerate() {
                let (expert, r) = (i / pair.rank, first + i % pair.rank);
                for (column, value) in row.iter().enumerate() {
                    let at = if group.lookup {
                        column * all + r
                    } else {
                        (expert * all + r) * columns + column
                    };
                    stacked.a[at] = value * up;
                }
            }
            for (i, values) in pair.b.chunks_exact(pair.rank).enumerate() {
                let (expert, row) = (i / rows, first_row + i % rows);
                let at = (expert * all_rows + row) * all + first;
                stacked.b[at..at + pair.rank]
                    .iter_mut()
                    .zip(values)
                    .for_each(|(to, b)| *to = b * down);
            }
        }
        first_row += rows;
        first += rank;
    }
    stacked
}

/// The transpose of a matrix with rows of this width.
pub(super) fn transposed(values: &[f32], width: usize) -> Vec<f32> {
    let column = |i: usize| values.iter().skip(i).step_by(width).copied();
    (0..width).flat_map(column).collect()
}

/// Powers of two that bring both factors to the same magnitude, so that both fit f16.
fn balance(pair: &Pair) -> (f32, f32) {
    let largest = |values: &[f32]| values.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let (a, b) = (largest(&pair.a), largest(&pair.b));
    if a == 0.0 || b == 0.0 {
        return (1.0, 1.0);
    }
    let steps = ((b / a).log2() / 2.0).round().clamp(-60.0, 60.0);
    (steps.exp2(), (-steps).exp2())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(tensor: &str, rank: usize, rows: usize, columns: usize) -> Pair {
        let values = |count: usize| (1..=count).map(|i| i as f32).collect::<Vec<_>>();
        let (a, b) = (values(rank * columns), values(rows * rank));
        Pair { tensor: tensor.into(), experts: 1, rank, rows, columns, a, b, scale: 1.0 }
    }

    fn group(lookup: bool, tensors: &[(&str, usize, usize)], rank: usize) -> FactorGroup {
        let tensors = tensors.iter().map(|(n, rows, rank)| ((*n).into(), *rows, *rank)).collect();
        let (a, b) = ("a".into(), "b".into());
        FactorGroup { a, b, b_transposed: None, tensors, experts: 1, rank, columns: 2, lookup }
    }

    #[test]
    fn transposes() {
        assert_eq!(transposed(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    }

    #[test]
    fn smaller_ranks_are_padded() {
        let v = pair("v", 1, 2, 2);
        let group = group(false, &[("q", 1, 4), ("v", 2, 4)], 8);
        let stacked = of_group(&group, &[("v", &v)].into());
        let (mut a, mut b) = ([0.0; 8 * 2], [0.0; 3 * 8]);
        (a[8], a[9]) = (1.0, 2.0);
        (b[8 + 4], b[16 + 4]) = (1.0, 2.0);
        assert_eq!((stacked.a, stacked.b), (a.to_vec(), b.to_vec()));
    }

    #[test]
    fn experts_have_separate_factors() {
        let mut down = pair("down", 1, 2, 2);
        down.experts = 2;
        (down.a, down.b) = (vec![1.0, 2.0, 3.0, 4.0], vec![4.0, 3.0, 2.0, 1.0]);
        let group = FactorGroup { experts: 2, ..group(false, &[("down", 2, 1)], 4) };
        let stacked = of_group(&group, &[("down", &down)].into());
        let rows = |values: &[f32], length: usize, wanted: &[(usize, &[f32])]| {
            for (row, found) in values.chunks_exact(length).enumerate() {
                let wanted = wanted.iter().find(|(at, _)| *at == row).map(|(_, it)| it.to_vec());
                assert_eq!(found, wanted.unwrap_or(vec![0.0; length]), "row {row}");
            }
        };
        rows(&stacked.a, 2, &[(0, &[1.0, 2.0]), (4, &[3.0, 4.0])]);
        let b = [4.0, 3.0, 2.0, 1.0].map(|value| [value, 0.0, 0.0, 0.0]);
        rows(&stacked.b, 4, &[(0, &b[0]), (1, &b[1]), (2, &b[2]), (3, &b[3])]);
    }

    #[test]
    fn tensors_have_separate_blocks() {
        let (q, v) = (pair("q", 1, 2, 2), pair("v", 2, 1, 2));
        let pairs = [("q", &q), ("v", &v)].into();
        // `k` has no factors; one column is padding.
        let stacked = of_group(&group(false, &[("q", 2, 1), ("k", 1, 0), ("v", 1, 2)], 4), &pairs);
        // `v` is balanced by powers of two; `q` already is.
        let half = balance(&v);
        assert_eq!(stacked.a[..2], [1.0, 2.0]);
        assert_eq!(stacked.a[2..], [1.0, 2.0, 3.0, 4.0, 0.0, 0.0].map(|x| x * half.0));
        let rows: Vec<&[f32]> = stacked.b.chunks_exact(4).collect();
        assert_eq!(rows[0], [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(rows[1], [2.0, 0.0, 0.0, 0.0]);
        assert_eq!(rows[2], [0.0; 4]);
        assert_eq!(rows[3], [0.0, 1.0, 2.0, 0.0].map(|x| x * half.1));
    }

    #[test]
    fn lookup_stores_a_transposed() {
        let table = pair("t", 2, 2, 2);
        let stacked = of_group(&group(true, &[("t", 2, 2)], 4), &[("t", &table)].into());
        assert_eq!(stacked.a, [1.0, 3.0, 0.0, 0.0, 2.0, 4.0, 0.0, 0.0]);
        assert_eq!(stacked.b, [1.0, 2.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0]);
    }
}
