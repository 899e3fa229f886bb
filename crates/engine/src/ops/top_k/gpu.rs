//! Each workgroup sorts a chunk in its memory and writes its `k` best; dispatches follow until one chunk holds all candidates.

use bytemuck::NoUninit;

use super::TopK;
use crate::{
    gpu::{BufferRef, DeviceFacts, Dispatch, GpuCall, Kernel},
    ops::logit_order::{KEY, LOGITS, SURVIVORS},
};

static SORT: Kernel = Kernel { name: "top_k/sort", source: include_str!("sort.wgsl") };

/// Candidates per workgroup: their keys and ids fill the 16 KiB of workgroup memory that every device has.
const CHUNK: usize = 2048;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    candidates: u32,
    k: u32,
}

pub(super) fn forward(op: &TopK, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (width, rows) = (call.input(0).shape.width(), call.input(0).shape.rows());
    let counts = passes(width, op.k);
    let last = counts.len() - 1;
    let left = |pass: usize| counts[pass].div_ceil(CHUNK) * op.k;
    // Two pairs of lists alternate.
    let list = |pass: usize, which: usize| {
        BufferRef::Scratch(pass % 2 * 2 + which, (left(pass) * rows) as u64 * 4)
    };
    (0..counts.len())
        .map(|pass| {
            let dispatch = Dispatch::new(&SORT)
                .part(KEY)
                .part(if pass == 0 { LOGITS } else { SURVIVORS })
                .constant("CHUNK", chunk(counts[pass]) as u32)
                .constant("WG", lanes(chunk(counts[pass]), call.facts) as u32)
                .constant("LAST", u32::from(pass == last))
                .params(&Params { candidates: counts[pass] as u32, k: op.k as u32 })
                .grid(counts[pass].div_ceil(CHUNK), rows, 1);
            let dispatch = if pass == last {
                dispatch.write(BufferRef::Output(1)).write(BufferRef::Output(0))
            } else {
                dispatch.write(list(pass, 0)).write(list(pass, 1))
            };
            match pass.checked_sub(1) {
                None => dispatch.read(BufferRef::Input(0)),
                Some(before) => dispatch.read(list(before, 0)).read(list(before, 1)),
            }
        })
        .collect()
}

/// Number of candidates of each dispatch.
fn passes(candidates: usize, k: usize) -> Vec<usize> {
    let mut counts = vec![candidates];
    let mut left = candidates;
    while left > CHUNK {
        left = left.div_ceil(CHUNK) * k;
        counts.push(left);
    }
    counts
}

/// Size of the sorted chunk, a power of two.
fn chunk(candidates: usize) -> usize {
    // The results must fit as well.
    candidates.next_power_of_two().clamp(2 * TopK::MOST, CHUNK)
}

/// Lanes of a workgroup: one per compared pair if the device allows, since each step of the sort waits for the slowest lane.
fn lanes(chunk: usize, facts: &DeviceFacts) -> usize {
    let most = 1 << facts.invocations.ilog2();
    (chunk / 2).min(most)
}

#[cfg(test)]
mod tests {
    use super::{DeviceFacts, chunk, lanes, passes};

    #[test]
    fn one_lane_per_pair_if_the_device_allows() {
        let large = DeviceFacts { invocations: 1024, ..DeviceFacts::floor() };
        assert_eq!([lanes(2048, &large), lanes(256, &large)], [1024, 128]);
        assert_eq!([lanes(2048, &DeviceFacts::floor()), lanes(256, &large)], [256, 128]);
    }

    #[test]
    fn passes_end_when_one_chunk_is_left() {
        assert_eq!(passes(17, 3), [17]);
        assert_eq!(passes(2048, 128), [2048]);
        assert_eq!(passes(2049, 128), [2049, 256]);
        assert_eq!(passes(262_144, 64), [262_144, 8192, 256]);
        assert_eq!(passes(262_144, 128), [262_144, 16_384, 1024]);
        assert_eq!([chunk(1), chunk(257), chunk(9999)], [256, 512, 2048]);
    }
}
