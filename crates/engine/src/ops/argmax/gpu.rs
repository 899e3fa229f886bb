//! Two dispatches: each workgroup of the first finds one candidate, one workgroup of the second the best of them.

use bytemuck::NoUninit;

use super::Argmax;
use crate::{
    gpu::{BufferRef, Dispatch, GpuCall, Kernel, Part},
    ops::logit_order::{KEY, LOGITS, SURVIVORS},
};

static BEST: Kernel = Kernel { name: "argmax/best", source: include_str!("best.wgsl") };

/// Maximum workgroups of the first dispatch: one candidate per lane of the second.
const MAX_GROUPS: usize = 256;
/// Minimum logits per workgroup of the first dispatch.
const LEAST_EACH: usize = 1024;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    candidates: u32,
    each: u32,
}

pub(super) fn forward(op: &Argmax, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let id = if op.into { BufferRef::Input(1) } else { BufferRef::Output(0) };
    let (len, rows) = (call.input(0).shape.width(), call.input(0).shape.rows());
    let each = len.div_ceil(MAX_GROUPS).max(LEAST_EACH);
    let groups = len.div_ceil(each);
    let list = |index: usize| BufferRef::Scratch(index, (groups * rows) as u64 * 4);
    let dispatch = |source: &'static Part, candidates: usize, each: usize| {
        Dispatch::new(&BEST)
            .part(KEY)
            .part(source)
            .params(&Params { candidates: candidates as u32, each: each as u32 })
    };
    let first = dispatch(LOGITS, len, each).grid(groups, rows, 1);
    if groups == 1 {
        return vec![first.write(list(0)).write(id).read(BufferRef::Input(0))];
    }
    vec![
        first.write(list(0)).write(list(1)).read(BufferRef::Input(0)),
        dispatch(SURVIVORS, groups, groups)
            .grid(1, rows, 1)
            .write(BufferRef::Scratch(2, rows as u64 * 4))
            .write(id)
            .read(list(0))
            .read(list(1)),
    ]
}
