//! Splits rows into columns and joins them again: `[t, a + b]` to `[t, a]` and `[t, b]`, and back.

pub(crate) mod cases;

use bytemuck::NoUninit;

use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    graph::{Graph, NodeValues, Op, Type, Value},
};

static COPY: Kernel = Kernel { name: "columns/copy", source: include_str!("copy.wgsl") };

/// Splits rows into parts of these widths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitColumns {
    /// Widths of the parts, from the left; their sum is the width of the rows.
    pub widths: Vec<usize>,
}

/// Concatenates rows of several values. Columns that no part covers are zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinColumns {
    /// First column of each input in the joined rows.
    pub firsts: Vec<usize>,
    /// Width of the joined rows.
    pub width: usize,
}

impl Graph {
    /// Rows `[t, Σ widths]` split into separate values, from the left.
    pub fn split_columns(&mut self, x: Value, widths: &[usize]) -> Vec<Value> {
        self.apply_all(SplitColumns { widths: widths.into() }, &[x])
    }

    /// Rows of several values, concatenated.
    pub fn join_columns(&mut self, parts: &[Value]) -> Value {
        let mut width = 0;
        let firsts = parts.iter().map(|part| {
            width += self.ty(*part).shape.width();
            width - self.ty(*part).shape.width()
        });
        let firsts = firsts.collect();
        self.apply(JoinColumns { firsts, width }, parts)
    }
}

impl SplitColumns {
    /// First column of each part.
    fn firsts(&self) -> Vec<usize> {
        let before = |i: usize| self.widths[..i].iter().sum();
        (0..self.widths.len()).map(before).collect()
    }
}

impl Op for SplitColumns {
    fn name(&self) -> &'static str {
        "split_columns"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let shape = &inputs[0].shape;
        let all: usize = self.widths.iter().sum();
        assert_eq!(all, shape.width(), "split_columns: {shape} into {:?}", self.widths);
        self.widths.iter().map(|width| Type::f32([shape.rows(), *width])).collect()
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, all) = (call.f32(0), call.input(0).shape.width());
        for (i, first) in self.firsts().into_iter().enumerate() {
            let width = self.widths[i];
            for (to, from) in call.out(i).chunks_exact_mut(width).zip(x.chunks_exact(all)) {
                to.copy_from_slice(&from[first..first + width]);
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let (rows, all) = (call.input(0).shape.rows(), call.input(0).shape.width());
        let part = |(i, from): (usize, usize)| {
            let width = self.widths[i];
            copy(rows, width, [from, all], [0, width])
                .read(BufferRef::Input(0))
                .write(BufferRef::Output(i))
        };
        self.firsts().into_iter().enumerate().map(part).collect()
    }

    fn grad(
        &self,
        graph: &mut Graph,
        node: &NodeValues,
        dy: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        let known = self.firsts().into_iter().zip(dy).filter_map(|(at, dy)| Some((at, (*dy)?)));
        let (firsts, parts): (Vec<usize>, Vec<Value>) = known.unzip();
        let width = graph.ty(node.inputs[0]).shape.width();
        vec![Some(graph.apply(JoinColumns { firsts, width }, &parts))]
    }
}

impl JoinColumns {
    /// Whether the inputs leave columns uncovered.
    fn has_gaps(&self, widths: impl Iterator<Item = usize>) -> bool {
        widths.sum::<usize>() < self.width
    }
}

impl Op for JoinColumns {
    fn name(&self) -> &'static str {
        "join_columns"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        assert_eq!(inputs.len(), self.firsts.len(), "join_columns: one first column per part");
        let rows = inputs[0].shape.rows();
        for (input, first) in inputs.iter().zip(&self.firsts) {
            let fits = input.shape.rows() == rows && first + input.shape.width() <= self.width;
            assert!(fits, "join_columns: {input} at {first} of {}", self.width);
        }
        vec![Type::f32([rows, self.width])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let mut y = call.out(0);
        y.fill(0.0);
        for (i, first) in self.firsts.iter().enumerate() {
            let (x, width) = (call.f32(i), call.input(i).shape.width());
            for (to, from) in y.chunks_exact_mut(self.width).zip(x.chunks_exact(width)) {
                to[*first..first + width].copy_from_slice(from);
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let rows = call.output(0).shape.rows();
        let width = |i: usize| call.input(i).shape.width();
        let zero = self.has_gaps((0..call.inputs()).map(width)).then(|| {
            let zeros = copy(rows, self.width, [0, 0], [0, self.width]);
            zeros.read(BufferRef::Input(0)).write(BufferRef::Output(0))
        });
        let part = |(i, to): (usize, &usize)| {
            copy(rows, width(i), [0, width(i)], [*to, self.width])
                .read(BufferRef::Input(i))
                .write(BufferRef::Output(0))
        };
        zero.into_iter().chain(self.firsts.iter().enumerate().map(part)).collect()
    }

    fn grad(
        &self,
        graph: &mut Graph,
        node: &NodeValues,
        dy: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        let Some(dy) = dy[0] else { return vec![None; node.inputs.len()] };
        let widths: Vec<usize> =
            node.inputs.iter().map(|input| graph.ty(*input).shape.width()).collect();
        assert!(!self.has_gaps(widths.iter().copied()), "join_columns: gaps have no gradient rule");
        graph.split_columns(dy, &widths).into_iter().map(Some).collect()
    }
}

/// A dispatch that copies `width` columns; `from` and `to` are the first column and the row width. A source row width of 0 writes zeros.
fn copy(rows: usize, width: usize, from: [usize; 2], to: [usize; 2]) -> Dispatch {
    let params = Params {
        len: (rows * width) as u32,
        width: width as u32,
        source: from[0] as u32,
        source_row: from[1] as u32,
        dest: to[0] as u32,
        dest_row: to[1] as u32,
    };
    Dispatch::new(&COPY).params(&params).grid_over((rows * width).div_ceil(256))
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    len: u32,
    width: u32,
    source: u32,
    source_row: u32,
    dest: u32,
    dest_row: u32,
}
