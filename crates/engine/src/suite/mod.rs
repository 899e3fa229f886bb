//! Every operation's cases, defined once and used in four ways: the CPU reference against literals, the GPU against the reference with poisoned
//! memory, gradients against finite differences, and timing. The tests, `rullama ops` and a browser page run the same cases.

mod bandwidth;
mod bench;
mod case;
mod check;
mod data;
mod real_devices;
mod run;
mod support;
mod tolerance;
mod variants;

pub use bandwidth::read_bandwidth;
pub use bench::{Clock, Measured, bench};
pub use case::Case;
pub use check::{Failure, check_cpu, check_gpu, check_gradient};
pub(crate) use data::random_bits;
pub use real_devices::real_devices;
pub use run::{Verdict, feature_levels, most_workgroups, run};
pub use support::{Support, support};
pub use tolerance::Tolerance;
pub use variants::{DispatchRecord, Variant, devices, variants};

use crate::{
    gpu::{DeviceFacts, Tuning},
    ops,
};

/// All cases of all operations.
pub fn cases() -> Vec<Case> {
    let folders = [
        ops::accumulate::cases::cases,
        ops::adamw::cases::cases,
        ops::add::cases::cases,
        ops::add_norm::cases::cases,
        ops::argmax::cases::cases,
        ops::attention::cases::cases,
        ops::attention::cases::bidirectional::cases,
        ops::attention::cases::packed::cases,
        ops::matmul::clamped::cases::cases,
        ops::columns::cases::cases,
        ops::convolution::cases::cases,
        ops::cross_entropy::cases::cases,
        ops::block_diffusion::cases::cases,
        ops::dropout::cases::cases,
        ops::elementwise::cases::cases,
        ops::embed::cases::cases,
        ops::expert_groups::cases::cases,
        ops::experts_combine::cases::cases,
        ops::gather_rows::cases::cases,
        ops::gradient_norm::cases::cases,
        ops::head_norm_rope::cases::cases,
        ops::latest_tokens::cases::cases,
        ops::layer_norm::cases::cases,
        ops::matmul::cases::cases,
        ops::matmul::moe::cases::cases,
        ops::matmul::transposed::cases::cases,
        ops::local_attention::cases::cases,
        ops::matmul::lora::cases::cases,
        ops::matmul::lora::slots::cases::cases,
        ops::member::cases::cases,
        ops::matmul::dense::cases::cases,
        ops::norm_sum::cases::cases,
        ops::patches::cases::cases,
        ops::ple::cases::cases,
        ops::pool::cases::cases,
        ops::matmul::fused::cases::cases,
        ops::rms_norm::cases::cases,
        ops::rms_norm_grad::cases::cases,
        ops::router::cases::cases,
        ops::sample::cases::cases,
        ops::select_row::cases::cases,
        ops::store::cases::cases,
        ops::suppress::cases::cases,
        ops::top_k::cases::cases,
    ];
    folders.iter().flat_map(|cases| cases()).collect()
}

/// The feature levels a device can emulate: all its facts, then fewer and fewer. Kernel selection depends on these facts alone, so that each
/// level runs other variants.
pub fn lesser(facts: &DeviceFacts) -> Vec<(&'static str, DeviceFacts)> {
    let mut levels = vec![
        ("all", facts.clone()),
        ("no matrix units", DeviceFacts { matrix: None, matrix_int8: None, ..facts.clone() }),
        // So few busy lanes and so narrow a limit of wide rows that small cases take the kernels of large shapes.
        (
            "no f16",
            DeviceFacts {
                f16: false,
                matrix: None,
                matrix_int8: None,
                tuning: Tuning {
                    busy_lanes: 64,
                    wide_units: 16,
                    wide_lanes: 64,
                    ..Tuning::default()
                },
                ..facts.clone()
            },
        ),
        // Bindings so small that the weights of the cases have several slabs.
        (
            "floor",
            DeviceFacts {
                binding_bytes: 8 << 10,
                timestamps: facts.timestamps,
                ..DeviceFacts::floor()
            },
        ),
    ];
    levels.dedup_by(|later, earlier| later.1 == earlier.1);
    levels
}
