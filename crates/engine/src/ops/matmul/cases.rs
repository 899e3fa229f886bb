use rullama_gguf::DType;

use crate::{
    cpu::{Data, Weight},
    graph::{Graph, Member, Type},
    suite::{Case, Tolerance, random_bits},
};

/// Quantised formats: columns, rows, width. Rows beyond 8 KiB become slabs on the floor.
const BLOCKS: [(DType, usize, usize, usize); 33] = [
    (DType::Q4_0, 1, 17, 544),
    (DType::Q4_1, 1, 257, 32),
    (DType::Q5_0, 1, 17, 1056),
    (DType::Q5_1, 1, 33, 544),
    (DType::Q8_0, 1, 17, 1536),
    (DType::Q2_K, 1, 33, 1536),
    (DType::Q3_K, 1, 21, 1536),
    (DType::Q4_K, 1, 17, 1536),
    (DType::Q5_K, 1, 17, 1536),
    (DType::Q6_K, 1, 17, 1536),
    (DType::IQ4_NL, 1, 17, 1056),
    (DType::IQ4_XS, 1, 22, 1536),
    (DType::MXFP4, 1, 23, 1056),
    (DType::NVFP4, 1, 17, 1088),
    (DType::IQ1_S, 1, 17, 768),
    (DType::IQ1_M, 1, 18, 768),
    (DType::IQ2_XXS, 1, 19, 768),
    (DType::IQ2_XS, 1, 20, 768),
    (DType::IQ2_S, 1, 21, 768),
    (DType::IQ3_XXS, 1, 22, 768),
    (DType::IQ3_S, 1, 23, 768),
    (DType::TQ1_0, 1, 24, 768),
    (DType::TQ2_0, 1, 25, 768),
    (DType::IQ2_XXS, 9, 17, 512),
    (DType::TQ1_0, 40, 17, 256),
    (DType::IQ2_XS, 128, 70, 512),
    (DType::Q4_1, 2, 5, 96),
    (DType::Q6_K, 3, 6, 512),
    (DType::Q5_1, 4, 67, 288),
    (DType::Q8_0, 5, 2, 32),
    (DType::MXFP4, 6, 3, 64),
    (DType::NVFP4, 7, 3, 64),
    (DType::Q4_K, 8, 33, 512),
];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (t, rows, width) in [(1, 1, 1), (1, 3, 17), (3, 17, 257), (8, 5, 64), (1, 257, 512)] {
        cases.push(matmul(DType::F32, t, rows, width));
    }
    for dtype in [DType::F16, DType::BF16] {
        for (t, rows, width) in [(1, 17, 257), (2, 9, 512)] {
            cases.push(matmul(dtype, t, rows, width));
        }
    }
    for (dtype, t, rows, width) in BLOCKS {
        let bits = random_bits(dtype, [rows, width]);
        cases.push(matmul(dtype, t, rows, width).given("w", bits));
    }
    for (dtype, t, rows, width) in [
        // Enough rows for teams that compute two and four of them.
        (DType::Q4_0, 1, 16_501, 256),
        (DType::Q4_0, 1, 32_901, 256),
        (DType::F32, 9, 5, 17),
        (DType::F32, 65, 65, 64),
        (DType::F16, 17, 67, 257),
        (DType::BF16, 17, 67, 64),
        (DType::Q8_0, 64, 130, 96),
        (DType::Q4_K, 257, 33, 256),
        (DType::Q6_K, 17, 64, 512),
        // Enough tiles for wide ones: 32 and 64 columns.
        (DType::Q4_0, 18, 16_390, 32),
        (DType::Q8_0, 257, 3270, 32),
        // Tiles of 128 × 128 and of 64 × 64 for matrix units, with an odd number of units.
        (DType::Q4_0, 130, 6150, 32),
        (DType::Q4_1, 40, 6150, 96),
        (DType::F16, 130, 6150, 32),
        (DType::F16, 40, 6150, 96),
        // Enough columns for int8 matrix units, with an odd number of units.
        (DType::BF16, 1029, 389, 96),
        // Enough large tiles for the variant that uses less memory.
        (DType::Q5_0, 129, 16_390, 32),
        // A dequantised weight: in several parts on the floor; with split-K.
        (DType::Q4_0, 128, 140, 1056),
        (DType::Q4_K, 128, 70, 2304),
    ] {
        cases.push(matmul(dtype, t, rows, width));
    }
    cases.push(matmul(DType::F32, 3, 5, 7).gradient());
    cases.push(matmul(DType::Q4_0, 2, 9, 64).gradient());
    cases.push(smallest_exponents());
    cases.push(stacked(DType::F16, 1, 33, &[4, 20, 3]));
    cases.push(stacked(DType::Q4_0, 3, 64, &[260, 4]));
    cases.push(stacked(DType::Q6_K, 1, 1536, &[8, 4, 4]));
    cases.push(large_columns());
    for (dtype, t, rows, width) in [
        (DType::Q6_K, 1, 262_144, 1536),
        (DType::Q4_K, 1, 262_144, 1536),
        (DType::Q4_K, 1, 12_288, 1536),
        (DType::Q6_K, 1, 1536, 12_288),
        (DType::Q4_K, 1, 1536, 12_288),
        (DType::Q4_K, 1, 6144, 1536),
        (DType::Q4_K, 1, 1536, 6144),
        (DType::Q4_K, 1, 2048, 1536),
        (DType::Q4_K, 4, 12_288, 1536),
        (DType::Q4_K, 16, 12_288, 1536),
        (DType::Q4_K, 64, 12_288, 1536),
        (DType::Q4_K, 512, 12_288, 1536),
        (DType::Q6_K, 512, 12_288, 1536),
        (DType::Q4_K, 64, 1536, 12_288),
        (DType::Q4_K, 512, 1536, 12_288),
        // Shapes of a vision encoder.
        (DType::F16, 2520, 2304, 768),
        (DType::F16, 2520, 6144, 768),
        (DType::F16, 2520, 768, 3072),
    ] {
        cases.push(matmul(dtype, t, rows, width).bench());
    }
    for (up, down, inner) in [
        (DType::Q4_K, DType::Q4_K, 12_288),
        (DType::Q4_K, DType::Q6_K, 12_288),
        (DType::Q4_K, DType::Q4_K, 6144),
    ] {
        cases.push(chain(up, down, inner));
    }
    cases
}

/// Feed-forward layers one after the other, as in a model, each with its own weights.
fn chain(up: DType, down: DType, inner: usize) -> Case {
    const LINKS: usize = 16;
    const WIDTH: usize = 1536;
    let build = move |g: &mut Graph| {
        let mut x = g.input("x", Type::f32([1, WIDTH]));
        for i in 0..LINKS {
            let up = g.weight(format!("up{i}"), Type::weight(up, [inner, WIDTH]));
            let down = g.weight(format!("down{i}"), Type::weight(down, [WIDTH, inner]));
            let y = g.linear(x, up);
            x = g.linear(y, down);
        }
        vec![x]
    };
    let name = format!("{} to {inner} and {} back, in a chain", up.name(), down.name());
    Case::new("linear", name, build).chain(LINKS)
}

fn matmul(dtype: DType, t: usize, rows: usize, width: usize) -> Case {
    let build = move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, width]));
        let weight = g.weight("w", Type::weight(dtype, [rows, width]));
        vec![g.linear(x, weight)]
    };
    Case::new("linear", format!("{} {t}x{width} to {rows}", dtype.name()), build)
        .tolerance(Tolerance::ARITHMETIC.terms(width))
}

/// Several tensors stacked by rows, as queries, keys and values are.
fn stacked(dtype: DType, t: usize, width: usize, rows: &'static [usize]) -> Case {
    let build = move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, width]));
        let member = |(i, rows): (usize, &usize)| Member::new(format!("w{i}"), *rows);
        let members: Vec<Member> = rows.iter().enumerate().map(member).collect();
        let weight = g.weight_rows(&members, dtype, width);
        vec![g.linear(x, weight)]
    };
    Case::new("linear", format!("{} {t}x{width} to {rows:?} stacked", dtype.name()), build)
        .tolerance(Tolerance::ARITHMETIC.terms(width))
}

/// MXFP4 scales 2^-128, 2^-127, 2^-126 and 2^127, with levels for which the weights are normal floats: 4 · 2^-128 = 2^-126.
fn smallest_exponents() -> Case {
    let mut bytes = Vec::new();
    // Exponent, level of element 0, level of element 1; level 4 is a 4, level 7 a 12.
    for (exponent, first, second) in [(0, 4, 0), (1, 7, 0), (2, 1, 0), (255, 0, 1)] {
        bytes.extend([exponent, first, second]);
        bytes.extend([0; 14]);
    }
    let weight = Weight::new(DType::MXFP4, [4, 32], bytes);
    let mut x = vec![0.0; 32];
    (x[0], x[1]) = (2f32.powi(126), 2f32.powi(-126));
    let mut case = matmul(DType::MXFP4, 1, 4, 32);
    case.name = "MXFP4 smallest and largest exponents".into();
    case.given("x", Data::F32(x)).given("w", Data::Weight(weight)).gives(&[1.0, 6.0, 1.0, 2.0])
}

/// Columns far beyond the range of f16, of similar magnitudes so that each counts, and one of zeros.
fn large_columns() -> Case {
    let (t, width) = (12, 64);
    let size = |i: usize| 2f32.powi(20 + (i / width % 4) as i32);
    let value = |i: usize| ((i * 7919 % 1009) as f32 / 504.5 - 1.0) * size(i);
    let mut x: Vec<f32> = (0..t * width).map(value).collect();
    x[..width].fill(0.0);
    let mut case = matmul(DType::Q8_0, t, 5, width);
    case.name = "Q8_0 columns of many sizes".into();
    case.given("x", Data::F32(x))
}
