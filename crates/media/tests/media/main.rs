//! Images and audio against the reference's numbers, and what is wrong with files.
#![cfg(feature = "decode")]

mod audio;
mod files;
mod images;

use rullama_testkit::golden;
use safetensors::SafeTensors;

/// Numbers of a golden file.
fn numbers<T>(file: &str, name: &str, read: fn([u8; 4]) -> T) -> Vec<T> {
    let bytes = golden(file);
    let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let data = tensors.tensor(name).expect("the tensor is there").data();
    data.as_chunks().0.iter().map(|four| read(*four)).collect()
}

fn floats(file: &str, name: &str) -> Vec<f32> {
    numbers(file, name, f32::from_le_bytes)
}

fn ids(file: &str, name: &str) -> Vec<i32> {
    numbers(file, name, i32::from_le_bytes)
}
