//! Files under `goldens/`.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use bytes::Bytes;

/// The path of a file under `goldens/`.
pub fn golden_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../goldens").join(name)
}

/// The bytes of a file under `goldens/`.
///
/// # Panics
/// If it cannot be read.
pub fn golden(name: &str) -> Vec<u8> {
    let path = golden_path(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Gemma 4's real vocabulary of 262,144 tokens as a GGUF file without weights.
///
/// # Panics
/// If the file in `goldens/` cannot be decompressed.
pub fn real_vocabulary() -> Bytes {
    unpacked("tokenizer/ggml-vocab-gemma-4.gguf.zst")
}

/// SmolLM2's real vocabulary of 49,152 tokens and its chat template as a GGUF file without weights.
///
/// # Panics
/// If the file in `goldens/` cannot be decompressed.
pub fn smollm2_vocabulary() -> Bytes {
    unpacked("tokenizer/smollm2-vocab.gguf.zst")
}

fn unpacked(name: &str) -> Bytes {
    let packed = golden(name);
    let mut bytes = Vec::with_capacity(16 << 20);
    ruzstd::decoding::StreamingDecoder::new(packed.as_slice())
        .expect("the vocabulary is a zstd frame")
        .read_to_end(&mut bytes)
        .expect("the vocabulary decompresses");
    bytes.into()
}
