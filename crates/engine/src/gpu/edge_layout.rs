//! The layout of activations between two operations. Lanes of a GEMV read units of a quantised weight, whose columns are not adjacent; if
//! that GEMV is the only reader of a result, the producer stores it in the order in which it is read.

use rullama_gguf::DType;

use super::{Dispatch, Part};

/// Activations in the order of a weight's units, instead of row-major.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Columns that a group of units covers together.
    pub span: u32,
    /// Units per row.
    pub units: u32,
    /// Whether values are quantised to int8 hi/lo pairs for packed dot products; each half of a unit then has its own scale.
    pub int8: bool,
}

/// A part in `wgsl/store_layout`.
macro_rules! store_layout {
    ($name:literal) => {{
        static PART: Part = Part {
            kind: "store_layout",
            name: concat!("store_layout/", $name),
            source: include_str!(concat!("../wgsl/store_layout/", $name, ".wgsl")),
        };
        &PART
    }};
}

impl Layout {
    /// Adjacent columns in half a unit of any format.
    pub(crate) const HALF: usize = 16;

    /// The layout for rows of `row_units` units of a format; `None` for formats whose units have another structure.
    pub(crate) fn new(dtype: DType, row_units: usize) -> Option<Self> {
        let span = match dtype {
            DType::Q2_K | DType::Q3_K => return None,
            DType::Q4_K | DType::Q5_K => 64,
            DType::Q6_K => 128,
            _ => 32,
        };
        Some(Self { span, units: u32::try_from(row_units).ok()?, int8: false })
    }

    /// The same layout with f32 values.
    pub(crate) fn of_floats(self) -> Self {
        Self { int8: false, ..self }
    }

    /// Adds the part that computes where results are stored.
    pub(crate) fn stored(layout: Option<Self>, dispatch: Dispatch) -> Dispatch {
        match layout {
            None => dispatch.part(store_layout!("row_major")),
            Some(layout) => layout.constants(dispatch.part(store_layout!("permuted"))),
        }
    }

    /// Adds the constants of the layout's parts.
    pub(crate) fn constants(self, dispatch: Dispatch) -> Dispatch {
        dispatch.constant("SPAN", self.span).constant("UNITS", self.units)
    }
}
