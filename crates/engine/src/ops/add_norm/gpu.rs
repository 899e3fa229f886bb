//! One workgroup per row.

use bytemuck::NoUninit;

use super::AddNorm;
use crate::{
    gpu::{BufferRef, DeviceFacts, Dispatch, F16Columns, GpuCall, Kernel, Part},
    ops::parts::reduce,
};

static FORWARD: Kernel = Kernel { name: "add_norm/forward", source: include_str!("forward.wgsl") };
static NONE: &Part = part!("next", "none");
static NORM: &Part = part!("next", "norm");
static NORM_F16: &Part = part!("next", "norm_f16");

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    width: u32,
    eps: f32,
    rows: u32,
    scaled: u32,
    post_norm: u32,
}

pub(super) fn forward(op: &AddNorm, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let shape = &call.input(0).shape;
    let columns = op.next.then(|| call.result_edge(1).f16_columns()).flatten();
    let dispatch =
        Dispatch::new(&FORWARD).part(reduce(call.facts)).part(match (op.next, columns) {
            (false, _) => NONE,
            (true, None) => NORM,
            (true, Some(_)) => NORM_F16,
        });
    let dispatch = F16Columns::stored(columns, dispatch)
        .constant("WG", lanes(shape.width(), call.facts))
        .params(&Params {
            width: shape.width() as u32,
            eps: op.eps,
            rows: shape.rows() as u32,
            scaled: u32::from(op.scaled),
            post_norm: u32::from(op.post_norm),
        })
        .read(BufferRef::Input(0))
        .read(BufferRef::Input(1))
        .read(BufferRef::Input(2))
        // Without a scale the weight is bound in its place and not read.
        .read(BufferRef::Input(op.scale_input().unwrap_or(2)))
        .write(BufferRef::Output(0))
        .grid_over(shape.rows());
    vec![match op.next_input() {
        Some(next) => dispatch.read(BufferRef::Input(next)).write(BufferRef::Output(1)),
        None => dispatch,
    }]
}

/// Lanes of a workgroup: in decoding, one row alone must keep the device busy, so wide rows use the maximum.
pub(crate) fn lanes(width: usize, facts: &DeviceFacts) -> u32 {
    let most = facts.invocations.min(1024);
    if width > 1024 { 1 << most.ilog2() } else { most.min(256) }
}

#[cfg(test)]
mod tests {
    use super::lanes;
    use crate::gpu::DeviceFacts;

    #[test]
    fn wide_rows_use_the_maximum_of_lanes() {
        let floor = DeviceFacts::floor();
        let large = DeviceFacts { invocations: 1024, ..DeviceFacts::floor() };
        for (width, facts, wanted) in
            [(17, &floor, 256), (1536, &floor, 256), (17, &large, 256), (1536, &large, 1024)]
        {
            assert_eq!(lanes(width, facts), wanted, "{width}");
        }
    }
}
