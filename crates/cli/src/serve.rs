//! `rullama serve`: the app and the models of this machine, for a browser.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    process::{Command, Stdio},
};

use anyhow::{Context, Result};
use clap::Args;
use rullama_server::{Limits, ModelRow, Options, Origin, PlainFile, Server, Signals};
use serde_json::json;

use crate::{
    interrupt,
    locate::{DEMO_NAME, Stores, demo_file},
    output::{note, print, print_json, safe},
};

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Also serve this GGUF file, optionally under another name
    #[arg(long = "model", value_name = "[NAME=]PATH")]
    models: Vec<PlainFile>,
    /// Address to listen on; anything but 127.0.0.1 and ::1 can be reached from other machines
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = host)]
    host: IpAddr,
    /// Port to listen on; 0 picks a free one
    #[arg(long, default_value_t = 11435)]
    port: u16,
    /// Open the app in a browser
    #[arg(long)]
    open: bool,
    /// Allow pages of this site to read the models
    #[arg(long = "origin", value_name = "SITE")]
    origins: Vec<Origin>,
    /// Also accept requests for this host name
    #[arg(long = "allowed-host", value_name = "NAME")]
    allowed_hosts: Vec<String>,
    /// Print the URL as JSON
    #[arg(long)]
    json: bool,
}

impl ServeArgs {
    /// Whether output is for a program.
    pub(crate) fn json(&self) -> bool {
        self.json
    }
}

pub(crate) fn serve(stores: Stores, args: ServeArgs) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start threads")?;
    let result = runtime.block_on(serve_until_signal(stores, args));
    // Reads that still wait for a disk must not keep the program.
    runtime.shutdown_background();
    result
}

async fn serve_until_signal(stores: Stores, mut args: ServeArgs) -> Result<()> {
    // Kept until the end: the server reads it.
    let demo = match args.models.iter().any(|model| model.name == DEMO_NAME) {
        true => None,
        false => demo_file()
            .map_err(|error| note(&format!("the demo model is not served: {error:#}")))
            .ok(),
    };
    if let Some(demo) = &demo {
        args.models.push(PlainFile { name: DEMO_NAME.into(), path: demo.path().into() });
    }
    // Watched before the URL is out: who reads it may end us at once.
    interrupt::watch();
    let signals = Signals::watch().context("cannot handle Ctrl-C")?;
    let server = Server::bind(Options {
        address: SocketAddr::new(args.host, args.port),
        stores: stores.0.0,
        files: args.models,
        origins: args.origins,
        allowed_hosts: args.allowed_hosts,
        limits: Limits::default(),
    });
    let server = server.await?;
    let url = server.url();
    if args.json {
        print_json(&json!({ "url": url }))?;
    } else {
        print(&format!("rullama is at {url}\n"))?;
    }
    if !args.host.is_loopback() {
        note(&warning(args.host));
    }
    if args.open {
        open(&url);
    }
    if !args.json {
        print(&summary(&server.models().await?))?;
    }
    Ok(server.run(signals.wait()).await?)
}

fn warning(host: IpAddr) -> String {
    format!(
        "warning: {host} can be reached from other machines, and anyone who can reach it can download these models. \
         Browsers on other machines offer WebGPU only over https, so put an https proxy in front."
    )
}

/// What is served, in words.
fn summary(models: &[ModelRow]) -> String {
    let mut text = String::new();
    let names: Vec<String> = models
        .iter()
        .filter(|model| model.error.is_none())
        .map(|model| safe(&model.name))
        .collect();
    if names.is_empty() {
        text.push_str("No Gemma models found: pull one with `ollama pull gemma4:e2b`, or serve a file with --model PATH.\n");
    } else {
        text.push_str(&format!("Models: {}\n", names.join(", ")));
    }
    for model in models {
        if let Some(error) = &model.error {
            text.push_str(&format!("problem: {}: {}\n", safe(&model.name), safe(error)));
        }
    }
    text.push_str("Press Ctrl-C to stop.\n");
    text
}

fn host(text: &str) -> Result<IpAddr, &'static str> {
    if text.eq_ignore_ascii_case("localhost") {
        return Ok(Ipv4Addr::LOCALHOST.into());
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().map_err(|_| "give an IP address, such as 127.0.0.1 or 0.0.0.0")
}

/// Asks the system to show `url`.
fn open(url: &str) {
    let (program, arguments): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(target_os = "windows") {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(url);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        note(&format!("cannot open a browser ({program}: {error}); open {url} yourself"));
    }
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn hosts() {
        for (text, address) in [
            ("127.0.0.1", "127.0.0.1"),
            ("localhost", "127.0.0.1"),
            ("0.0.0.0", "0.0.0.0"),
            ("::1", "::1"),
            ("[::1]", "::1"),
        ] {
            assert_eq!(host(text).unwrap().to_string(), address);
        }
        for text in ["", "example.org", "127.0.0.1:80", "[::1"] {
            assert!(host(text).is_err(), "{text}");
        }
    }
}
