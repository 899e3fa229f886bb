//! Checksums of downloads: browsers only hash what is whole in memory.

use sha2::Digest;
use wasm_bindgen::prelude::wasm_bindgen;

/// SHA-256, piece by piece.
#[wasm_bindgen]
#[derive(Default)]
pub struct Sha256(sha2::Sha256);

#[wasm_bindgen]
impl Sha256 {
    /// Of nothing yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in more bytes.
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
    fn pieces_make_the_whole() {
        let mut hash = Sha256::new();
        hash.update(b"a");
        hash.update(b"bc");
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash.digest(), known);
    }
}
