//! Runs the program isolated from the user's models and settings.

use std::{
    ffi::{OsStr, OsString},
    io::Write,
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

/// One invocation of the program.
pub(crate) struct Program {
    command: Command,
    stdin: Vec<u8>,
    home: TempDir,
}

/// The result of an invocation.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

/// The program with these arguments, an empty home folder and nothing on standard input.
pub(crate) fn rullama<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Program {
    let home = TempDir::new().unwrap();
    let cache = std::env::var("HOME").map(|home| format!("{home}/.cache")).unwrap_or_default();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rullama"));
    command.args(args).env_remove("OLLAMA_MODELS");
    // Nothing listens there: no server of the user's is asked, unless a test says so.
    command.env("OLLAMA_HOST", "127.0.0.1:1");
    command.env("HOME", home.path()).env("USERPROFILE", home.path());
    command.env("LOCALAPPDATA", home.path());
    // Folders that take precedence over those in the home folder.
    command.env_remove("XDG_CACHE_HOME").env_remove("XDG_STATE_HOME");
    // Without a desktop session some graphics libraries warn on standard error; tests check that this is hidden.
    command.env_remove("XDG_RUNTIME_DIR");
    // Software GPUs cache compiled kernels between invocations.
    command.env("MESA_SHADER_CACHE_DIR", &cache).env("__GL_SHADER_DISK_CACHE_PATH", &cache);
    // Of several software GPUs the first is the fastest; other tests run kernels on all of them.
    for name in ["VK_ICD_FILENAMES", "VK_DRIVER_FILES"] {
        let drivers = std::env::var(name).unwrap_or_default();
        if let Some((first, _)) = drivers.split_once(':') {
            command.env(name, first);
        }
    }
    Program { command, stdin: vec![], home }
}

impl Program {
    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.command.env(name, value.into());
        self
    }

    pub(crate) fn folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// The home folder of this invocation.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Appends arguments.
    pub(crate) fn and<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    /// Starts it without waiting.
    pub(crate) fn spawn(&mut self) -> Child {
        let command = self.command.stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs it to the end.
    pub(crate) fn run(mut self) -> Outcome {
        let mut child = self.spawn();
        let mut stdin = child.stdin.take().unwrap();
        // A program that refuses its arguments does not read standard input.
        let _ = stdin.write_all(&self.stdin);
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
        Outcome {
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            code: output.status.code(),
        }
    }

    /// Runs it, expects success and an empty standard error, and returns standard output.
    #[track_caller]
    pub(crate) fn stdout(self) -> String {
        let outcome = self.run();
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{}", outcome.stdout);
        outcome.stdout
    }

    /// Runs it, expects success, and parses standard output as one line of JSON.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let stdout = self.stdout();
        assert_eq!(stdout.find('\n'), Some(stdout.len() - 1), "not one line: {stdout}");
        serde_json::from_str(&stdout).unwrap()
    }

    /// Runs it, expects this exit code and an empty standard output, and returns standard error.
    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> String {
        let outcome = self.run();
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(code), ""), "{}", outcome.stderr);
        assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
        outcome.stderr
    }
}

/// Asserts that `text` contains all of these.
#[track_caller]
pub(crate) fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}
