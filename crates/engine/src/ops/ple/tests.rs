//! The fused operation against its composition from simple ones, for rows of one slice.

use super::{Ple, cases::case};
use crate::suite::check_cpu;

#[test]
fn fused_equals_composed() {
    let (t, p, d) = (3, 17, 96);
    let case = case(t, 1, p, move |g, rows, projection, weight| {
        let fused = g.ple(Ple { model_width: d, eps: 1e-6 }, rows, projection, weight);
        let a = g.scale(rows, (p as f32).sqrt());
        let b = g.scale(projection, 1.0 / (d as f32).sqrt());
        let b = g.rms_norm(b, Some(weight), 1e-6);
        let sum = g.add(a, b);
        let minus = g.scale(sum, -std::f32::consts::FRAC_1_SQRT_2);
        g.add(fused, minus)
    });
    check_cpu(&case.gives(&vec![0.0; t * p])).expect("fused equals composed");
}
