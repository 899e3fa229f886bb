//! Model files for the program to read.

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

use rullama_gguf::{DType, Writer, quant::quantize};
use rullama_testkit::{golden, golden_path, real_vocabulary};
use tempfile::TempDir;

/// A tiny model of the small family with a vocabulary of 640 tokens.
pub(crate) const MICRO: &str = "gguf/micro-e2b-Q8_0.gguf";

/// A larger model, with the tensor formats and names of real files.
pub(crate) const TINY: &str = "gguf/tiny-e2b-Q4_K_M.gguf";

/// The path of a golden file as an argument.
pub(crate) fn golden_arg(name: &str) -> String {
    golden_path(name).into_os_string().into_string().unwrap()
}

/// Gemma 4's vocabulary as a file in the target folder, written by the first test that needs it.
pub(crate) static REAL: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join("real-vocabulary.gguf");
    // Written under another name first: a second run of the tests may be reading it.
    let draft = folder.join(format!("real-vocabulary-{}", std::process::id()));
    std::fs::write(&draft, real_vocabulary()).unwrap();
    std::fs::rename(draft, &path).unwrap();
    path
});

/// A folder with one file in it.
pub(crate) struct FileInFolder {
    _folder: TempDir,
    path: PathBuf,
}

impl FileInFolder {
    pub(crate) fn new(name: &str, content: impl AsRef<[u8]>) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        Self { _folder: folder, path }
    }

    pub(crate) fn arg(&self) -> &str {
        self.path.to_str().unwrap()
    }
}

/// A file with two small tensors, one of blocks.
pub(crate) fn small_file() -> Writer {
    let blocks = quantize(DType::Q8_0, &[0.5; 64]).unwrap();
    Writer::new()
        .kv("general.architecture", "gemma4")
        .kv("general.name", "Small")
        .tensor("blocks", &[32, 2], DType::Q8_0, blocks)
        .tensor("floats", &[2], DType::F32, quantize(DType::F32, &[1.0, -1.0]).unwrap())
}

/// A small file whose second block has NaN for its scale.
pub(crate) fn nan_file() -> Vec<u8> {
    let mut blocks = quantize(DType::Q8_0, &[0.5; 64]).unwrap();
    blocks[34..36].copy_from_slice(&0x7E00u16.to_le_bytes());
    Writer::new().tensor("blk.0.broken", &[32, 2], DType::Q8_0, blocks).finish().unwrap()
}

/// An official chat template.
pub(crate) fn official(name: &str) -> String {
    String::from_utf8(golden(&format!("chat-template/{name}.2026-07-09.jinja"))).unwrap()
}

/// A model with this chat template, or none.
pub(crate) fn with_template(template: Option<&str>, per_layer_width: u32) -> Vec<u8> {
    let file = Writer::new()
        .kv("general.architecture", "gemma4")
        .kv("gemma4.embedding_length_per_layer_input", per_layer_width);
    let file = match template {
        Some(text) => file.kv("tokenizer.chat_template", text),
        None => file,
    };
    file.finish().unwrap()
}
