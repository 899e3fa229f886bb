//! The definition of a fused linear layer: prologue, rows of the weight, epilogue, LoRA form and the layouts of its edges. No kernels.

mod edges;
mod epilogue;
mod lora_form;
mod prologue;
mod rows;

pub(super) use edges::EdgeLayouts;
pub use epilogue::Epilogue;
pub use lora_form::{FoldedDown, LoraForm, SlotFactors};
pub use prologue::Prologue;
pub use rows::{ExpertRows, RowSelect};

/// A fused linear layer. Inputs: those of its prologue, the weight, those of its row selection, of its epilogue and of its LoRA form. Results:
/// the residual stream `h1` if the prologue adds to it, then `y`.
#[derive(Debug, Clone, PartialEq)]
pub struct FusedLinear {
    /// Computes the activations `x`; by input index.
    pub prologue: Prologue<usize>,
    /// Which rows of the weight are multiplied.
    pub rows: RowSelect,
    /// Applied to the output rows; by input index.
    pub epilogue: Epilogue<usize>,
    /// How a LoRA pair is added before the epilogue.
    pub lora: LoraForm,
}

impl FusedLinear {
    /// A linear layer without prologue and epilogue.
    pub(in crate::ops::matmul) fn plain(rows: RowSelect, lora: LoraForm) -> Self {
        Self { prologue: Prologue::Rows(0), rows, epilogue: Epilogue::Plain, lora }
    }

    /// Whether it has neither prologue nor epilogue.
    pub(in crate::ops::matmul) fn is_plain(&self) -> bool {
        self.prologue.is_rows() && self.epilogue == Epilogue::Plain
    }

    /// Index of the weight input.
    pub(in crate::ops::matmul) fn weight_input(&self) -> usize {
        self.prologue.inputs()
    }

    /// Index of the result `y`.
    pub(in crate::ops::matmul) fn y_output(&self) -> usize {
        usize::from(matches!(self.prologue, Prologue::ResidualAdd { .. }))
    }
}
