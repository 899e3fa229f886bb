//! In which order numbers lie between two operations. Where only one reads what another makes, and its lanes take units of a weight, whose
//! columns are scattered, they are written in the order they are read in.

use rullama_gguf::DType;

use super::{Dispatch, GpuCall, Part};

/// Group by group of a weight's units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Columns that have their units in common.
    pub span: u32,
    /// Units of a row.
    pub units: u32,
    /// As whole numbers of two digits, for products of packed bytes; each half of a unit has a scale of its own.
    pub digits: bool,
}

static ROWS: Part =
    Part { kind: "lay", name: "lay/rows", source: include_str!("../wgsl/lay/rows.wgsl") };
static UNITS: Part =
    Part { kind: "lay", name: "lay/units", source: include_str!("../wgsl/lay/units.wgsl") };

impl Order {
    /// Columns that lie beside each other in half a unit of any format.
    pub(crate) const HALF: usize = 16;

    /// For rows of so many units of a format; `None` if its units lie otherwise.
    pub(crate) fn new(dtype: DType, row_units: usize) -> Option<Self> {
        let span = match dtype {
            DType::Q2_K | DType::Q3_K => return None,
            DType::Q4_K | DType::Q5_K => 64,
            DType::Q6_K => 128,
            _ => 32,
        };
        Some(Self { span, units: u32::try_from(row_units).ok()?, digits: false })
    }

    /// The same order, of floats.
    pub(crate) fn of_floats(self) -> Self {
        Self { digits: false, ..self }
    }

    /// With the part that says where results lie.
    pub(crate) fn lay(order: Option<Self>, dispatch: Dispatch) -> Dispatch {
        match order {
            None => dispatch.part(&ROWS),
            Some(order) => order.told(dispatch.part(&UNITS)),
        }
    }

    /// With what parts want to know of it.
    pub(crate) fn told(self, dispatch: Dispatch) -> Dispatch {
        dispatch.constant("SPAN", self.span).constant("UNITS", self.units)
    }
}

impl GpuCall<'_> {
    /// The order that result `i` lies in, if not row by row.
    pub(crate) fn result_order(&self, i: usize) -> Option<Order> {
        let reader = self.only_reader(i)?;
        let order = reader.op().wants_order(&reader)?;
        self.op().lays(self, i, order)
    }

    /// The same for the first input.
    pub(crate) fn input_order(&self) -> Option<Order> {
        let (maker, i) = self.maker(0)?;
        maker.result_order(i)
    }
}
