//! What the environment says, under Ollama's and Hugging Face's names.

use std::{
    env,
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    str::FromStr,
};

use anyhow::{Result, bail};
use rullama_api::KeepAlive;
use rullama_pull::{PullOptions, Secret};

/// Variables of the environment.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(super) host: Option<SocketAddr>,
    pub(super) origins: Vec<String>,
    pub(super) keep_alive: Option<KeepAlive>,
    pub(super) parallel: Option<usize>,
    pub(super) models: Option<usize>,
    pub(super) queue: Option<usize>,
    pub(super) context: Option<usize>,
    pub(super) pull: PullOptions,
}

impl Settings {
    pub(super) fn of_environment() -> Result<Self> {
        let keep_alive = variable("OLLAMA_KEEP_ALIVE").map(|text| match KeepAlive::parse(&text) {
            Some(time) => Ok(time),
            None => {
                bail!("OLLAMA_KEEP_ALIVE is {text:?}; set it to a time such as 10m, or unset it")
            }
        });
        Ok(Self {
            host: variable("OLLAMA_HOST").map(|text| listen_address(&text)).transpose()?,
            origins: origins(&variable("OLLAMA_ORIGINS").unwrap_or_default()),
            keep_alive: keep_alive.transpose()?,
            parallel: number("OLLAMA_NUM_PARALLEL")?,
            models: number("OLLAMA_MAX_LOADED_MODELS")?,
            queue: number("OLLAMA_MAX_QUEUE")?,
            context: number("OLLAMA_CONTEXT_LENGTH")?,
            pull: pull_options(),
        })
    }
}

/// How models are pulled: with Hugging Face's token and address, if there are any.
pub(crate) fn pull_options() -> PullOptions {
    PullOptions {
        hf_endpoint: variable("HF_ENDPOINT"),
        hf_token: variable("HF_TOKEN").map(Secret::new),
        ..PullOptions::default()
    }
}

/// A variable that is set and not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// A number; 0 means that the program decides.
fn number(name: &str) -> Result<Option<usize>> {
    let Some(text) = variable(name) else { return Ok(None) };
    match usize::from_str(&text) {
        Ok(number) => Ok(Some(number).filter(|number| *number > 0)),
        Err(_) => bail!("{name} is {text:?}; set it to a whole number, or unset it"),
    }
}

fn origins(text: &str) -> Vec<String> {
    text.split(',').map(|entry| entry.trim().to_owned()).filter(|e| !e.is_empty()).collect()
}

/// The address in `OLLAMA_HOST`: `[scheme://]host[:port]`, where host and port may be missing.
fn listen_address(text: &str) -> Result<SocketAddr> {
    let (host, port) = host_and_port(text);
    let ip = match host.as_str() {
        "" | "localhost" => Some(Ipv4Addr::LOCALHOST.into()),
        other => other.parse::<IpAddr>().ok(),
    };
    match (ip, port) {
        (Some(ip), Some(port)) => Ok(SocketAddr::new(ip, port)),
        _ => bail!(
            "OLLAMA_HOST is {text:?}; to listen, it must be an IP address such as 127.0.0.1:11434"
        ),
    }
}

/// Host and port of an address as Ollama reads it; no port if that is not a number.
pub(crate) fn host_and_port(text: &str) -> (String, Option<u16>) {
    let (usual, rest) = match text.split_once("://") {
        Some(("http", rest)) => (80, rest),
        Some(("https", rest)) => (443, rest),
        Some((_, rest)) => (super::OLLAMA_PORT, rest),
        None => (super::OLLAMA_PORT, text),
    };
    let rest = rest.split('/').next().unwrap_or_default();
    let is_bare_ipv6 = rest.parse::<std::net::Ipv6Addr>().is_ok();
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !is_bare_ipv6 && !port.ends_with(']') => (host, port.parse().ok()),
        _ => (rest, Some(usual)),
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    (bare.to_owned(), port)
}

/// The address under which other machines probably reach this one, where it listens at all addresses.
pub(super) fn network_address(listens: IpAddr) -> Option<IpAddr> {
    if !listens.is_unspecified() {
        return None;
    }
    // Nothing is sent: the system only says which address it would send from.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|ip| !ip.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_ollama_reads_them() {
        for (text, address) in [
            ("127.0.0.1", "127.0.0.1:11434"),
            ("0.0.0.0:8080", "0.0.0.0:8080"),
            (":8080", "127.0.0.1:8080"),
            ("localhost", "127.0.0.1:11434"),
            ("http://127.0.0.1", "127.0.0.1:80"),
            ("https://0.0.0.0/", "0.0.0.0:443"),
            ("[::1]:8080", "[::1]:8080"),
            ("[::1]", "[::1]:11434"),
            ("::1", "[::1]:11434"),
        ] {
            assert_eq!(listen_address(text).unwrap().to_string(), address, "{text}");
        }
        for text in ["example.org", "127.0.0.1:x", "0.0.0.0:99999"] {
            assert!(listen_address(text).is_err(), "{text}");
        }
        assert_eq!(host_and_port("example.org:1"), ("example.org".into(), Some(1)));
        assert_eq!(origins(" a://b , ,*"), ["a://b", "*"]);
    }
}
