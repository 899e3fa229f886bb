//! `cargo xtask run`: build everything and serve the app with a model.

use anyhow::Result;

use crate::{
    command::{say, sh, target},
    setup, web,
};

const HELLO: &str = "
The page below is the app; your browser needs WebGPU, and nothing else.
The model `demo` comes with the program: tiny, trained by us, good at a few small things. Models of Ollama on this machine are offered
too. Ctrl-C ends it.
";

pub(crate) fn run() -> Result<()> {
    setup::for_building()?;
    web::build()?;
    // Not the release build: models run in the browser, and this one is there in half the time.
    sh("cargo", &["build", "--package", "rullama-cli"])?;
    let program = target().join("debug/rullama").display().to_string();
    say(HELLO);
    sh(&program, &["serve"])
}
