use rullama_gguf::DType;

use crate::{
    cpu::{Data, Weight},
    graph::{Graph, Type},
    suite::{Case, random_bits},
};

/// Quantised formats, with rows wide enough for several units.
const BLOCKS: [(DType, usize); 23] = [
    (DType::Q4_0, 96),
    (DType::Q4_1, 96),
    (DType::Q5_0, 96),
    (DType::Q5_1, 96),
    (DType::Q8_0, 96),
    (DType::Q2_K, 512),
    (DType::Q3_K, 512),
    (DType::Q4_K, 512),
    (DType::Q5_K, 512),
    (DType::Q6_K, 512),
    (DType::IQ4_NL, 96),
    (DType::IQ4_XS, 512),
    (DType::MXFP4, 96),
    (DType::NVFP4, 192),
    (DType::IQ1_S, 512),
    (DType::IQ1_M, 512),
    (DType::IQ2_XXS, 512),
    (DType::IQ2_XS, 512),
    (DType::IQ2_S, 512),
    (DType::IQ3_XXS, 512),
    (DType::IQ3_S, 512),
    (DType::TQ1_0, 512),
    (DType::TQ2_0, 512),
];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = vec![beyond()];
    for (dtype, rows, width) in
        [(DType::F32, 1, 1), (DType::F32, 257, 17), (DType::F16, 17, 257), (DType::BF16, 3, 64)]
    {
        cases.push(rows_of(dtype, rows, width));
    }
    for (dtype, width) in BLOCKS {
        // Enough rows for several slabs on the floor device.
        let rows = 20_000 / (width / dtype.block_elements() * dtype.block_bytes()) + 3;
        cases.push(rows_of(dtype, rows, width).given("w", random_bits(dtype, [rows, width])));
    }
    cases
}

/// The first rows, the last ones, and some in between; one twice.
fn rows_of(dtype: DType, rows: usize, width: usize) -> Case {
    let last = rows as u32 - 1;
    let ids = vec![0, last, last / 2, last.min(1), last / 3, last / 2, last.saturating_sub(1)];
    let name = format!("{} {rows}x{width}", dtype.name());
    embed(name, dtype, [rows, width], 39.191_837).given("ids", Data::U32(ids))
}

/// Ids beyond the last row give zeros.
fn beyond() -> Case {
    let bytes: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let weight = Weight::new(DType::F32, [2, 2], bytes);
    let ids = vec![1, 2, 0, u32::MAX, 1 << 31, 3, 1];
    let y = [1.5, 2.0, 0.0, 0.0, 0.5, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.5, 2.0];
    embed("ids beyond the rows".into(), DType::F32, [2, 2], 0.5)
        .given("ids", Data::U32(ids))
        .given("w", Data::Weight(weight))
        .gives(&y)
}

/// Looks up seven ids.
fn embed(name: String, dtype: DType, shape: [usize; 2], scale: f32) -> Case {
    Case::new("embed", name, move |g: &mut Graph| {
        let ids = g.input("ids", Type::u32([7]));
        let weight = g.weight("w", Type::weight(dtype, shape));
        vec![g.embed(ids, weight, scale)]
    })
}
