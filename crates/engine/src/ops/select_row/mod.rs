//! One row: the last live one, `y[0, :] = x[count − 1, :]`, where `count` is the step's; or that of a number that is given.

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

/// The row of the run's last token, or the one whose number is the second input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectRow;

impl Graph {
    /// The row of the run's last token: `[t, d]` to `[1, d]`.
    pub fn select_row(&mut self, x: Value) -> Value {
        self.apply(SelectRow, &[x])
    }

    /// The row of the number in `row`, ids `[1]`: `[t, d]` to `[1, d]`.
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
            assert_eq!(**row, Type::u32([1]), "select_row: the number of one row");
        }
        vec![Type::f32([1, shape.width()])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, mut y) = (call.f32(0), call.out(0));
        // A run without tokens, or with more than the plan was made for, still reads a row that exists.
        let number = match call.inputs() {
            1 => call.step.count.max(1) - 1,
            _ => call.u32(1)[0],
        };
        let row = (number as usize).min(call.input(0).shape.rows() - 1);
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
