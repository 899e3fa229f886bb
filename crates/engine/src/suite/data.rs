//! The data of a case.

use std::hash::{Hash, Hasher};

use rullama_gguf::{DType, quant::quantize};

use super::Case;
use crate::{
    cpu::{Data, Weight},
    graph::{Element, Shape, Type},
};

impl Case {
    /// The data of an input or state.
    pub(super) fn data(&self, name: &str, ty: &Type) -> Data {
        self.given.get(name).cloned().unwrap_or_else(|| match ty.element {
            Element::U32 => panic!("{} {}: give the ids of `{name}`", self.op, self.name),
            _ => Data::F32(random(name, ty.shape.len())),
        })
    }

    /// A weight: random values in its format, unless given.
    pub(super) fn weight(&self, name: &str, ty: &Type) -> Weight {
        let Element::Weight(dtype) = ty.element else { panic!("`{name}` is not a weight") };
        match self.given.get(name) {
            Some(Data::Weight(given)) => given.clone(),
            Some(given) => stored(given.f32(), dtype, ty.shape.clone()),
            None => stored(&random(name, ty.shape.len()), dtype, ty.shape.clone()),
        }
    }
}

fn stored(values: &[f32], dtype: DType, shape: Shape) -> Weight {
    let bytes = quantize(dtype, values).expect("cases use formats that can be written");
    Weight::new(dtype, shape, bytes)
}

/// A weight of random bits, which covers what no quantiser writes: every scale, sign and level. Only its f16 fields are limited to magnitudes
/// from 1/16 to 1/8, and its exponents to 2^-8 to 2^7.
pub(crate) fn random_bits(dtype: DType, shape: [usize; 2]) -> Data {
    let blocks = shape[0] * shape[1] / dtype.block_elements();
    let noise = random("bits", blocks * dtype.block_bytes());
    let mut bytes: Vec<u8> = noise.iter().map(|x| ((x + 1.0) * 128.0) as u8).collect();
    let f16_fields: &[usize] = match dtype {
        DType::Q4_0 | DType::Q5_0 | DType::Q8_0 | DType::IQ4_NL | DType::IQ4_XS => &[0],
        DType::Q4_1 | DType::Q5_1 | DType::Q4_K | DType::Q5_K => &[0, 2],
        DType::Q2_K => &[80, 82],
        DType::Q3_K => &[108],
        DType::Q6_K => &[208],
        DType::IQ1_S | DType::IQ2_XXS | DType::IQ2_XS | DType::IQ2_S => &[0],
        DType::IQ3_XXS | DType::IQ3_S => &[0],
        DType::TQ1_0 => &[52],
        DType::TQ2_0 => &[64],
        DType::MXFP4 | DType::NVFP4 | DType::IQ1_M => &[],
        other => panic!("{} is not a quantised format of the cases", other.name()),
    };
    for block in bytes.chunks_exact_mut(dtype.block_bytes()) {
        for upper in f16_fields.iter().map(|at| at + 1) {
            block[upper] = block[upper] & 0x83 | 0x2c;
        }
        if dtype == DType::MXFP4 {
            block[0] = block[0] & 15 | 120;
        }
        if dtype == DType::IQ1_M {
            // The upper byte of its half is in two nibbles.
            block[55] = block[55] & 0x8f | 0x20;
            block[53] = block[53] & 0x3f | 0xc0;
        }
    }
    Data::Weight(Weight::new(dtype, shape, bytes))
}

/// The first rows of a random weight, at most `most`.
pub(super) fn rows(name: &str, ty: &Type, most: usize) -> Weight {
    let Element::Weight(dtype) = ty.element else { panic!("`{name}` is not a weight") };
    let shape = [ty.shape.rows().min(most), ty.shape.width()];
    stored(&random(name, shape[0] * shape[1]), dtype, shape.into())
}

/// Values in -1..1 that depend only on the name, on every platform.
fn random(name: &str, len: usize) -> Vec<f32> {
    let mut hasher = rustc_hash::FxHasher::default();
    name.bytes().for_each(|byte| u64::from(byte).hash(&mut hasher));
    let mut state = hasher.finish();
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}
