//! Adapter files for the tests.

use std::{collections::HashMap, rc::Rc};

use rullama_adapter::{Adapter, AdapterError, Format, Pair};
use rullama_source::MemorySource;
use safetensors::{Dtype, tensor::TensorView};

pub(crate) const KEY: &str = "base_model.model.model.language_model.layers.0.self_attn.q_proj";

pub(crate) fn read(bytes: Vec<u8>, config: Option<&str>) -> Result<Adapter, AdapterError> {
    pollster::block_on(Adapter::read(Rc::new(MemorySource::new("test", bytes)), config))
}

/// A safetensors file of f32 tensors, each filled with 0, 1, 2 and so on.
pub(crate) fn safetensors(tensors: &[(&str, &[usize])], metadata: &[(&str, &str)]) -> Vec<u8> {
    let counted = |shape: &[usize]| -> Vec<u8> {
        let length = shape.iter().product::<usize>();
        (0..length).flat_map(|i| (i as f32).to_le_bytes()).collect()
    };
    let bytes: Vec<Vec<u8>> = tensors.iter().map(|(_, shape)| counted(shape)).collect();
    let views = tensors.iter().zip(&bytes).map(|((name, shape), bytes)| {
        (*name, TensorView::new(Dtype::F32, shape.to_vec(), bytes).expect("bytes of the shape"))
    });
    let metadata: HashMap<String, String> =
        metadata.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    safetensors::serialize(views, Some(metadata)).expect("a file")
}

/// A pair with distinct values.
pub(crate) fn pair(tensor: &str, rank: usize, rows: usize, columns: usize, scale: f32) -> Pair {
    pairs(tensor, (1, rank), [rows, columns], scale)
}

/// Pairs for all experts of a tensor.
pub(crate) fn pairs(
    tensor: &str,
    (experts, rank): (usize, usize),
    [rows, columns]: [usize; 2],
    scale: f32,
) -> Pair {
    let values = |count: usize, seed: usize| -> Vec<f32> {
        (0..count).map(|i| ((i * 7 + seed) % 23) as f32 / 8.0 - 1.0).collect()
    };
    let a = values(experts * rank * columns, tensor.len());
    let b = values(experts * rows * rank, 3);
    Pair { tensor: tensor.into(), experts, rank, rows, columns, a, b, scale }
}

pub(crate) fn adapter(mut pairs: Vec<Pair>) -> Adapter {
    pairs.sort_by(|one, other| one.tensor.cmp(&other.tensor));
    Adapter {
        name: "test".into(),
        format: Format::Peft,
        architecture: None,
        base_model: None,
        pairs,
        ignored: vec![],
    }
}

/// `scale · B A`, row-major, expert by expert.
pub(crate) fn update(pair: &Pair) -> Vec<f32> {
    let mut out = Vec::new();
    for (row, b) in pair.b.chunks_exact(pair.rank).enumerate() {
        let a = &pair.a[row / pair.rows * pair.rank * pair.columns..];
        for column in 0..pair.columns {
            let terms = b.iter().enumerate().map(|(r, b)| b * a[r * pair.columns + column]);
            out.push(terms.sum::<f32>() * pair.scale);
        }
    }
    out
}

/// Asserts that two sets of pairs update the same tensors alike.
pub(crate) fn assert_same_updates(found: &[Pair], wanted: &[Pair]) {
    let names = |pairs: &[Pair]| pairs.iter().map(|pair| pair.tensor.clone()).collect::<Vec<_>>();
    assert_eq!(names(found), names(wanted));
    for (found, wanted) in found.iter().zip(wanted) {
        let name = &found.tensor;
        for (x, y) in update(found).iter().zip(update(wanted)) {
            assert!((x - y).abs() <= 1e-5 * (1.0 + y.abs()), "{name}: {x} and {y}");
        }
    }
}
