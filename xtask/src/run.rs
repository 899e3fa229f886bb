//! `cargo xtask run`: build everything and serve the app with a model.

use anyhow::Result;

use crate::{
    command::{say, sh, target},
    setup, web,
};

const HELLO: &str = "
Open the URL below in a browser with WebGPU.
The model `demo` is part of the program: tiny, and good at a few simple tasks. Ollama's models on this machine are listed, too.
Ctrl-C stops the server.
";

pub(crate) fn run() -> Result<()> {
    setup::for_building()?;
    web::build()?;
    // A debug build: models run in the browser, and it compiles in half the time.
    sh("cargo", &["build", "--package", "rullama-cli"])?;
    let program = target().join("debug/rullama").display().to_string();
    say(HELLO);
    sh(&program, &["serve"])
}
