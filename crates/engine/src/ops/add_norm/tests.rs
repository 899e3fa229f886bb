//! The fused operations against their composition from simple ones.

use super::{Branch, cases::case};
use crate::{
    graph::{Graph, Value},
    suite::check_cpu,
};

const EPS: f32 = 1e-6;

fn composed(g: &mut Graph, branch: &Branch) -> Value {
    let norm = g.rms_norm(branch.branch, Some(branch.weight), EPS);
    let sum = g.add(branch.residual, norm);
    branch.scale.map_or(sum, |scale| g.scale_by(sum, scale))
}

fn difference(g: &mut Graph, a: Value, b: Value) -> Value {
    let minus = g.scale(b, -1.0);
    g.add(a, minus)
}

#[test]
fn both_equal_the_composition() {
    let (t, d) = (3, 17);
    for scaled in [false, true] {
        let first = case("add_norm", t, d, scaled, |g, branch, _| {
            let (fused, composed) = (g.add_norm(branch, EPS), composed(g, branch));
            vec![difference(g, fused, composed)]
        });
        let both = |second: bool| {
            case("add_norm_norm", t, d, scaled, move |g, branch, next| {
                let (h1, x) = g.add_norm_norm(branch, next, EPS);
                let sum = composed(g, branch);
                let norm = g.rms_norm(sum, Some(next), EPS);
                vec![if second { difference(g, x, norm) } else { difference(g, h1, sum) }]
            })
        };
        for case in [first, both(false), both(true)] {
            let name = format!("{} {}", case.op, case.name);
            check_cpu(&case.gives(&vec![0.0; t * d])).expect(&name);
        }
    }
}
