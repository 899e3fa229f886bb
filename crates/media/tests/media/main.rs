//! Images and audio against the reference's values, and malformed files.
#![cfg(feature = "decode")]

mod audio;
mod files;
mod images;

use rullama_testkit::golden;
use safetensors::SafeTensors;

/// Elements of a tensor in a golden file.
fn elements<T>(file: &str, name: &str, read: fn([u8; 4]) -> T) -> Vec<T> {
    let bytes = golden(file);
    let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let data = tensors.tensor(name).expect("the tensor exists").data();
    data.as_chunks().0.iter().map(|four| read(*four)).collect()
}

fn floats(file: &str, name: &str) -> Vec<f32> {
    elements(file, name, f32::from_le_bytes)
}

fn ids(file: &str, name: &str) -> Vec<i32> {
    elements(file, name, i32::from_le_bytes)
}
