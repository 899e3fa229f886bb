//! One row: that of the step's last token, `y[0, :] = x[count − 1, :]`, or that of a given index.

pub(crate) mod cases;

use bytemuck::NoUninit;

use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall, Kernel, Part},
    graph::{Graph, Op, Type, Value},
};

static FORWARD: Kernel =
    Kernel { name: "select_row/forward", source: include_str!("forward.wgsl") };

static LAST: &Part = part!("which", "last");
static GIVEN: &Part = part!("which", "input");

/// The row of the step's last token, or the row whose index is the second input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectRow;

impl Graph {
    /// The row of the step's last token: `[t, d]` to `[1, d]`.
    pub fn select_row(&mut self, x: Value) -> Value {
        self.apply(SelectRow, &[x])
    }

    /// The row of the index in `row`, `u32[1]`: `[t, d]` to `[1, d]`.
    pub fn select_row_at(&mut self, x: Value, row: Value) -> Value {
        self.apply(SelectRow, &[x, row])
    }
}

impl Op for SelectRow {
    fn name(&self) -> &'static str {
        "select_row"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let shape = &inputs[0].shape;
        assert!(shape.rows() > 0, "select_row: {shape} has no rows");
        if let Some(row) = inputs.get(1) {
            assert_eq!(**row, Type::u32([1]), "select_row: the index of one row");
        }
        vec![Type::f32([1, shape.width()])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, mut y) = (call.f32(0), call.out(0));
        // A run without tokens, or with more than the plan was built for, still reads a row that exists.
        let index = match call.inputs() {
            1 => call.step.count.max(1) - 1,
            _ => call.u32(1)[0],
        };
        let row = (index as usize).min(call.input(0).shape.rows() - 1);
        let width = y.len();
        y.copy_from_slice(&x[row * width..][..width]);
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let shape = &call.input(0).shape;
        let params = Params { width: shape.width() as u32, rows: shape.rows() as u32 };
        let dispatch = Dispatch::new(&FORWARD)
            .params(&params)
            .read(BufferRef::Input(0))
            .write(BufferRef::Output(0))
            .grid_over(shape.width().div_ceil(256));
        vec![match call.inputs() {
            1 => dispatch.part(LAST),
            _ => dispatch.part(GIVEN).read(BufferRef::Input(1)),
        }]
    }
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    width: u32,
    rows: u32,
}
