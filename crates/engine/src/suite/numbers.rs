//! The numbers of a case.

use std::hash::{Hash, Hasher};

use rullama_gguf::quant::quantize;

use super::Case;
use crate::{
    cpu::{Data, Weight},
    graph::{Element, Type},
};

impl Case {
    /// The numbers of an input or state.
    pub(super) fn data(&self, name: &str, ty: &Type) -> Data {
        self.given.get(name).cloned().unwrap_or_else(|| match ty.element {
            Element::U32 => panic!("{} {}: say which ids `{name}` has", self.op, self.name),
            _ => Data::F32(random(name, ty.shape.len())),
        })
    }
}

/// A random weight in its format.
pub(super) fn weight(name: &str, ty: &Type) -> Weight {
    let Element::Weight(dtype) = ty.element else { panic!("`{name}` is no weight") };
    let bytes = quantize(dtype, &random(name, ty.shape.len()))
        .expect("cases use formats that can be written");
    Weight { dtype, shape: ty.shape.clone(), bytes: bytes.into() }
}

/// The first rows of a random weight, at most `most`.
pub(super) fn rows(name: &str, ty: &Type, most: usize) -> Weight {
    let shape = vec![ty.shape.rows().min(most), ty.shape.width()];
    weight(name, &Type { shape: shape.into(), element: ty.element })
}

/// Numbers in -1..1 that depend on the name alone, on every platform.
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
