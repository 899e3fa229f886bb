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
    // Two squares of two by two pixels, whose bytes are 0, 1, 2 and so on.
    let cut = Patches { columns: 2, rows: 1, side: 2, range: (255.0, 0.0) };
    let first = [0.0, 3.0, 12.0, 15.0, 1.0, 4.0, 13.0, 16.0, 2.0, 5.0, 14.0, 17.0];
    let both = [first, first.map(|byte| byte + 6.0)].concat();
    cases.push(patches(cut).given("pixels", bytes(0..24)).gives(&both));
    cases
}

fn patches(cut: Patches) -> Case {
    let Patches { columns, rows, side, .. } = cut;
    let name = format!("{columns}x{rows} by {side}");
    let words = cut.words();
    let numbers = columns * rows * side * side * 3;
    let build = move |g: &mut Graph| {
        let pixels = g.input("pixels", Type::u32([words]));
        vec![g.patches(pixels, cut.clone())]
    };
    Case::new("patches", name, build)
        .given("pixels", bytes((0..numbers).map(|i| (i * 7919 % 251) as u8)))
        .tolerance(Tolerance::ARITHMETIC.cancelling(1.0))
}

fn bytes(bytes: impl Iterator<Item = u8>) -> Data {
    let bytes: Vec<u8> = bytes.collect();
    let word = |four: &[u8]| four.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    Data::U32(bytes.chunks(4).map(word).collect())
}
