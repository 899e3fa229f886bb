//! The layout of activations between two operations. Where one operation alone reads another's result, and its lanes read units of a weight,
//! whose columns are scattered, the producer stores them in the order in which they are read.

use rullama_gguf::DType;

use super::{Dispatch, Part};

/// Activations group by group of a weight's units, instead of row-major.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Columns that share their units.
    pub span: u32,
    /// Units of a row.
    pub units: u32,
    /// Quantised to int8 hi/lo pairs, for packed dot products; each half of a unit has a scale of its own.
    pub int8: bool,
}

/// A part of `wgsl/store_layout`.
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
    /// Neighbouring columns in half a unit of any format.
    pub(crate) const HALF: usize = 16;

    /// For rows of this many units of a format; `None` if its units are arranged otherwise.
    pub(crate) fn new(dtype: DType, row_units: usize) -> Option<Self> {
        let span = match dtype {
            DType::Q2_K | DType::Q3_K => return None,
            DType::Q4_K | DType::Q5_K => 64,
            DType::Q6_K => 128,
            _ => 32,
        };
        Some(Self { span, units: u32::try_from(row_units).ok()?, int8: false })
    }

    /// The same layout, of floats.
    pub(crate) fn of_floats(self) -> Self {
        Self { int8: false, ..self }
    }

    /// Adds the part that says where results are stored.
    pub(crate) fn stored(layout: Option<Self>, dispatch: Dispatch) -> Dispatch {
        match layout {
            None => dispatch.part(store_layout!("row_major")),
            Some(layout) => layout.constants(dispatch.part(store_layout!("permuted"))),
        }
    }

    /// Adds the constants that its parts need.
    pub(crate) fn constants(self, dispatch: Dispatch) -> Dispatch {
        dispatch.constant("SPAN", self.span).constant("UNITS", self.units)
    }
}
