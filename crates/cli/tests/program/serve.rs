//! `rullama serve`: output and exit.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command},
};

use serde_json::Value;

use crate::{
    models::{FileInFolder, MICRO, golden_arg, small_file},
    program::{Program, has},
    store::Store,
};

/// A running server that has printed its URL.
pub(crate) struct Serving {
    child: Child,
    pub(crate) first_line: String,
    _program: Program,
}

impl Serving {
    pub(crate) fn start(mut program: Program) -> Self {
        let mut child = program.spawn();
        let mut first_line = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        // Byte by byte, so that the rest stays in the pipe.
        for byte in BufReader::with_capacity(1, stdout).bytes() {
            first_line.push(byte.unwrap().into());
            if first_line.ends_with('\n') {
                break;
            }
        }
        Self { child, first_line, _program: program }
    }

    fn get(&self, url: &str, path: &str) -> String {
        let address = url.strip_prefix("http://").unwrap().strip_suffix('/').unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    /// Sends a signal and waits; returns the exit code, the rest of standard output, and standard error.
    pub(crate) fn end(mut self, signal: &str) -> (Option<i32>, String, String) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
        let (mut out, mut err) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (self.child.wait().unwrap().code(), out, err)
    }
}

#[cfg(unix)]
#[test]
fn it_prints_its_url_and_ends_on_a_signal() {
    let store = Store::with("gemma4:e2b");
    let serving = Serving::start(store.rullama(&["serve", "--port", "0"]));
    let url = serving.first_line.strip_prefix("rullama is at ").unwrap().trim_end().to_owned();
    let response = serving.get(&url, "/rullama/models");
    has(&response, &["HTTP/1.1 200", "gemma4:e2b", "/rullama/blobs/sha256-"]);
    has(&serving.get(&url, "/api/version"), &["0.13.5", "server: rullama/"]);
    let (code, out, err) = serving.end("TERM");
    assert_eq!((code, err.as_str()), (Some(0), ""));
    has(&out, &["Models: ", "gemma4:e2b", "demo", "Ctrl-C"]);
}

#[cfg(unix)]
#[test]
fn a_model_file_and_json_output() {
    let file = format!("demo={}", golden_arg(MICRO));
    let store = Store::empty();
    let serving =
        Serving::start(store.rullama(&["serve", "--port", "0", "--json", "--model", &file]));
    let line: Value = serde_json::from_str(&serving.first_line).unwrap();
    let response = serving.get(line["url"].as_str().unwrap(), "/rullama/models");
    has(&response, &["\"demo\"", "/rullama/files/demo/micro-e2b-Q8_0.gguf"]);
    let (code, out, err) = serving.end("INT");
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "", ""));
}

#[cfg(unix)]
#[test]
fn access_from_other_machines_is_warned_about() {
    let store = Store::empty();
    let open = ["serve", "--port", "0", "--host", "0.0.0.0"];
    has(&store.rullama(&open).fails(1), &["--api-key", "--open-to-network"]);
    let serving = Serving::start(store.rullama(&open).and(["--open-to-network"]));
    has(&serving.first_line, &["rullama is at http://127.0.0.1:"]);
    // The summary follows the warning.
    let mut serving = serving;
    let mut lines = String::new();
    BufReader::new(serving.child.stdout.as_mut().unwrap()).read_line(&mut lines).unwrap();
    has(&lines, &["Models: demo"]);
    let (code, _, err) = serving.end("TERM");
    assert_eq!(code, Some(0));
    has(&err, &["warning", "other machines"]);
}

#[test]
fn unusable_models_and_addresses_are_refused() {
    let store = Store::empty();
    let serve = |args: &[&str]| store.rullama(&["serve", "--port", "0"]).and(args);
    has(&serve(&["--model", "./nothing.gguf"]).fails(3), &["nothing.gguf"]);
    let text = FileInFolder::new("text.gguf", "no model");
    has(&serve(&["--model", text.arg()]).fails(4), &["text.gguf"]);
    let other = rullama_gguf::Writer::new().kv("general.architecture", "mamba").finish().unwrap();
    let other = FileInFolder::new("llama.gguf", other);
    has(&serve(&["--model", other.arg()]).fails(4), &["mamba", "Gemma 3 and 4"]);
    let fine = FileInFolder::new("fine.gguf", small_file().finish().unwrap());
    has(&serve(&["--model", fine.arg(), "--model", fine.arg()]).fails(1), &["fine", "NAME=PATH"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    has(&store.rullama(&["serve", "--port", &port]).fails(1), &[&port, "--port"]);
    has(&serve(&["--origin", "example.org"]).fails(2), &["https://example.org"]);
    has(&serve(&["--host", "example.org"]).fails(2), &["127.0.0.1"]);
    has(&serve(&["--model", "=x"]).fails(2), &["NAME=PATH"]);
}

/// Everything an Ollama user types, against one server.
#[cfg(unix)]
#[test]
fn other_commands_use_the_server() {
    let store = Store::empty();
    let serving =
        Serving::start(store.rullama(&["serve", "--port", "0", "--device", "cpu", "--json"]));
    let line: Value = serde_json::from_str(&serving.first_line).unwrap();
    let url = line["url"].as_str().unwrap().to_owned();
    let with = |args: &[&str]| store.by_variable(args).env("OLLAMA_HOST", &url);
    has(&with(&["ps"]).stdout(), &["No model is loaded"]);
    let ask = ["run", "demo", "What is 23 + 45?", "--temperature", "0"];
    has(&with(&ask).stdout(), &["68"]);
    has(&with(&["ps"]).stdout(), &["NAME", "demo", "4096"]);
    let json = with(&ask).and(["--json"]).json();
    assert!(json["server"].is_string() && json["text"].as_str().unwrap().contains("68"), "{json}");
    // A process of its own, where the user wants one.
    for own in [&["--local", "--device", "cpu"][..], &["--image-budget", "70"]] {
        let json = with(&ask).and(["--json"]).and(own).json();
        assert!(json.get("server").is_none(), "{json}");
    }
    let chat = with(&["run", "demo", "--chat", "--temperature", "0"]);
    has(&chat.stdin("What is 23 + 45?\n/set nothink\n/bye\n").stdout(), &["68"]);
    // A full context is said, and no message is dropped.
    let full = with(&ask).and(["--ctx", "16"]).fails(1);
    has(&full, &["exceeds the context length", "--ctx"]);
    has(&with(&["stop", "demo"]).stdout(), &["Unloaded demo"]);
    assert_eq!(with(&["ps", "--json"]).json()["models"], serde_json::json!([]));
    let (code, ..) = serving.end("TERM");
    assert_eq!(code, Some(0));
    has(&store.rullama(&["ps"]).fails(1), &["rullama serve"]);
}

/// A closed terminal ends the server, which leaves nothing behind.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_terminal_ends_it_in_order() {
    let store = Store::empty();
    let folder = tempfile::TempDir::new().unwrap();
    let left = || std::fs::read_dir(folder.path()).unwrap().count();
    let program = store.rullama(&["serve", "--port", "0", "--json", "--device", "cpu"]);
    let serving = Serving::start(program.env("TMPDIR", folder.path()));
    assert_eq!(left(), 1, "the demo model");
    // Under `nohup` the server goes on, as it should.
    let signal = if ignores_hangups() { "TERM" } else { "HUP" };
    assert_eq!(serving.end(signal).0, Some(0));
    assert_eq!(left(), 0);
}

/// Whether the tests, and what they start, ignore a closed terminal.
#[cfg(unix)]
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 1 != 0)
}

/// A deleted model does not stay in the server's memory.
#[cfg(unix)]
#[test]
fn a_model_is_unloaded_before_it_is_deleted() {
    let store = Store::empty();
    let weights = store.blob("model", rullama::demo_gguf().unwrap());
    let config = store.blob("config", r#"{"model_format":"gguf","model_family":"gemma4"}"#);
    let manifest = serde_json::json!({ "schemaVersion": 2, "config": config, "layers": [weights] });
    store.manifest("small:latest", &manifest);
    let serving =
        Serving::start(store.rullama(&["serve", "--port", "0", "--device", "cpu", "--json"]));
    let line: Value = serde_json::from_str(&serving.first_line).unwrap();
    let url = line["url"].as_str().unwrap().to_owned();
    let with = |args: &[&str]| store.by_variable(args).env("OLLAMA_HOST", &url);
    has(&with(&["run", "small", "What is 23 + 45?", "--temperature", "0"]).stdout(), &["68"]);
    has(&with(&["ps"]).stdout(), &["small:latest"]);
    has(&with(&["rm", "small"]).stdout(), &["Deleted"]);
    assert_eq!(with(&["ps", "--json"]).json()["models"], serde_json::json!([]));
    serving.end("TERM");
}

#[test]
fn models_are_copied_and_deleted() {
    let store = Store::with("gemma4:e2b");
    has(&store.rullama(&["cp", "gemma4:e2b", "mine"]).stdout(), &["Copied gemma4:e2b to mine"]);
    has(&store.rullama(&["list"]).stdout(), &["mine:latest"]);
    has(
        &store.rullama(&["rm", "gemma4:e2b", "mine"]).stdout(),
        &["Deleted gemma4:e2b", "Deleted mine"],
    );
    store.rullama(&["rm", "mine"]).fails(3);
    store.rullama(&["cp", "mine", "other"]).fails(3);
}

#[test]
fn pulls_that_fail_say_why() {
    let store = Store::empty();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    drop(taken);
    let model = format!("http://127.0.0.1:{port}/library/tiny");
    has(&store.rullama(&["pull", &model]).fails(1), &["http", "insecure"]);
    has(&store.rullama(&["pull", "../x"]).fails(1), &["not a model name"]);
}
