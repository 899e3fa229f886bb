//! Gathers rows by id: `y[i, :] = x[rows[i], :]`, and its gradient, which scatters each row back with an add.
//!
//! Ids past the last row give zeros and no gradient.

pub(crate) mod cases;

use bytemuck::NoUninit;

use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    graph::{Element, Graph, NodeValues, Op, Type, Value},
};

static FORWARD: Kernel =
    Kernel { name: "gather_rows/forward", source: include_str!("forward.wgsl") };
static BACKWARD: Kernel =
    Kernel { name: "gather_rows/backward", source: include_str!("backward.wgsl") };

/// The rows of `x` `[t, d]` with the ids `[n]`: `[n, d]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatherRows;

/// Adds rows `[n, d]` to the rows with the ids `[n]`: `[t, d]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScatterRows {
    /// Number of rows of the result.
    pub rows: usize,
}

impl Graph {
    /// The rows of `x` `[t, d]` with the ids `rows` `[n]`: `[n, d]`.
    pub fn gather_rows(&mut self, x: Value, rows: Value) -> Value {
        self.apply(GatherRows, &[x, rows])
    }
}

impl Op for GatherRows {
    fn name(&self) -> &'static str {
        "gather_rows"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        assert_eq!(inputs[1].element, Element::U32, "gather_rows: rows {}", inputs[1]);
        vec![Type::f32([inputs[1].shape.len(), inputs[0].shape.width()])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, rows, mut y) = (call.f32(0), call.u32(1), call.out(0));
        let width = call.input(0).shape.width();
        for (y, row) in y.chunks_exact_mut(width).zip(rows.iter()) {
            match x.chunks_exact(width).nth(*row as usize) {
                Some(x) => y.copy_from_slice(x),
                None => y.fill(0.0),
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        vec![over(&FORWARD, call, call.input(0).shape.rows(), call.input(1).shape.len())]
    }

    fn grad(
        &self,
        graph: &mut Graph,
        node: &NodeValues,
        dy: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        let rows = graph.ty(node.inputs[0]).shape.rows();
        let dx = dy[0].map(|dy| graph.apply(ScatterRows { rows }, &[dy, node.inputs[1]]));
        vec![dx, None]
    }
}

impl Op for ScatterRows {
    fn name(&self) -> &'static str {
        "scatter_rows"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let fits =
            inputs[1].element == Element::U32 && inputs[1].shape.len() == inputs[0].shape.rows();
        assert!(fits, "scatter_rows: {} by {}", inputs[0], inputs[1]);
        vec![Type::f32([self.rows, inputs[0].shape.width()])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, rows, mut y) = (call.f32(0), call.u32(1), call.out(0));
        let width = call.input(0).shape.width();
        y.fill(0.0);
        for (x, row) in x.chunks_exact(width).zip(rows.iter()) {
            let at = *row as usize;
            if at < self.rows {
                y[at * width..][..width].iter_mut().zip(x).for_each(|(y, x)| *y += x);
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        vec![over(&BACKWARD, call, self.rows, call.input(1).shape.len())]
    }
}

/// A dispatch over the result, with `count` ids of `rows` rows.
fn over(kernel: &'static Kernel, call: &GpuCall<'_>, rows: usize, count: usize) -> Dispatch {
    let out = &call.output(0).shape;
    let params = Params {
        len: out.len() as u32,
        width: out.width() as u32,
        rows: rows as u32,
        count: count as u32,
    };
    Dispatch::new(kernel)
        .params(&params)
        .read(BufferRef::Input(0))
        .read(BufferRef::Input(1))
        .write(BufferRef::Output(0))
        .grid_over(out.len().div_ceil(256))
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    len: u32,
    width: u32,
    rows: u32,
    count: u32,
}
