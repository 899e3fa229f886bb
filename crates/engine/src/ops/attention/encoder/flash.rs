//! Encoder flash attention without matrix units: scores and sums in registers.

use bytemuck::NoUninit;

use super::pack::{BLOCK, Heads, Layout, WIDTH};
use crate::{
    gpu::{BufferRef, DeviceFacts, Dispatch, Kernel, Part},
    ops::attention::problem::{Problem, word},
};

static FLASH: Kernel =
    Kernel { name: "attention/encoder_flash", source: include_str!("flash.wgsl") };
static SUBGROUP: Part =
    Part { kind: "lanes", name: "lanes/subgroup", source: include_str!("lanes/subgroup.wgsl") };
static WORKGROUP: Part =
    Part { kind: "lanes", name: "lanes/workgroup", source: include_str!("lanes/workgroup.wgsl") };
static SEPARATE: Part = Part {
    kind: "buffers",
    name: "buffers/separate",
    source: include_str!("buffers/separate.wgsl"),
};
static PACKED: Part =
    Part { kind: "buffers", name: "buffers/packed", source: include_str!("buffers/packed.wgsl") };

/// Rows per workgroup, as in the kernel.
const ROWS: usize = 64;
/// Lanes that share rows, as in the kernel.
const SHARING: u32 = 8;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    // Tokens, heads and kv heads.
    sizes: [u32; 3],
    // Strides in vec4s between tokens and between heads, of queries, then of keys and values.
    q_strides: [u32; 2],
    kv_strides: [u32; 2],
    // The first vec4 of the keys, and of the values.
    k_first: u32,
    v_first: u32,
}

/// How the lanes that share rows reduce over their keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LaneReduce {
    /// By subgroup shuffles.
    Subgroup {
        /// Whether lanes that share rows are spread over 32 lanes instead of adjacent.
        spread: bool,
    },
    /// Through workgroup memory.
    Workgroup,
}

/// The kernel's specialisation for a head width and a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct EncoderFlash {
    /// vec4s per head.
    vec4s: u32,
    /// vec4s accumulated by each of the lanes that share rows.
    per_lane: u32,
    reduce: LaneReduce,
}

impl EncoderFlash {
    /// For the head widths of image encoders. Its workgroup memory fits every device.
    pub(in super::super) fn new(width: usize, facts: &DeviceFacts) -> Option<Self> {
        let vec4s = word(width / 4);
        let reduce = match facts.subgroups {
            Some((least @ SHARING.., _)) => LaneReduce::Subgroup { spread: least >= 32 },
            _ => LaneReduce::Workgroup,
        };
        let flash = Self { vec4s, per_lane: vec4s.div_ceil(SHARING), reduce };
        matches!(width, 64 | 72).then_some(flash)
    }

    /// Inputs 0, 1 and 2 are normed and rotated heads.
    pub(in super::super) fn dispatch(self, problem: &Problem) -> Dispatch {
        let params = Params {
            sizes: [problem.tokens, problem.heads, problem.kv_heads].map(word),
            q_strides: [word(problem.heads) * self.vec4s, self.vec4s],
            kv_strides: [word(problem.kv_heads) * self.vec4s, self.vec4s],
            k_first: 0,
            v_first: 0,
        };
        let inputs = [0, 1, 2].map(BufferRef::Input);
        let dispatch = self.kernel(problem, &params).part(&SEPARATE);
        inputs.into_iter().fold(dispatch, Dispatch::read).write(BufferRef::Output(0))
    }

    /// After a dispatch that packs the heads, for the one width that can be packed.
    pub(in super::super) fn packed(
        self,
        heads: &Heads,
        problem: &Problem,
    ) -> Option<[Dispatch; 2]> {
        let blocks = problem.tokens.div_ceil(BLOCK);
        let head = word(blocks * BLOCK) * self.vec4s;
        let params = Params {
            sizes: [problem.tokens, problem.heads, problem.kv_heads].map(word),
            q_strides: [self.vec4s, head],
            kv_strides: [self.vec4s, head],
            k_first: word(problem.heads) * head,
            v_first: word(problem.heads + problem.kv_heads) * head,
        };
        let (pack, packed) = heads.pack(problem, Layout::Rows, blocks);
        let attend = self.kernel(problem, &params).part(&PACKED);
        let attend = attend.read(packed).write(BufferRef::Output(0));
        (problem.width == WIDTH).then_some([pack, attend])
    }

    fn kernel(self, problem: &Problem, params: &Params) -> Dispatch {
        let dispatch = Dispatch::new(&FLASH);
        let dispatch = match self.reduce {
            LaneReduce::Subgroup { spread } => {
                dispatch.part(&SUBGROUP).constant("SPREAD", u8::from(spread))
            }
            LaneReduce::Workgroup => dispatch.part(&WORKGROUP),
        };
        dispatch
            .constant("DIM4", self.vec4s)
            .constant("LANE_DIM4", self.per_lane)
            .params(params)
            .grid(problem.tokens.div_ceil(ROWS), problem.heads, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::{EncoderFlash, LaneReduce};
    use crate::gpu::DeviceFacts;

    #[test]
    fn every_device_supports_the_heads_of_image_encoders() {
        let floor = DeviceFacts::floor();
        let wide = DeviceFacts { subgroups: Some((32, 64)), ..DeviceFacts::floor() };
        let middle = DeviceFacts { subgroups: Some((8, 32)), ..DeviceFacts::floor() };
        let narrow = DeviceFacts { subgroups: Some((4, 32)), ..DeviceFacts::floor() };
        let flash = |vec4s, per_lane, reduce| Some(EncoderFlash { vec4s, per_lane, reduce });
        for (width, facts, want) in [
            (64, &floor, flash(16, 2, LaneReduce::Workgroup)),
            (64, &narrow, flash(16, 2, LaneReduce::Workgroup)),
            (64, &middle, flash(16, 2, LaneReduce::Subgroup { spread: false })),
            (64, &wide, flash(16, 2, LaneReduce::Subgroup { spread: true })),
            (72, &wide, flash(18, 3, LaneReduce::Subgroup { spread: true })),
            // Most lanes would be idle, or run out of registers.
            (32, &wide, None),
            (128, &wide, None),
        ] {
            assert_eq!(EncoderFlash::new(width, facts), want, "{width} {facts:?}");
        }
    }
}
