//! Factors of several tensors as the two weights a list asks for.

use std::collections::BTreeMap;

use rullama_adapter::Pair;
use rullama_models::FactorGroup;

/// Both weights, row by row.
pub(super) struct Made {
    pub(super) a: Vec<f32>,
    pub(super) b: Vec<f32>,
}

/// `A` of the tensors below each other; `B` with a block for each of them, and zeros elsewhere. `pairs` have the scale 1.
pub(super) fn of_group(group: &FactorGroup, pairs: &BTreeMap<&str, &Pair>) -> Made {
    let FactorGroup { rank: all, columns, .. } = *group;
    let rows: usize = group.tensors.iter().map(|(_, rows, _)| rows).sum();
    let mut made = Made { a: vec![0.0; all * columns], b: vec![0.0; rows * all] };
    let (mut first_row, mut first) = (0, 0);
    for (tensor, rows, rank) in &group.tensors {
        if let Some(pair) = pairs.get(tensor.as_str()) {
            let (up, down) = balance(pair);
            for (r, row) in pair.a.chunks_exact(columns).enumerate() {
                for (column, number) in row.iter().enumerate() {
                    let at = if group.lookup {
                        column * all + first + r
                    } else {
                        (first + r) * columns + column
                    };
                    made.a[at] = number * up;
                }
            }
            for (row, numbers) in pair.b.chunks_exact(*rank).enumerate() {
                let at = (first_row + row) * all + first;
                made.b[at..at + rank].iter_mut().zip(numbers).for_each(|(to, b)| *to = b * down);
            }
        }
        first_row += rows;
        first += rank;
    }
    made
}

/// Powers of two that make both factors of a size, so that halves hold either well.
fn balance(pair: &Pair) -> (f32, f32) {
    let largest = |numbers: &[f32]| numbers.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
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
        let numbers = |count: usize| (1..=count).map(|i| i as f32).collect::<Vec<_>>();
        let (a, b) = (numbers(rank * columns), numbers(rows * rank));
        Pair { tensor: tensor.into(), rank, rows, columns, a, b, scale: 1.0 }
    }

    fn group(lookup: bool, tensors: &[(&str, usize, usize)], rank: usize) -> FactorGroup {
        let tensors = tensors.iter().map(|(n, rows, rank)| ((*n).into(), *rows, *rank)).collect();
        FactorGroup { a: "a".into(), b: "b".into(), tensors, rank, columns: 2, lookup }
    }

    #[test]
    fn tensors_have_blocks_of_their_own() {
        let (q, v) = (pair("q", 1, 2, 2), pair("v", 2, 1, 2));
        let pairs = [("q", &q), ("v", &v)].into();
        // Keys have no factors; one column is left over.
        let made = of_group(&group(false, &[("q", 2, 1), ("k", 1, 0), ("v", 1, 2)], 4), &pairs);
        // Powers of two were moved between v's factors; q's are of a size.
        let half = balance(&v);
        assert_eq!(made.a[..2], [1.0, 2.0]);
        assert_eq!(made.a[2..], [1.0, 2.0, 3.0, 4.0, 0.0, 0.0].map(|x| x * half.0));
        let rows: Vec<&[f32]> = made.b.chunks_exact(4).collect();
        assert_eq!(rows[0], [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(rows[1], [2.0, 0.0, 0.0, 0.0]);
        assert_eq!(rows[2], [0.0; 4]);
        assert_eq!(rows[3], [0.0, 1.0, 2.0, 0.0].map(|x| x * half.1));
    }

    #[test]
    fn a_lookup_has_its_second_factor_by_columns() {
        let table = pair("t", 2, 2, 2);
        let made = of_group(&group(true, &[("t", 2, 2)], 4), &[("t", &table)].into());
        assert_eq!(made.a, [1.0, 3.0, 0.0, 0.0, 2.0, 4.0, 0.0, 0.0]);
        assert_eq!(made.b, [1.0, 2.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0]);
    }
}
