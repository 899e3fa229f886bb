use super::Patches;
use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::{Case, Tolerance},
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = [(1, 1, 1), (3, 2, 5), (5, 3, 16), (2, 1, 48)]
        .map(|(columns, rows, side)| patches(Patches { columns, rows, side, range: (2.0, 0.5) }))
        .into();
    // Two patches of two by two pixels, with colours 0, 1, 2 and so on.
    let op = Patches { columns: 2, rows: 1, side: 2, range: (255.0, 0.0) };
    let first = [0.0, 3.0, 12.0, 15.0, 1.0, 4.0, 13.0, 16.0, 2.0, 5.0, 14.0, 17.0];
    let both = [first, first.map(|byte| byte + 6.0)].concat();
    let opaque = |i: u32| word([3 * i, 3 * i + 1, 3 * i + 2, 255]);
    cases.push(patches(op).given("pixels", Data::U32((0..8).map(opaque).collect())).gives(&both));
    // Opaque, transparent, and half-transparent.
    let op = Patches { columns: 3, rows: 1, side: 1, range: (255.0, 0.0) };
    let pixels = [[10, 20, 30, 255], [10, 20, 30, 0], [0, 100, 200, 128]].map(word);
    let on_white = [10.0, 20.0, 30.0, 255.0, 255.0, 255.0, 127.0, 177.0, 227.0];
    cases.push(patches(op).given("pixels", Data::U32(pixels.into())).gives(&on_white));
    cases
}

fn patches(op: Patches) -> Case {
    let Patches { columns, rows, side, .. } = op;
    let name = format!("{columns}x{rows} by {side}");
    let count = op.pixels();
    let build = move |g: &mut Graph| {
        let pixels = g.input("pixels", Type::u32([count]));
        vec![g.patches(pixels, op.clone())]
    };
    // All byte values, of alpha too.
    let pixel = |i: usize| (i as u32).wrapping_mul(0x9e37_79b9);
    Case::new("patches", name, build)
        .given("pixels", Data::U32((0..count).map(pixel).collect()))
        .tolerance(Tolerance::ARITHMETIC.cancelling(1.0))
}

fn word([red, green, blue, alpha]: [u32; 4]) -> u32 {
    red | green << 8 | blue << 16 | alpha << 24
}
