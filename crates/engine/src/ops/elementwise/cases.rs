use rullama_gguf::DType;

use super::{
    Activation::{Gelu, Silu},
    Elementwise,
};
use crate::{
    cpu::Data,
    graph::{Graph, Op, Type},
    suite::{Case, Tolerance},
};

const SHAPES: [(usize, usize); 3] = [(1, 1), (3, 17), (2, 257)];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(plain_cases());
    cases.extend(slice_cases());
    cases.extend(literals());
    cases.extend(large_arguments());
    cases
}

fn plain_cases() -> Vec<Case> {
    let pairs = [
        Elementwise::Mul,
        Elementwise::GeluGrad,
        Elementwise::SiluGrad,
        Elementwise::Gated(Gelu),
        Elementwise::Gated(Silu),
        Elementwise::SoftcapGrad { cap: 30.0 },
    ];
    let singles = [
        Elementwise::Scale { by: -0.75 },
        Elementwise::Gelu,
        Elementwise::GatedHalves(Gelu),
        Elementwise::GatedHalves(Silu),
        Elementwise::Silu,
        Elementwise::Softcap { cap: 2.0 },
    ];
    let mut cases = Vec::new();
    for (t, d) in SHAPES {
        cases.extend(pairs.map(|op| apply(op, &[[t, d], [t, d]])));
        cases.extend(singles.map(|op| apply(op, &[[t, 2 * d]])));
        cases.extend(
            [Gelu, Silu].map(|by| apply(Elementwise::GatedHalvesGrad(by), &[[t, 2 * d], [t, d]])),
        );
        cases.push(scale_by(t, d));
        cases.push(standardise(t, d));
        cases.push(by_row(Elementwise::AddRow, [t, d], d));
        cases.push(by_row(Elementwise::ScaleRow { by: 0.5 }, [t, 3 * d], d));
        cases.push(apply(Elementwise::GluHalves, &[[t, 2 * d]]));
        cases.push(apply(Elementwise::Clamp { least: -0.5, most: 0.25 }, &[[t, d]]));
    }
    cases.extend(
        [Elementwise::Mul, Elementwise::Gated(Gelu), Elementwise::Gated(Silu)]
            .map(|op| apply(op, &[[2, 3], [2, 3]]).gradient()),
    );
    cases.extend(singles.map(|op| apply(op, &[[3, 4]]).gradient()));
    cases.push(scale_by(2, 3).gradient());
    cases.push(by_row(Elementwise::AddRow, [2, 3], 3).gradient());
    cases
}

fn slice_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (t, p, slices, slice) in [(1, 1, 1, 0), (3, 17, 5, 0), (2, 256, 3, 2), (3, 5, 4, 1)] {
        let long = [t, p * slices];
        cases.push(apply(Elementwise::GeluMulSlice { slice }, &[[t, p], long]));
        cases.push(apply(Elementwise::MulSlice { slice }, &[[t, p], long]));
        cases.push(apply(Elementwise::PlaceSlice { slice, slices }, &[[t, p]]));
    }
    cases.push(apply(Elementwise::GeluMulSlice { slice: 1 }, &[[2, 3], [2, 9]]).gradient());
    cases
}

fn literals() -> Vec<Case> {
    let given = |case: Case, i: usize, x: &[f32]| case.given(&name(i), Data::F32(x.to_vec()));
    let z = [-1.0, 0.0, 0.5, 3.0];
    let gelu = [-0.158_808, 0.0, 0.345_714, 2.996_363];
    let of = |op, shapes: &[[usize; 2]], x: &[f32]| given(apply(op, shapes), 0, x);
    vec![
        of(Elementwise::Gelu, &[[1, 4]], &z).gives(&gelu),
        given(of(Elementwise::Gated(Gelu), &[[1, 4]; 2], &z), 1, &[2.0, 1.0, -1.0, 0.0])
            .gives(&[-0.317_616, 0.0, -0.345_714, 0.0]),
        of(Elementwise::GatedHalves(Silu), &[[2, 2]], &[1.0, 2.0, -2.0, -1.0])
            .gives(&[1.462_117, 0.238_406]),
        of(Elementwise::GatedHalves(Gelu), &[[2, 2]], &[-1.0, 2.0, 0.5, -1.0])
            .gives(&[-0.317_616, -0.345_714]),
        of(Elementwise::Softcap { cap: 30.0 }, &[[1, 3]], &[0.0, 30.0, -60.0]).gives(&[
            0.0,
            22.847_826,
            -28.920_828,
        ]),
        of(Elementwise::Scale { by: 0.5 }, &[[1, 3]], &[1.0, -4.0, 0.0]).gives(&[0.5, -2.0, 0.0]),
        given(of(Elementwise::Mul, &[[1, 3]; 2], &[1.0, -4.0, 0.5]), 1, &[2.0, 3.0, 4.0])
            .gives(&[2.0, -12.0, 2.0]),
        of(Elementwise::Clamp { least: -1.0, most: 2.0 }, &[[1, 4]], &[-7.0, 7.0, 2.0, 0.5])
            .gives(&[-1.0, 2.0, 2.0, 0.5]),
        of(Elementwise::Silu, &[[1, 3]], &[0.0, 1.0, -2.0]).gives(&[0.0, 0.731_059, -0.238_406]),
        of(Elementwise::GluHalves, &[[2, 2]], &[2.0, 0.0, 3.0, 1.0]).gives(&[1.0, 2.193_176]),
        of(Elementwise::PlaceSlice { slice: 1, slices: 3 }, &[[2, 1]], &[1.0, 2.0])
            .gives(&[0.0, 1.0, 0.0, 0.0, 2.0, 0.0]),
    ]
}

/// Arguments for which a device's own tanh may give NaN. Moderate and huge ones are separate, since the size of the results sets the tolerance.
fn large_arguments() -> Vec<Case> {
    let moderate = [-20.0, -9.5, -9.0, -8.5, -5.0, 5.0, 9.0, 9.5, 20.0];
    let huge = [-1e15, -1e4, -100.0, 100.0, 1e4, 1e15];
    let mut cases = Vec::new();
    for (name, x) in [("moderate", &moderate[..]), ("huge", &huge[..])] {
        let shape = [1, x.len()];
        let of = |op: Elementwise, shapes: &[[usize; 2]]| {
            let mut case = apply(op, shapes).given("x0", Data::F32(x.to_vec()));
            case.name += &format!(" of {name} arguments");
            case
        };
        cases.push(of(Elementwise::Gelu, &[shape]));
        cases.push(of(Elementwise::Softcap { cap: 30.0 }, &[shape]));
        cases.push(of(Elementwise::Silu, &[shape]));
        cases.push(of(Elementwise::GeluGrad, &[shape, shape]));
        cases.push(of(Elementwise::SiluGrad, &[shape, shape]));
        cases.extend([Gelu, Silu].map(|by| of(Elementwise::Gated(by), &[shape, shape])));
    }
    cases
}

fn apply(op: Elementwise, shapes: &[[usize; 2]]) -> Case {
    let shapes = shapes.to_vec();
    let text: Vec<String> = shapes.iter().map(|[t, d]| format!("{t}x{d}")).collect();
    Case::new(op.name(), text.join(" "), move |g: &mut Graph| {
        let inputs: Vec<_> =
            (0..).zip(&shapes).map(|(i, s)| g.input(name(i), Type::f32(*s))).collect();
        vec![g.apply(op, &inputs)]
    })
    .tolerance(Tolerance::EXPONENTIAL)
}

fn scale_by(t: usize, d: usize) -> Case {
    Case::new("scale_by", format!("{t}x{d}"), move |g: &mut Graph| {
        let x = g.input("x0", Type::f32([t, d]));
        let s = g.weight("s", Type::weight(DType::F32, [1]));
        vec![g.scale_by(x, s)]
    })
}

/// With one row for all rows of the first input.
fn by_row(op: Elementwise, shape: [usize; 2], row: usize) -> Case {
    let name = format!("{}x{} by {row}", shape[0], shape[1]);
    Case::new(op.name(), name, move |g: &mut Graph| {
        let x = g.input("x0", Type::f32(shape));
        let row = g.weight("row", Type::weight(DType::F32, [row]));
        vec![g.apply(op, &[x, row])]
    })
}

fn standardise(t: usize, d: usize) -> Case {
    Case::new("standardise", format!("{t}x{d}"), move |g: &mut Graph| {
        let x = g.input("x0", Type::f32([t, d]));
        let [bias, scale] = ["b", "s"].map(|name| g.weight(name, Type::weight(DType::F32, [d])));
        vec![g.standardise(x, bias, scale)]
    })
}

fn name(i: usize) -> String {
    format!("x{i}")
}
