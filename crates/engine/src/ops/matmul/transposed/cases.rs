use rullama_gguf::DType;

use crate::{
    graph::{Graph, Type},
    suite::{Case, Tolerance, random_bits},
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (dtype, t, rows, width) in [
        (DType::F32, 1, 1, 1),
        (DType::F32, 3, 17, 257),
        (DType::F32, 65, 33, 17),
        (DType::F16, 17, 257, 33),
        (DType::BF16, 1, 5, 64),
    ] {
        cases.push(matmul(dtype, t, rows, width));
    }
    // Every order of columns that formats have. Weights beyond 8 KiB become several slabs on the floor device.
    for (dtype, t, rows, width) in [
        (DType::Q4_0, 9, 257, 96),
        (DType::Q8_0, 64, 257, 96),
        (DType::Q2_K, 5, 17, 256),
        (DType::Q4_K, 257, 70, 256),
        (DType::Q5_K, 7, 6, 512),
        (DType::Q6_K, 17, 65, 512),
        (DType::NVFP4, 4, 11, 192),
        (DType::IQ3_S, 4, 11, 256),
        (DType::TQ2_0, 3, 11, 256),
    ] {
        let bits = random_bits(dtype, [rows, width]);
        cases.push(matmul(dtype, t, rows, width).given("w", bits));
    }
    // Enough rows and columns for every tile shape with matrix units.
    for (t, rows, width) in
        [(16, 64, 256), (33, 96, 512), (65, 128, 2048), (130, 70, 12_288), (129, 33, 16_384)]
    {
        cases.push(matmul(DType::Q8_0, t, rows, width));
    }
    // A dequantised weight with split-K, and of rows that are not whole units.
    cases.push(matmul(DType::Q4_K, 128, 2100, 256));
    cases.push(matmul(DType::Q6_K, 130, 33, 768));
    // Workgroups share a tile (split-K).
    cases.push(matmul(DType::Q8_0, 20, 2100, 64));
    cases.push(matmul(DType::F32, 3, 5, 7).gradient());
    cases.push(matmul(DType::Q6_K, 128, 65_536, 1536).bench());
    cases
}

fn matmul(dtype: DType, t: usize, rows: usize, width: usize) -> Case {
    let build = move |g: &mut Graph| {
        let y = g.input("y", Type::f32([t, rows]));
        let weight = g.weight("w", Type::weight(dtype, [rows, width]));
        vec![g.linear_t(y, weight)]
    };
    Case::new("linear_t", format!("{} {t}x{rows} to {width}", dtype.name()), build)
        .tolerance(Tolerance::ARITHMETIC.terms(rows))
}
