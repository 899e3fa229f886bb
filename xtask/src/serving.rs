//! A `rullama serve` of our own, for tasks that need one.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result};
use serde_json::Value;
use tempfile::TempDir;

use crate::command::root;

/// A server that ends with this value.
pub(crate) struct Serving {
    child: Child,
    /// Its URL, without a slash at the end.
    pub(crate) url: String,
    _store: TempDir,
}

impl Serving {
    /// Serves the demo model and other models under these names on a free port: files of `goldens/`, or of this folder.
    pub(crate) fn start(rullama: &str, models: &[(&str, &str)], options: &[&str]) -> Result<Self> {
        let store = tempfile::tempdir()?;
        let mut command = Command::new(rullama);
        command.arg("--store").arg(store.path()).args(["serve", "--port", "0", "--json"]);
        for (name, file) in models {
            let golden = root().join("goldens").join(file);
            let path = if golden.is_file() { golden } else { std::path::absolute(file)? };
            command.args(["--model", &format!("{name}={}", path.display())]);
        }
        command.args(options).env_remove("OLLAMA_HOST");
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {rullama}"))?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("no standard output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let url: Value = serde_json::from_str(&line).context("the server says no URL")?;
        let url = url["url"].as_str().unwrap_or_default().trim_end_matches('/').to_owned();
        Ok(Self { child, url, _store: store })
    }

    /// Memory of the process in kilobytes, where the system tells.
    pub(crate) fn resident(&self) -> Option<u64> {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(path).ok()?;
        let line = text.lines().find(|line| line.starts_with("VmRSS:"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
