//! A server of ours, as other commands use it.

use std::{
    io::{BufRead, BufReader},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use ureq::{Agent, Body, http::Response};

use crate::{
    interrupt,
    serve::settings::{host_and_port, variable},
};

/// A server on this machine answers at once, or not at all.
const PROBE: Duration = Duration::from_millis(500);

/// One at an address of the user may be far away.
const FAR_PROBE: Duration = Duration::from_secs(3);

/// How often a wait for a server looks for Ctrl-C.
const POLL: Duration = Duration::from_millis(50);

/// A server that answers.
pub(crate) struct Client {
    base: String,
    agent: Agent,
}

/// The error of a server that does not know the key, or gets none.
#[derive(Debug)]
pub(crate) struct NeedsKey;

impl std::fmt::Display for NeedsKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the server needs a key; set RULLAMA_API_KEY to it")
    }
}

impl std::error::Error for NeedsKey {}

/// The lines of a reply, read on a thread of their own, so that Ctrl-C ends the wait for them. The server is told by a closed connection
/// when this is dropped.
pub(crate) struct ReplyLines {
    lines: Receiver<Result<Value>>,
    agent: Option<Agent>,
}

/// What comes next of a reply.
pub(crate) enum Next {
    Line(Value),
    /// Ctrl-C was pressed.
    Interrupted,
}

impl ReplyLines {
    /// Waits for the next line.
    pub(crate) fn next(&self) -> Result<Next> {
        loop {
            if interrupt::pressed() {
                return Ok(Next::Interrupted);
            }
            match self.lines.recv_timeout(POLL) {
                Ok(line) => return line.map(Next::Line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("the server broke off"),
            }
        }
    }
}

impl Drop for ReplyLines {
    fn drop(&mut self) {
        if let Some(agent) = self.agent.take() {
            agent.shutdown();
        }
    }
}

impl Client {
    /// The server at `OLLAMA_HOST` or at the usual address; none where nothing of ours answers there.
    pub(crate) fn find() -> Option<Self> {
        Self::need().ok()
    }

    /// The same, or an explanation.
    pub(crate) fn need() -> Result<Self> {
        const ADVICE: &str =
            "start one with `rullama serve`, or set OLLAMA_HOST to the address of one";
        let base = address()?;
        let client = Self { agent: agent(), base };
        let probe = client.agent.get(client.url("/api/version"));
        let answer = probe.config().timeout_global(Some(patience())).build().call();
        let base = &client.base;
        let answer =
            answer.with_context(|| format!("no rullama server answers at {base}; {ADVICE}"))?;
        let server = answer.headers().get("server").and_then(|name| name.to_str().ok());
        if server.is_some_and(|name| name.starts_with("rullama/")) {
            Ok(client)
        } else {
            bail!("the server at {base} is not rullama; {ADVICE}")
        }
    }

    /// Where it is.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        let mut request = self.agent.get(self.url(path));
        if let Some(key) = variable("RULLAMA_API_KEY") {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        read(request.call().context("cannot reach the server")?)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        read(self.send(path, body)?)
    }

    /// Begins a reply that is streamed.
    pub(crate) fn stream(&self, path: &str, body: &Value) -> ReplyLines {
        let (sender, lines) = mpsc::channel();
        // An agent of its own, whose connection can be closed while the thread waits for the server.
        let agent = agent();
        let client = Self { base: self.base.clone(), agent: agent.clone() };
        let (path, body) = (path.to_owned(), body.clone());
        thread::spawn(move || match client.lines(&path, &body) {
            // After Ctrl-C nobody waits for them.
            Ok(mut lines) => _ = lines.try_for_each(|line| sender.send(line)),
            Err(error) => _ = sender.send(Err(error)),
        });
        ReplyLines { lines, agent: Some(agent) }
    }

    fn lines(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<impl Iterator<Item = Result<Value>> + use<>> {
        let answer = self.send(path, body)?;
        if answer.status() != 200 {
            read(answer)?;
            bail!("the server answered without a reply");
        }
        let lines = BufReader::new(answer.into_body().into_reader()).lines();
        Ok(lines.map(|line| {
            let value: Value = serde_json::from_str(&line.context("the server broke off")?)?;
            match value.get("error").and_then(Value::as_str) {
                Some(error) => bail!("the server says: {error}"),
                None => Ok(value),
            }
        }))
    }

    fn send(&self, path: &str, body: &Value) -> Result<Response<Body>> {
        let mut request = self.agent.post(self.url(path));
        if let Some(key) = variable("RULLAMA_API_KEY") {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        request.send(body.to_string()).context("cannot reach the server")
    }
}

/// How long a server may take to answer at all.
fn patience() -> Duration {
    if variable("OLLAMA_HOST").is_some() { FAR_PROBE } else { PROBE }
}

fn agent() -> Agent {
    let config = Agent::config_builder().timeout_connect(Some(patience()));
    config.http_status_as_error(false).proxy(None).build().into()
}

/// The address that commands look at: that of the environment, or the one `serve` uses.
fn address() -> Result<String> {
    let Some(text) = variable("OLLAMA_HOST") else {
        return Ok(format!("http://127.0.0.1:{}", crate::serve::PORT));
    };
    let scheme = if text.starts_with("https://") { "https" } else { "http" };
    let (host, port) = host_and_port(&text);
    let Some(port) = port else {
        bail!("OLLAMA_HOST is {text:?}; it must be an address such as 127.0.0.1:11435")
    };
    let host = match host.as_str() {
        "" | "0.0.0.0" | "::" => "127.0.0.1".to_owned(),
        other if other.contains(':') => format!("[{other}]"),
        other => other.to_owned(),
    };
    Ok(format!("{scheme}://{host}:{port}"))
}

/// JSON, or the error of another status in words.
fn read(mut answer: Response<Body>) -> Result<Value> {
    let status = answer.status().as_u16();
    let text = answer.body_mut().read_to_string().context("the server broke off")?;
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    match (status, value.get("error").and_then(Value::as_str)) {
        (200, None) => Ok(value),
        (401, _) => Err(NeedsKey.into()),
        (_, Some(error)) => bail!("the server says: {error}"),
        (status, None) => bail!("the server answered with status {status}"),
    }
}
