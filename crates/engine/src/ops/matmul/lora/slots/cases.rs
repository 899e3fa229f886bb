use rullama_gguf::DType;

use super::SlotFactors;
use crate::{
    cpu::Data,
    graph::{Graph, Type, Value},
    ops::Sequences,
    suite::{Case, Tolerance},
};

/// Entries of block tables: any number.
const ENTRIES: usize = 3;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = [
        (DType::F32, [1, 8, 32, 4], vec![1]),
        (DType::F16, [3, 17, 33, 8], vec![2, 0, 3]),
        // Factors of several slabs on the floor device; a slot that no row has.
        (DType::F16, [9, 300, 160, 20], vec![4, 1, 0, 0, 2, 1, 4, 4, 2]),
        (DType::F32, [5, 64, 1536, 16], vec![0, 0, 0, 0, 0]),
    ]
    .into_iter()
    .map(|(dtype, sizes, adapters)| separate(dtype, sizes, &adapters))
    .collect();
    let literal = |values: &[f32]| {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        bytes
    };
    let weight = |shape: [usize; 2], values: &[f32]| {
        Data::Weight(crate::cpu::Weight::new(DType::F32, shape, literal(values)))
    };
    // Two slots of rank 4, of which one and two are used: (3 − 2) · (1, −2) = (1, −2) and (1 · 1 + 2 · 2) · (1, 0) = (5, 0).
    let a = [[3.0, -1.0], [0.0; 2], [0.0; 2], [0.0; 2], [1.0, 0.0], [0.0, 1.0], [0.0; 2], [0.0; 2]];
    let b = [[1.0, 0.0, 0.0, 0.0], [-2.0, 0.0, 0.0, 0.0], [1.0, 2.0, 0.0, 0.0], [0.0; 4]];
    cases.push(
        separate(DType::F32, [3, 2, 2, 4], &[1, 0, 2])
            .given("base", Data::F32(vec![10.0, 20.0, 30.0, 40.0, 50.0, 60.0]))
            .given("x", Data::F32(vec![1.0, 2.0, 5.0, 6.0, 1.0, 2.0]))
            .given("slots_a", weight([8, 2], a.as_flattened()))
            .given("slots_b", weight([4, 4], b.as_flattened()))
            .gives(&[11.0, 18.0, 30.0, 40.0, 55.0, 60.0]),
    );
    cases
}

fn separate(dtype: DType, [t, rows, width, rank]: [usize; 4], adapters: &[u32]) -> Case {
    let slots = slots_of(adapters);
    let build = move |g: &mut Graph| {
        let (base, x) =
            (g.input("base", Type::f32([t, rows])), g.input("x", Type::f32([t, width])));
        let factors = factors(g, dtype, (t, slots), [rows, width, rank]);
        vec![g.slot_lora(base, x, &factors)]
    };
    let name = format!("{} {t}x{width} to {rows} by {rank}, {adapters:?}", dtype.name());
    Case::new("slot_lora", name, build)
        .given("sequences", sequences(adapters))
        .tolerance(Tolerance::ARITHMETIC.terms(width + rank))
        .step(0, t as u32)
}

/// Slots for all adapters of a case.
pub(crate) fn slots_of(adapters: &[u32]) -> usize {
    adapters.iter().copied().max().unwrap_or(0).max(1) as usize
}

/// Factors of some slots for a matmul of `t` rows.
pub(crate) fn factors(
    g: &mut Graph,
    dtype: DType,
    (t, slots): (usize, usize),
    [rows, width, rank]: [usize; 3],
) -> SlotFactors {
    let mut weight = |name: &str, sizes| -> Value { g.weight(name, Type::weight(dtype, sizes)) };
    let a = weight("slots_a", [slots * rank, width]);
    let b = weight("slots_b", [slots * rows, rank]);
    let sequences = g.input("sequences", Type::u32([t, Sequences::HEADER + ENTRIES]));
    SlotFactors { a, b, sequences }
}

/// Sequences with these adapters; all their other words are large.
pub(crate) fn sequences(adapters: &[u32]) -> Data {
    let words = adapters.iter().flat_map(|adapter| {
        let mut words = Sequences::words(900, 900, &[900; ENTRIES], ENTRIES);
        words[Sequences::ADAPTER] = *adapter;
        words
    });
    Data::U32(words.collect())
}
