//! LoRA pairs assembled from A and B, which come in any order.

use std::collections::BTreeMap;

use crate::{Pair, error::AdapterError};

/// A row-major matrix, or those of all experts, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Matrix {
    pub(crate) experts: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) values: Vec<f32>,
}

impl Matrix {
    /// The transposed matrix.
    pub(crate) fn transposed(&self) -> Self {
        let Self { experts, rows, columns, .. } = *self;
        debug_assert_eq!(experts, 1, "tables have no experts");
        let values = transposed(&self.values, rows, columns);
        Self { experts, rows: columns, columns: rows, values }
    }
}

/// `values` of `rows × columns` as `columns × rows`.
pub(crate) fn transposed(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let mut out = Vec::with_capacity(values.len());
    for column in 0..columns {
        out.extend((0..rows).map(|row| values[row * columns + column]));
    }
    out
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    A,
    B,
}

impl Half {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
        }
    }
}

/// A and B by tensor.
#[derive(Default)]
pub(crate) struct Halves(BTreeMap<String, [Option<Matrix>; 2]>);

impl Halves {
    pub(crate) fn add(
        &mut self,
        tensor: &str,
        half: Half,
        matrix: Matrix,
    ) -> Result<(), AdapterError> {
        if !matrix.values.iter().all(|value| value.is_finite()) {
            return Err(AdapterError::NotFinite { tensor: tensor.into() });
        }
        let slot = &mut self.0.entry(tensor.into()).or_default()[half as usize];
        if slot.replace(matrix).is_some() {
            return Err(AdapterError::Twice { tensor: tensor.into(), half: half.name() });
        }
        Ok(())
    }

    /// The pairs, each scaled by `scale(tensor, rank)`.
    pub(crate) fn pairs(
        self,
        scale: impl Fn(&str, usize) -> Result<f32, AdapterError>,
    ) -> Result<Vec<Pair>, AdapterError> {
        let pair = |(tensor, [a, b]): (String, [Option<Matrix>; 2])| {
            let missing =
                |half: Half| AdapterError::Missing { tensor: tensor.clone(), half: half.name() };
            let (a, b) = (a.ok_or_else(|| missing(Half::A))?, b.ok_or_else(|| missing(Half::B))?);
            if a.rows != b.columns {
                return Err(AdapterError::Ranks { tensor, a: a.rows, b: b.columns });
            }
            if a.experts != b.experts {
                return Err(AdapterError::Experts { tensor, a: a.experts, b: b.experts });
            }
            let scale = scale(&tensor, a.rows)?;
            let (experts, rank, rows, columns) = (a.experts, a.rows, b.rows, a.columns);
            Ok(Pair { tensor, experts, rank, rows, columns, a: a.values, b: b.values, scale })
        };
        self.0.into_iter().map(pair).collect()
    }
}
