//! Slices of columns of a value, so that the outputs of a stacked matmul need not be copied.

use super::HeadNormRope;
use crate::graph::{Graph, Type, Value};

/// Columns of a value `[t, n]`, from `first` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// The sliced value.
    pub value: Value,
    /// The first column.
    pub first: usize,
    /// Number of columns, or all that follow.
    pub width: Option<usize>,
}

impl From<Value> for Slice {
    fn from(value: Value) -> Self {
        Self { value, first: 0, width: None }
    }
}

impl Slice {
    /// `width` columns of a value, from `first` on.
    pub fn new(value: Value, first: usize, width: usize) -> Self {
        Self { value, first, width: Some(width) }
    }

    /// The slice's columns.
    ///
    /// # Panics
    /// If the value has fewer.
    pub(crate) fn columns(&self, graph: &Graph) -> Columns {
        let ty = graph.ty(self.value);
        let rest = ty.shape.width().checked_sub(self.first);
        let width = self.width.or(rest).unwrap_or(0);
        assert!(rest.is_some_and(|rest| width <= rest), "{self:?} of {ty}");
        Columns { first: self.first, width }
    }
}

/// Columns of an operation's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    /// The first column.
    pub first: usize,
    /// Number of columns.
    pub width: usize,
}

impl Columns {
    /// Number of heads of `width` elements.
    ///
    /// # Panics
    /// If they are not whole heads, or not aligned to vec4s.
    pub(crate) fn heads(&self, x: &Type, width: usize) -> usize {
        let step = HeadNormRope::WIDTH_STEP;
        assert!(width.is_multiple_of(step), "heads of {width}: kernels take multiples of {step}");
        assert!(self.width.is_multiple_of(width), "{self:?} of {x} in heads of {width}");
        let aligned = self.first.is_multiple_of(4) && x.shape.width().is_multiple_of(4);
        assert!(aligned, "{self:?} of {x}: slices start at multiples of four");
        assert!(self.first + self.width <= x.shape.width(), "{self:?} of {x}");
        self.width / width
    }

    /// The columns of one row of `values`, whose rows have the type of `x`.
    pub(crate) fn of<'a>(&self, values: &'a [f32], x: &Type, row: usize) -> &'a [f32] {
        &values[row * x.shape.width() + self.first..][..self.width]
    }
}
