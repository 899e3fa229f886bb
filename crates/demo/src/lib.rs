//! rullama's demo model: a tiny Gemma 4 (14 MB) that chats, calls tools, describes simple images and recognises spoken digits. It is
//! meant for trying rullama and for tests, not for real use.

/// The name that the model is opened by.
pub const NAME: &str = "demo";

/// Registries limit the size of a package, so the file is in two.
const PIECES: [&[u8]; 2] = [include_bytes!("../demo-1.bin"), rullama_demo_tail::BYTES];

/// The model as the bytes of a GGUF file.
///
/// ```
/// let file = rullama_demo::gguf();
/// assert_eq!(&file[..4], b"GGUF");
/// ```
pub fn gguf() -> Vec<u8> {
    PIECES.concat()
}
