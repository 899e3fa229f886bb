//! The last live row: `y[0, :] = x[count − 1, :]`, where `count` is the step's.

pub(crate) mod cases;

use bytemuck::NoUninit;

use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall, Kernel, Place},
    graph::{Graph, Op, Type, Value},
};

static FORWARD: Kernel =
    Kernel { name: "select_row/forward", source: include_str!("forward.wgsl") };

/// The row of the run's last token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectRow;

impl Graph {
    /// The row of the run's last token: `[t, d]` to `[1, d]`.
    pub fn select_row(&mut self, x: Value) -> Value {
        self.apply(SelectRow, &[x])
    }
}

impl Op for SelectRow {
    fn name(&self) -> &'static str {
        "select_row"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let shape = &inputs[0].shape;
        assert!(shape.rows() > 0, "select_row: {shape} has no rows");
        vec![Type::f32([1, shape.width()])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, mut y) = (call.f32(0), call.out(0));
        // A run without tokens, or with more than the plan was made for, still reads a row that exists.
        let row = (call.step.count.max(1) as usize).min(call.input(0).shape.rows()) - 1;
        let width = y.len();
        y.copy_from_slice(&x[row * width..][..width]);
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let shape = &call.input(0).shape;
        let params = Params { width: shape.width() as u32, rows: shape.rows() as u32 };
        vec![
            Dispatch::new(&FORWARD)
                .params(&params)
                .read(Place::Input(0))
                .write(Place::Output(0))
                .grid_over(shape.width().div_ceil(256)),
        ]
    }
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    width: u32,
    rows: u32,
}
