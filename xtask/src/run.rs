//! `cargo xtask run`: build, and show what works so far.

use anyhow::Result;

use crate::command::{say, sh, target};

const STATUS: &str = "
rullama can read models; it cannot run them yet.

Works now:   list, show, tokenize, detokenize, render, verify
             for Ollama names, files and http(s) URLs
             ops: the GPU kernels, tested and timed
Not yet:     models on the engine, the chat, and the browser app this command will serve

Try:";

pub(crate) fn run() -> Result<()> {
    sh("cargo", &["build", "--release", "--package", "rullama"])?;
    let program = target().join("release/rullama");
    let program = program.display();
    say(STATUS);
    for words in [
        "list",
        "show goldens/gguf/tiny-e2b-Q4_K_M.gguf --tensors",
        "tokenize goldens/gguf/tiny-e2b-Q4_K_M.gguf \"Hello, world\"",
        "--help",
    ] {
        say(&format!("  {program} {words}"));
    }
    Ok(())
}
