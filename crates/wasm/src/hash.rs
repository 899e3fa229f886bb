//! Checksums of downloads; the browser's own digest needs all bytes in memory.

use sha2::Digest;
use wasm_bindgen::prelude::wasm_bindgen;

/// Incremental SHA-256.
#[wasm_bindgen]
#[derive(Default)]
pub struct Sha256(sha2::Sha256);

#[wasm_bindgen]
impl Sha256 {
    /// Without any bytes.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest as 64 hex digits.
    pub fn digest(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Sha256;

    #[test]
    fn chunks_give_the_digest_of_the_whole() {
        let mut hash = Sha256::new();
        hash.update(b"a");
        hash.update(b"bc");
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash.digest(), known);
    }
}
