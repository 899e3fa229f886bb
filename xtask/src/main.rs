//! The tasks of this workspace: `cargo xtask test`, `run`, `tidy` and the steps behind them.

mod bench;
mod browser;
mod command;
mod drivers;
mod run;
mod setup;
mod shaders;
mod test;
mod tidy;
mod wasm;

use anyhow::{Result, bail};

const HELP: &str = "\
cargo xtask <task>

  test    set up what is missing, then run every check and test (what CI runs), kernels on software GPUs;
          --hardware runs them on this machine's own GPUs
  run     build the program and show what works so far
  shaders compile every kernel variant with a browser's compiler
  wasm    build what pages import, into web/client/src/wasm, and print its size
  browser run the op suite in headless Chromium
  tidy    check the invariants of ARCHITECTURE.md, licences, and the shape of the tree
  setup   install what the tests need: compile targets, software GPUs, a browser, Node packages
  bench   tokenizer: race our tokenizer against the `tokenizers` crate
  help    this text
";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["test"] => test::test(&drivers::environment()),
        ["test", "--hardware"] => test::test(&[]),
        ["run"] => run::run(),
        ["shaders"] => shaders::check(),
        ["wasm"] => wasm::build(),
        ["browser"] => browser::ops(),
        ["tidy"] => tidy::tidy(),
        ["setup"] => setup::setup(),
        ["bench", name] => bench::bench(name),
        [] | ["help" | "--help" | "-h"] => {
            command::say(HELP);
            Ok(())
        }
        _ => bail!("unknown task `{}`\n\n{HELP}", words.join(" ")),
    }
}
