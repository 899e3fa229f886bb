//! The tasks of this workspace: `cargo xtask test`, `run`, `tidy` and the steps behind them.

mod bench;
mod beside;
mod command;
mod deny;
mod drill;
mod drivers;
mod firefox;
mod hardware;
mod peft;
mod platforms;
mod run;
mod setup;
mod shaders;
mod test;
mod tidy;
mod wasm;
mod web;

use anyhow::{Result, bail};

const HELP: &str = "\
cargo xtask <task>

  test    set up what is missing, then run every check and test (what CI runs), kernels on lavapipe and in Chromium;
          --every-driver runs them on SwiftShader outside of Chromium too, --hardware on this machine's own GPUs
  run     build everything and serve the app with a small model
  shaders compile every kernel variant with a browser's compiler
  wasm    build what pages import, into web/client/src/wasm, and print its size
  wasi    test what needs no GPU as 32-bit wasm under Node
  web     build, check and test all of web/: the package, the app, the op suite and end-to-end tests in headless Chromium
  web-check  build, check and test what of web/ needs no browser
  ops     run the op suite in headless Chromium, on what `web` built
  firefox run the whole op suite and the golden greedy answers in headless Firefox on lavapipe
  tidy    check the invariants of ARCHITECTURE.md and the shape of the tree
  setup   install what the tests need: compile targets, software GPUs, a browser, Node packages
  demo-eval  how well the demo model does on held-out cases, by skill; --gpu, --model FILE, --skill NAME
  deny    check licences, bans and sources of all dependencies with cargo-deny
  platforms  check the program for macOS, Windows and Linux on ARM; test under QEMU and Wine what runs there
  drill   kill, interrupt, fill the disk, misbehave: what survives; [NAME…] --runs N, --program FILE, --device cpu|gpu
  hardware  everything that wants a real GPU: op suite, exit codes, golden models, agreement, bench; one report to paste into
          an issue; --program FILE, --model MODEL, --runs N, --out FILE
  peft    let PEFT itself load adapters that rullama trains and converts
  peft-setup  bring PEFT and a PyTorch without CUDA
  bench   tokenizer: race our tokenizer against the `tokenizers` crate
  help    this text
";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["test"] => test::test(Some(1)),
        ["test", "--every-driver"] => test::test(Some(2)),
        ["test", "--hardware"] => test::test(None),
        ["run"] => run::run(),
        ["shaders"] => shaders::check(),
        ["wasm"] => wasm::build(),
        ["wasi"] => test::wasi(),
        ["web"] => web::web_task(),
        ["web-check"] => web::check(),
        ["ops"] => web::ops(),
        ["firefox"] => firefox::firefox(),
        ["tidy"] => tidy::tidy(),
        ["setup"] => setup::setup(),
        ["demo-eval", options @ ..] => bench::demo_eval(options),
        ["deny"] => deny::deny(),
        ["platforms"] => platforms::platforms(),
        ["drill", options @ ..] => drill::drill(options),
        ["hardware", options @ ..] => hardware::hardware(options),
        ["peft"] => peft::peft(),
        ["peft-setup"] => {
            peft::python();
            Ok(())
        }
        ["bench", name] => bench::bench(name),
        [] | ["help" | "--help" | "-h"] => {
            command::say(HELP);
            Ok(())
        }
        _ => bail!("unknown task `{}`\n\n{HELP}", words.join(" ")),
    }
}
