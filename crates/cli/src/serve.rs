//! `rullama serve`: the app and the models of this machine, and the APIs of Ollama, OpenAI and Anthropic.

mod log;
pub(crate) mod settings;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use clap::Args;
use rullama::CacheType;
use rullama_api::KeepAlive;
use rullama_host::{Host, HostOptions};
use rullama_server::{
    ApiKeys, ApiLimits, Limits, ModelRow, Options, Origin, PlainFile, Server, Signals, Tls,
};
use serde_json::json;

use crate::{
    interrupt,
    load::DeviceArgs,
    locate::{DEMO_NAME, Stores, demo_file},
    output::{note, print, print_json, safe},
};
use log::LogFormat;
use settings::Settings;

/// The port of the app, and the one that Ollama's clients look at.
pub(crate) const PORT: u16 = 11435;
const OLLAMA_PORT: u16 = 11434;
/// How long models may take to free their GPU at the end.
const UNLOADING: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Also serve this GGUF file, optionally under another name
    #[arg(long = "model", value_name = "[NAME=]PATH")]
    models: Vec<PlainFile>,
    /// Address to listen on (127.0.0.1, or that of OLLAMA_HOST); one that other machines can reach needs --api-key or --open-to-network
    #[arg(long, value_name = "ADDRESS", value_parser = host)]
    host: Option<IpAddr>,
    /// Port to listen on; 0 picks a free one. Without it, 11435, and Ollama's 11434 where it is free
    #[arg(long)]
    port: Option<u16>,
    /// Open the app in a browser
    #[arg(long)]
    open: bool,
    /// Allow pages of this site to use the server and read the models
    #[arg(long = "origin", value_name = "SITE")]
    origins: Vec<Origin>,
    /// Also accept requests for this host name
    #[arg(long = "allowed-host", value_name = "NAME")]
    allowed_hosts: Vec<String>,
    /// Print the URL as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten)]
    models_in_memory: MemoryArgs,
    #[command(flatten)]
    device: DeviceArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Access")]
struct AccessArgs {
    /// Demand this key of API clients; may be given several times
    #[arg(long, value_name = "KEY")]
    api_key: Vec<String>,
    /// Demand one of the keys in this file, one per line
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    /// Let other machines use the server without a key
    #[arg(long)]
    open_to_network: bool,
    /// Use https, with a certificate and its key, or with a self-signed one
    #[arg(long, num_args = 1..=2, value_names = ["CERT|self-signed", "KEY"])]
    tls: Vec<PathBuf>,
    /// Log each request to standard error, without prompts and replies
    #[arg(long, value_enum, value_name = "FORMAT")]
    log: Option<LogFormat>,
    /// How long replies may take to finish after Ctrl-C
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    drain: u64,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Models in memory")]
struct MemoryArgs {
    /// Context length of requests that choose none (OLLAMA_CONTEXT_LENGTH)
    #[arg(long, value_name = "TOKENS")]
    ctx: Option<usize>,
    /// Requests of full length that a model runs at once (OLLAMA_NUM_PARALLEL; 4)
    #[arg(long, value_name = "N")]
    parallel: Option<usize>,
    /// Also give more than 8 requests at once the tokens that each gets alone; slower on GPUs with matrix units
    #[arg(long)]
    batch_invariant: bool,
    /// How long an idle model stays loaded, such as 10m; -1 = for ever (OLLAMA_KEEP_ALIVE; 5m)
    #[arg(long, value_name = "TIME", value_parser = keep_alive, allow_hyphen_values = true)]
    keep_alive: Option<KeepAlive>,
    /// Models loaded at once (OLLAMA_MAX_LOADED_MODELS; 3)
    #[arg(long, value_name = "N")]
    max_models: Option<usize>,
    /// Requests that may wait (OLLAMA_MAX_QUEUE; 512)
    #[arg(long, value_name = "N")]
    queue: Option<usize>,
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
    let settings = Settings::of_environment()?;
    let (is_json, is_open) = (args.json, args.open);
    let is_unprotected = args.access.api_key.is_empty() && args.access.api_key_file.is_none();
    let host = Arc::new(Host::new(host_options(&args, &settings)));
    let options = options(stores, args, settings, &host)?;
    let (address, also, has_tls) = (options.address, options.also, options.tls.is_some());
    let server = Server::bind(options).await?;
    let url = server.url();
    if is_json {
        print_json(&json!({ "url": url }))?;
    } else {
        print(&format!("rullama is at {url}\n"))?;
    }
    if !address.ip().is_loopback() {
        note(&warning(address.ip(), is_unprotected, has_tls));
    }
    if is_open {
        open(&url);
    }
    if !is_json {
        if let Some(wanted) = also {
            print(&ollama_port(wanted, has_tls, server.second_address().is_some()))?;
        }
        print(&summary(&server.models().await?))?;
    }
    let result = server.run(signals.wait()).await;
    host.close(UNLOADING);
    Ok(result?)
}

fn options(
    stores: Stores,
    args: ServeArgs,
    settings: Settings,
    host: &Arc<Host>,
) -> Result<Options> {
    let (address, also) = addresses(args.host, args.port, settings.host);
    let AccessArgs { api_key, api_key_file, open_to_network, tls, log, drain } = args.access;
    let mut keys = ApiKeys::default();
    api_key.iter().try_for_each(|key| keys.add(key))?;
    if let Some(file) = api_key_file {
        keys.add_file(&file)?;
    }
    let limits = Limits { drain: Duration::from_secs(drain), ..Limits::default() };
    let mut api_limits = ApiLimits::default();
    api_limits.queue = args.models_in_memory.queue.or(settings.queue).unwrap_or(api_limits.queue);
    let mut options = Options::new(address);
    options.also = also;
    options.stores = stores.0.0;
    options.files = args.models;
    options.origins = args.origins;
    options.origin_patterns = settings.origins;
    options.tls = certificate(tls, &args.allowed_hosts, address);
    options.allowed_hosts = args.allowed_hosts;
    options.limits = limits;
    options.api_limits = api_limits;
    options.engine = Some(Arc::clone(host) as _);
    options.pull = Some(settings.pull);
    options.keys = keys;
    options.open_to_network = open_to_network;
    options.log = log.map(LogFormat::log);
    Ok(options)
}

fn host_options(args: &ServeArgs, settings: &Settings) -> HostOptions {
    let MemoryArgs { ctx, parallel, batch_invariant, keep_alive, max_models, queue } =
        &args.models_in_memory;
    let usual = HostOptions::default();
    HostOptions {
        open: args.device.options(ctx.or(settings.context), CacheType::default()),
        parallel: parallel.or(settings.parallel).unwrap_or(usual.parallel),
        batch_invariant: *batch_invariant,
        queue: queue.or(settings.queue).unwrap_or(usual.queue),
        models: max_models.or(settings.models).unwrap_or(usual.models),
        keep_alive: keep_alive.or(settings.keep_alive).unwrap_or(usual.keep_alive),
    }
}

/// Where to listen: where the user says, or at the app's port and, where it is free, at Ollama's.
fn addresses(
    host: Option<IpAddr>,
    port: Option<u16>,
    environment: Option<SocketAddr>,
) -> (SocketAddr, Option<SocketAddr>) {
    let ip = host.or(environment.map(|address| address.ip()));
    let ip = ip.unwrap_or(Ipv4Addr::LOCALHOST.into());
    let given = port.or(environment.map(|address| address.port()));
    match given {
        Some(port) => (SocketAddr::new(ip, port), None),
        None => (SocketAddr::new(ip, PORT), Some(SocketAddr::new(ip, OLLAMA_PORT))),
    }
}

/// Where the certificate comes from; one of our own is for all names of this machine.
fn certificate(tls: Vec<PathBuf>, names: &[String], address: SocketAddr) -> Option<Tls> {
    let mut files = tls.into_iter();
    match (files.next(), files.next()) {
        (Some(certificate), Some(key)) => Some(Tls::Files { certificate, key }),
        (Some(word), None) if word.as_os_str() == "self-signed" => {
            let mut names = names.to_vec();
            names.extend(settings::network_address(address.ip()).map(|ip| ip.to_string()));
            Some(Tls::SelfSigned { names })
        }
        // The certificate's file may hold the key as well.
        (Some(both), None) => Some(Tls::Files { certificate: both.clone(), key: both }),
        (None, _) => None,
    }
}

fn ollama_port(wanted: SocketAddr, has_tls: bool, is_ours: bool) -> String {
    if is_ours {
        let scheme = if has_tls { "https" } else { "http" };
        format!("Ollama's clients find it at {scheme}://{wanted}/, too.\n")
    } else {
        format!(
            "Another program, probably Ollama, has port {}: its clients will not find rullama there.\n",
            wanted.port()
        )
    }
}

fn warning(host: IpAddr, is_unprotected: bool, has_tls: bool) -> String {
    let mut text = format!("warning: {host} can be reached from other machines");
    if is_unprotected {
        text.push_str(", and anyone who can reach it can use and change the models here");
    }
    if !has_tls {
        text.push_str(
            ". Browsers on other machines offer WebGPU only over https: use --tls, or an https proxy",
        );
    }
    if let Some(ip) = settings::network_address(host) {
        text.push_str(&format!(". Its address there is probably {ip}"));
    }
    text + "."
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
        text.push_str("No models found: pull one with `rullama pull gemma4:e2b`, or serve a file with --model PATH.\n");
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

fn keep_alive(text: &str) -> Result<KeepAlive, &'static str> {
    KeepAlive::parse(text).ok_or("give a time such as 10m or 1h30m, 0, or -1 for ever")
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
    use super::*;

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

    #[test]
    fn ports() {
        let of = |host: Option<&str>, port, environment: Option<&str>| {
            let host = host.map(|host| host.parse().unwrap());
            let environment = environment.map(|address| address.parse().unwrap());
            let (address, also) = addresses(host, port, environment);
            (address.to_string(), also.map(|address| address.to_string()))
        };
        let both = |one: &str, two: &str| (one.to_owned(), Some(two.to_owned()));
        let one = |one: &str| (one.to_owned(), None);
        assert_eq!(of(None, None, None), both("127.0.0.1:11435", "127.0.0.1:11434"));
        assert_eq!(of(Some("0.0.0.0"), None, None), both("0.0.0.0:11435", "0.0.0.0:11434"));
        assert_eq!(of(None, Some(80), None), one("127.0.0.1:80"));
        assert_eq!(of(None, None, Some("0.0.0.0:11434")), one("0.0.0.0:11434"));
        assert_eq!(of(Some("::1"), Some(1), Some("0.0.0.0:11434")), one("[::1]:1"));
    }
}
