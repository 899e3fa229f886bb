//! A server of ours on this machine, as other commands use it.

use std::{
    io::{BufRead, BufReader},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use ureq::{Agent, Body, http::Response};

use crate::serve::settings::{host_and_port, variable};

/// A server on this machine answers at once, or not at all.
const PROBE: Duration = Duration::from_millis(500);

/// A server that answers.
pub(crate) struct Client {
    base: String,
    agent: Agent,
}

impl Client {
    /// The server at `OLLAMA_HOST` or at the usual address; none where nothing of ours answers there.
    pub(crate) fn find() -> Option<Self> {
        let config = Agent::config_builder()
            .timeout_connect(Some(PROBE))
            .http_status_as_error(false)
            .proxy(None)
            .build();
        let client = Self { base: address()?, agent: config.into() };
        let probe = client.agent.get(client.url("/api/version"));
        let answer = probe.config().timeout_global(Some(PROBE)).build().call().ok()?;
        let server = answer.headers().get("server")?.to_str().ok()?;
        server.starts_with("rullama/").then_some(client)
    }

    /// The same, or an explanation.
    pub(crate) fn need() -> Result<Self> {
        Self::find().context("no rullama server is running here; start one with `rullama serve`")
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

    /// The lines of a stream.
    pub(crate) fn lines(
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

/// The address that commands look at: that of the environment, or the one `serve` uses.
fn address() -> Option<String> {
    let Some(text) = variable("OLLAMA_HOST") else {
        return Some(format!("http://127.0.0.1:{}", crate::serve::PORT));
    };
    let scheme = if text.starts_with("https://") { "https" } else { "http" };
    let (host, port) = host_and_port(&text);
    let host = match host.as_str() {
        "" | "0.0.0.0" | "::" => "127.0.0.1".to_owned(),
        other if other.contains(':') => format!("[{other}]"),
        other => other.to_owned(),
    };
    Some(format!("{scheme}://{host}:{}", port?))
}

/// JSON, or the error of another status in words.
fn read(mut answer: Response<Body>) -> Result<Value> {
    let status = answer.status().as_u16();
    let text = answer.body_mut().read_to_string().context("the server broke off")?;
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    match (status, value.get("error").and_then(Value::as_str)) {
        (200, None) => Ok(value),
        (401, _) => bail!("the server needs a key; set RULLAMA_API_KEY to it"),
        (_, Some(error)) => bail!("the server says: {error}"),
        (status, None) => bail!("the server answered with status {status}"),
    }
}
