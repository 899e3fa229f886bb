//! How the program behaves on the command line: help, exit codes, errors, pipes.

use std::io::{BufRead, BufReader, Read};

use serde_json::Value;

use crate::{
    models::{FileInFolder, MICRO, REAL, golden_arg, nan_file, small_file},
    program::{has, rullama},
    server::{Manner, Server},
    store::Store,
};

const COMMANDS: [&str; 11] = [
    "run",
    "serve",
    "list",
    "show",
    "tokenize",
    "detokenize",
    "render",
    "verify",
    "bench",
    "eval",
    "perplexity",
];

#[test]
fn help_names_the_commands_and_the_exit_codes() {
    let help = rullama(["--help"]).stdout();
    has(&help, &COMMANDS);
    has(&help, &["ls", "MODEL", "Exit codes", "0 success", "6 checksum mismatch"]);
    for command in COMMANDS {
        has(
            &rullama([command, "--help"]).stdout(),
            &["Usage: rullama", command, "--json", "--store"],
        );
    }
}

#[test]
fn the_version_is_the_packages() {
    let want = format!("rullama {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(rullama(["--version"]).stdout(), want);
    assert_eq!(rullama(["-V"]).stdout(), want);
}

#[test]
fn wrong_usage() {
    let none: [&str; 0] = [];
    has(&rullama(none).fails(2), &["Usage: rullama"]);
    for args in [
        &["sing"][..],
        &["show"],
        &["tokenize"],
        &["verify"],
        &["show", "m.gguf", "--loud"],
        &["list", "extra"],
        &["--store"],
    ] {
        has(&rullama(args).fails(2), &["--help"]);
    }
}

/// One failure of each kind; scripts rely on the codes.
#[test]
fn exit_codes_by_kind_of_failure() {
    let store = Store::with("gemma4:e2b");
    let nan = FileInFolder::new("nan.gguf", nan_file());
    let whole = Server::start(Manner::Whole, small_file().finish().unwrap());
    let micro = golden_arg(MICRO);
    let zeros = "0".repeat(64);
    let check = |code: i32, name: &str, args: &[&str]| {
        let error = store.rullama(args).fails(code);
        assert!(error.starts_with("rullama: ") && error.ends_with('\n'), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        let error = store.rullama(args).and(["--json"]).fails(code);
        let error: Value = serde_json::from_str(&error).unwrap();
        assert_eq!(error["error"]["code"], name, "{args:?}");
        assert!(!error["error"]["message"].as_str().unwrap().is_empty());
    };
    check(1, "failed", &["detokenize", &micro, "640"]);
    check(3, "not_found", &["show", "gemma5"]);
    check(3, "not_found", &["show", "./nothing.gguf"]);
    check(3, "not_found", &["run", "gemma5", "x"]);
    check(1, "failed", &["run", &micro, " "]);
    check(1, "failed", &["run", &micro, "x", "--device", "cpu", "--ctx", "4"]);
    check(4, "bad_file", &["run", nan.arg(), "x", "--device", "cpu"]);
    check(4, "bad_file", &["verify", nan.arg()]);
    check(4, "bad_file", &["render", "--family", "small"]);
    check(5, "network", &["show", &whole.url()]);
    // Nothing listens on port 1; four attempts are made.
    check(5, "network", &["show", "http://127.0.0.1:1/m.gguf"]);
    check(6, "checksum", &["verify", &micro, "--sha256", &zeros]);
    check(7, "out_of_memory", &["run", &micro, "x", "--device", "gpu", "--gpu-memory", "1K"]);
}

/// `rullama … | head -1`
#[test]
fn a_closed_pipe_is_not_a_failure() {
    let model = REAL.to_str().unwrap();
    // More output than a pipe buffers.
    let mut program = rullama(["show", model, "--full"]);
    let mut child = program.spawn();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    drop(stdout);
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    let code = child.wait().unwrap().code();
    assert_eq!((line.as_str(), stderr.as_str(), code), ("  Model\n", "", Some(0)));
}

#[test]
fn a_closed_standard_error_is_ignored() {
    let mut program = rullama(["show", "/no/such/file.gguf"]);
    let mut child = program.spawn();
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

/// What an Ollama user types works, or says what to type instead.
#[test]
fn commands_of_ollama_that_are_missing_say_what_to_type() {
    let version = rullama(["--version"]).stdout();
    assert_eq!((rullama(["-v"]).stdout(), rullama(["-V"]).stdout()), (version.clone(), version));
    has(&rullama(["create", "mine", "-f", "Modelfile"]).fails(1), &["/api/create", "--adapter"]);
    has(&rullama(["push", "mine", "--insecure"]).fails(1), &["ollama push"]);
    has(&rullama(["signin"]).fails(1), &["no account"]);
    has(&rullama(["signout"]).fails(1), &["no account"]);
    let store = Store::empty();
    has(&store.rullama(&["run", "nobody", "Hi"]).fails(3), &["rullama list", "rullama pull"]);
}
