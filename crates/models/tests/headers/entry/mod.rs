//! The entry point of the fuzz target `headers`: the input modifies a golden file's header, which is turned into configurations, graphs
//! and kernels of real GPUs. No weights and no device are needed: kernel selection depends on shapes and device facts alone.
//! Every modification must end in a typed error or in kernels that the device accepts, never in a panic.

mod graphs;
mod header;

use header::{Header, Source};

/// Golden files: decoders, projectors with vision and audio encoders, a drafter, embedding models, a diffusion model.
pub(crate) const FILES: [&str; 15] = [
    "gguf/micro-e2b-Q8_0.gguf",
    "gguf/micro-moe-Q8_0.gguf",
    "gguf/micro-dense-BF16.gguf",
    "gguf/tiny-e2b-Q4_K_M.gguf",
    "gguf/tiny-moe-Q4_K_M.gguf",
    "gguf/micro-e2b-mmproj-F16.gguf",
    "gguf/micro-moe-mmproj-F16.gguf",
    "assistant/micro-assistant-BF16.gguf",
    "embedding/first-BF16.gguf",
    "embedding/second-BF16.gguf",
    "diffusion/micro-diffusion-BF16.gguf",
    "gguf/micro-g3p-Q4_0.gguf",
    "gguf/micro-llama-Q4_1.gguf",
    "gguf/micro-qwen2-Q8_0.gguf",
    "gguf/micro-g3p-mmproj-F16.gguf",
];

/// Number of boundary values that an edit can select.
pub(crate) const NUMBERS: u8 = header::NUMBERS.len() as u8;

/// Number of keys of a golden file that an edit can select.
pub(crate) fn keys(file: u8) -> u8 {
    let keys = Header::golden(FILES[usize::from(file) % FILES.len()]).keys();
    u8::try_from(keys).expect("headers have few keys without their vocabulary")
}

/// How far an input got, to test that the golden files reach the kernels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reached {
    /// Graphs that were written.
    pub(crate) graphs: usize,
    /// Dispatches of these graphs.
    pub(crate) dispatches: usize,
}

/// Reads the input as edits of a golden header: the first byte selects the file, the second the device and whether tensor shapes follow
/// changed keys; six bytes per edit.
pub(crate) fn headers(data: &[u8]) -> Reached {
    let (file, how, edits) = match data {
        [file, how, edits @ ..] => (*file, *how, edits),
        [file] => (*file, 0, &[][..]),
        [] => (0, 0, &[][..]),
    };
    let mut header = Header::golden(FILES[usize::from(file) % FILES.len()]);
    header.edit_keys(edits);
    if how & 1 == 1 {
        header.fit_tensors();
    }
    header.edit_tensors(edits);
    let mut reached = Reached::default();
    if let Some(gguf) = Source::open(&header) {
        graphs::check(&gguf, usize::from(how >> 1), &mut reached);
    }
    reached
}
