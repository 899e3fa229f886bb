//! `cargo xtask run`: build everything and serve the app with a model.

use anyhow::Result;

use crate::{
    command::{say, sh, target},
    setup, web,
};

/// A random model with every feature of the family: it answers, but what it says means nothing.
const MODEL: &str = "demo=goldens/gguf/tiny-e2b-Q4_K_M.gguf";

const HELLO: &str = "
The page below is the app; your browser needs WebGPU, and nothing else.
The model `demo` is random: it shows that the way from prompt to answer works, not that it is wise. Models of Ollama on this machine
are offered too; `gemma4:e2b` answers for real. Ctrl-C ends it.
";

pub(crate) fn run() -> Result<()> {
    setup::for_building()?;
    web::build()?;
    sh("cargo", &["build", "--release", "--package", "rullama"])?;
    let program = target().join("release/rullama").display().to_string();
    say(HELLO);
    sh(&program, &["serve", "--model", MODEL])
}
