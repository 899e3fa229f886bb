//! `cargo xtask run`: build, let a tiny model answer, and show what works so far.

use anyhow::Result;

use crate::command::{say, sh, target};

/// A random model with every feature of the family: it answers, but what it says means nothing.
const TINY: &str = "goldens/gguf/tiny-e2b-Q4_K_M.gguf";

const STATUS: &str = "
The model above is random: it shows that the way from prompt to answer works, not that it is wise.
With Ollama's models on this machine, `rullama run gemma4:e2b` answers for real.

Works now:   run (one-shot and chat), bench, eval, perplexity, list, show, tokenize, detokenize, render, verify
             for Ollama names, files and http(s) URLs, on the GPU or the CPU
             ops: the GPU kernels, tested and timed
Not yet:     a model of our own that means something, and the browser app this command will serve

Try:";

pub(crate) fn run() -> Result<()> {
    sh("cargo", &["build", "--release", "--package", "rullama"])?;
    let program = target().join("release/rullama");
    let program = program.display().to_string();
    sh(&program, &["run", TINY, "--seed", "1", "--num-predict", "24", "Hello, world"])?;
    say(STATUS);
    for words in [
        "list".to_owned(),
        format!("run {TINY}"),
        format!("bench {TINY} -p 64 -n 32"),
        format!("show {TINY} --tensors"),
        "--help".to_owned(),
    ] {
        say(&format!("  {program} {words}"));
    }
    Ok(())
}
