//! Activations as f16 columns between two operations: what matrix units read. If a GEMM with matrix units is the only reader of a result, its
//! producer stores the columns, which saves the dispatch that converts them.

use rullama_gguf::DType;

use super::{Dispatch, Layout, Part, memory::value_bytes};
use crate::graph::Type;

static STORE: Part = Part {
    kind: "f16_columns",
    name: "f16_columns/store",
    source: include_str!("../wgsl/f16_columns/store.wgsl"),
};
/// The power of two that a column is divided by.
static EXPONENT: Part = Part {
    kind: "f16_exponent",
    name: "f16_exponent/exponent",
    source: include_str!("../wgsl/f16_exponent/exponent.wgsl"),
};

/// Rows as f16 columns in the order of a weight's units, each divided by a power of two whose exponent follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct F16Columns {
    /// Elements that a group of units covers together, as in [`Layout`].
    pub span: u32,
    /// Units per column.
    pub units: u32,
}

impl F16Columns {
    /// For rows `x` and a weight of a format with `row_units` units per row; `None` if producers cannot store them in the memory of `x`, or in
    /// the order of the format.
    pub(crate) fn new(x: &Type, dtype: DType, row_units: usize) -> Option<Self> {
        let Layout { span, units, .. } = Layout::new(dtype, row_units)?;
        // A producer stores every element of a column, and zeros for the last odd unit.
        let is_whole =
            x.shape.width() == row_units * 32 && x.shape.width().is_multiple_of(span as usize);
        let fits = Self::bytes(x.shape.rows(), row_units) <= value_bytes(x);
        (is_whole && fits).then_some(Self { span, units })
    }

    /// Bytes of columns with `row_units` units: pairs of units of 64 bytes, and 16 bytes for the exponent. Split-K tiles read blocks of 16
    /// columns.
    pub(crate) fn bytes(columns: usize, row_units: usize) -> u64 {
        (columns.next_multiple_of(16) * (row_units.next_multiple_of(2) * 64 + 16)) as u64
    }

    /// Adds the part that chooses the power of two that a column is divided by.
    pub(crate) fn scaled(dispatch: Dispatch) -> Dispatch {
        dispatch.part(&EXPONENT)
    }

    /// Adds the parts with which a kernel stores columns, if it does.
    pub(crate) fn stored(columns: Option<Self>, dispatch: Dispatch) -> Dispatch {
        let Some(Self { span, units }) = columns else { return dispatch };
        Self::scaled(dispatch).part(&STORE).constant("SPAN", span).constant("UNITS", units)
    }
}

#[cfg(test)]
mod tests {
    use super::{DType, F16Columns, Type};

    #[test]
    fn columns_are_stored_where_they_fit_and_their_order_is_known() {
        let columns =
            |rows, width, dtype, units| F16Columns::new(&Type::f32([rows, width]), dtype, units);
        assert_eq!(columns(16, 1536, DType::Q4_K, 48), Some(F16Columns { span: 64, units: 48 }));
        assert_eq!(columns(12, 96, DType::F16, 3), Some(F16Columns { span: 32, units: 3 }));
        // Blocks of 16 columns exceed the memory of the rows.
        assert_eq!(columns(9, 32, DType::F16, 1), None);
        // Rows of the weight are padded, or units have another structure.
        assert_eq!(columns(16, 1536, DType::Q4_K, 56), None);
        assert_eq!(columns(16, 1536, DType::Q3_K, 48), None);
        assert_eq!(columns(16, 96, DType::Q6_K, 3), None);
    }
}
