//! Average pooling over squares of a grid: `y[Y·c + X, :] = scale · mean over dx, dy < side of x[(side·Y + dy)·columns + side·X + dx, :]`,
//! `c = columns / side`.

pub(crate) mod cases;

use bytemuck::NoUninit;

use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    graph::{Graph, Op, Type, Value},
};

static FORWARD: Kernel = Kernel { name: "pool/forward", source: include_str!("forward.wgsl") };

/// Average pooling over squares of a grid, whose positions are rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// Columns of the grid.
    pub columns: usize,
    /// Side of a square.
    pub side: usize,
    /// Factor of the means.
    pub scale: f32,
}

impl Graph {
    /// Means over the squares of a grid of rows: `[columns · rows, d]` to `[columns · rows / side², d]`.
    pub fn pool(&mut self, x: Value, columns: usize, side: usize, scale: f32) -> Value {
        self.apply(Pool { columns, side, scale }, &[x])
    }
}

impl Pool {
    /// The grid positions that a result averages.
    fn positions(&self, row: usize) -> impl Iterator<Item = usize> {
        let (across, columns, side) = (self.columns / self.side, self.columns, self.side);
        let first = row / across * side * columns + row % across * side;
        (0..side * side).map(move |i| first + i / side * columns + i % side)
    }
}

impl Op for Pool {
    fn name(&self) -> &'static str {
        "pool"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let shape = &inputs[0].shape;
        let whole = self.columns.is_multiple_of(self.side)
            && shape.rows().is_multiple_of(self.columns * self.side);
        assert!(whole, "pool: {shape} in {} columns, squares of {}", self.columns, self.side);
        vec![Type::f32([shape.rows() / (self.side * self.side), shape.width()])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, mut y) = (call.f32(0), call.out(0));
        let width = call.input(0).shape.width();
        let each = self.scale / (self.side * self.side) as f32;
        for (row, y) in y.chunks_exact_mut(width).enumerate() {
            for (column, y) in y.iter_mut().enumerate() {
                let sum: f32 =
                    self.positions(row).map(|position| x[position * width + column]).sum();
                *y = sum * each;
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let shape = &call.output(0).shape;
        let params = Params {
            len: shape.len() as u32,
            width: shape.width() as u32,
            columns: self.columns as u32,
            side: self.side as u32,
            each: self.scale / (self.side * self.side) as f32,
        };
        vec![
            Dispatch::new(&FORWARD)
                .params(&params)
                .read(BufferRef::Input(0))
                .write(BufferRef::Output(0))
                .grid_over(shape.len().div_ceil(256)),
        ]
    }
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    len: u32,
    width: u32,
    columns: u32,
    side: u32,
    each: f32,
}
