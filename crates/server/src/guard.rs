//! Who may ask: requests to a name of this machine, from our own pages or sites the user allowed.
//!
//! A page of another site can make a browser send requests here. Such requests carry the site's origin; and where its domain was
//! pointed at this machine to look like ours (DNS rebinding), they carry its domain as `Host`. Both are refused.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Uri, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};

use crate::{
    Origin,
    api::{dialect_of, refuse},
    refusal::Refusal,
};
use rullama_api::ApiError;

const OTHER_HOST: &str = "this server accepts requests for localhost and the address it listens on; for another host name, start it with --allowed-host NAME";
const OTHER_SITE: &str = "pages of other sites may not use this server; to allow one, start it with --origin SITE or set OLLAMA_ORIGINS";

/// Schemes of pages inside programs, which no web site can have.
const APP_SCHEMES: [&str; 5] =
    ["app://", "file://", "tauri://", "vscode-webview://", "vscode-file://"];

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Names and sites that are let in.
#[derive(Debug)]
pub(crate) struct Guard {
    pub(crate) address: IpAddr,
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) origins: Vec<Origin>,
    /// Origins that may use the APIs, each with one `*` at most.
    pub(crate) patterns: Vec<String>,
}

/// Names that no public domain has: they cannot be pointed here from outside.
fn is_local_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [".localhost", ".local", ".internal"].iter().any(|end| name.ends_with(end))
}

/// Whether an origin matches an entry of `OLLAMA_ORIGINS`, in which one `*` stands for anything.
fn matches_pattern(pattern: &str, origin: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == origin,
        Some((start, end)) => {
            origin.len() >= start.len() + end.len()
                && origin.starts_with(start)
                && origin.ends_with(end)
        }
    }
}

/// Lets requests pass that mean this machine.
pub(crate) async fn check_host(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    match guard.host(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(_) if dialect_of(request.uri().path()).is_some() => {
            refuse(&request, &ApiError::Forbidden { message: OTHER_HOST.to_owned() })
        }
        Err(refusal) => refusal.into_response(),
    }
}

/// The same for the APIs, whose clients also run on other ports of this machine and inside other programs' windows.
pub(crate) async fn check_api_site(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    if guard.admits_api(request.headers()) {
        return next.run(request).await;
    }
    refuse(&request, &ApiError::Forbidden { message: OTHER_SITE.to_owned() })
}

/// Lets requests pass that come from our own pages, from allowed sites, or from no page at all.
pub(crate) async fn check_site(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    guard.site(request.headers())?;
    Ok(next.run(request).await)
}

impl Guard {
    fn host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().unwrap_or_default(),
            _ => "",
        };
        // Proxies' form of a request names the host a second time.
        let named = [Some(host), uri.authority().map(Authority::as_str)];
        if named.into_iter().flatten().all(|host| self.knows(host)) {
            return Ok(());
        }
        Err(Refusal::forbidden("forbidden_host", OTHER_HOST))
    }

    /// Whether a name, with or without a port, means this machine. Ports may differ: they are forwarded.
    fn knows(&self, host: &str) -> bool {
        let Some(authority) = host.parse::<Authority>().ok().filter(|_| !host.contains('@')) else {
            return false;
        };
        let name = authority.host();
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        match bare.parse::<IpAddr>() {
            // A page reached by an address cannot have come from elsewhere by way of a domain.
            Ok(ip) if ip.is_loopback() || ip == self.address || self.address.is_unspecified() => {
                true
            }
            _ => {
                name.eq_ignore_ascii_case("localhost")
                    || is_local_name(name)
                    || self.allowed_hosts.iter().any(|allowed| {
                        allowed.eq_ignore_ascii_case(name) || allowed.eq_ignore_ascii_case(bare)
                    })
            }
        }
    }

    /// Whether a request to an API comes from a page that may send it, or from no page.
    fn admits_api(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(header::ORIGIN) else {
            let site = headers.get(SEC_FETCH_SITE).map(|site| site.as_bytes());
            return matches!(site, None | Some(b"same-origin" | b"none"));
        };
        self.site(headers).is_ok() || self.allows_api_origin(origin)
    }

    /// Whether pages of another origin may use the APIs: those of this machine, of programs, and of sites the user allowed.
    pub(crate) fn allows_api_origin(&self, origin: &HeaderValue) -> bool {
        let Ok(text) = origin.to_str() else { return false };
        if self.origins.iter().any(|allowed| allowed.value == origin)
            || self.patterns.iter().any(|pattern| matches_pattern(pattern, text))
            || APP_SCHEMES.iter().any(|scheme| text.starts_with(scheme))
        {
            return true;
        }
        let bare = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        let host = bare.and_then(|bare| bare.parse::<Authority>().ok());
        // Compared as a whole: `localhost.example.org` is another machine.
        host.is_some_and(|authority| {
            !authority.as_str().contains('@')
                && matches!(authority.host(), "localhost" | "127.0.0.1" | "0.0.0.0" | "[::1]")
        })
    }

    fn site(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let foreign = || {
            let message = "pages of other sites may not read models; to allow one, start the server with --origin SITE";
            Refusal::forbidden("forbidden_origin", message)
        };
        if let Some(origin) = headers.get(header::ORIGIN) {
            if self.origins.iter().any(|allowed| allowed.value == origin) {
                return Ok(());
            }
            let ours = headers.get(header::HOST).and_then(|host| host.to_str().ok());
            let theirs = origin.to_str().ok().and_then(|origin| {
                origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))
            });
            if theirs.is_none() || theirs != ours {
                return Err(foreign());
            }
        }
        match headers.get(SEC_FETCH_SITE).map(|site| site.as_bytes()) {
            None | Some(b"same-origin" | b"none") => Ok(()),
            Some(_) => Err(foreign()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(address: &str) -> Guard {
        let allowed_hosts = vec!["Box.lan".into(), "fe80::1".into()];
        let origins = vec!["https://example.org".parse().unwrap()];
        let patterns = vec!["chrome-extension://*".into()];
        Guard { address: address.parse().unwrap(), allowed_hosts, origins, patterns }
    }

    #[test]
    fn names_of_this_machine() {
        let local = guard("127.0.0.1");
        for host in [
            "localhost",
            "LOCALHOST:11435",
            "127.0.0.1",
            "127.0.0.1:80",
            "127.1.2.3:9",
            "[::1]:11435",
            "box.lan",
            "BOX.LAN:1",
            "app.localhost",
            "host.docker.internal:11434",
            "Box.local",
            "[fe80::1]:1",
        ] {
            assert!(local.knows(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "localhost.evil",
            "127.0.0.1.evil.example",
            "user@localhost",
            "localhost:11435@evil.example",
            "192.168.1.5",
            "0.0.0.0",
            "[::2]",
            "localhost/",
            "local host",
            ":11435",
        ] {
            assert!(!local.knows(host), "{host}");
        }
    }

    #[test]
    fn addresses_listened_at() {
        let lan = guard("192.168.1.5");
        assert!(lan.knows("192.168.1.5:11435") && !lan.knows("192.168.1.6"));
        let every = guard("0.0.0.0");
        assert!(every.knows("192.168.1.6:1") && every.knows("[fd00::1]:1"));
        assert!(!every.knows("evil.example"));
    }

    #[test]
    fn sites() {
        let check = |origin: Option<&str>, fetch: Option<&str>, fine: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "localhost:11435".parse().unwrap());
            headers.extend(origin.map(|value| (header::ORIGIN, value.parse().unwrap())));
            headers.extend(fetch.map(|value| (SEC_FETCH_SITE, value.parse().unwrap())));
            let result = guard("127.0.0.1").site(&headers);
            assert_eq!(result.is_ok(), fine, "{origin:?} {fetch:?}");
        };
        check(None, None, true);
        check(None, Some("none"), true);
        check(None, Some("same-origin"), true);
        check(Some("http://localhost:11435"), Some("same-origin"), true);
        check(Some("https://localhost:11435"), None, true);
        check(Some("https://example.org"), Some("cross-site"), true);
        check(None, Some("cross-site"), false);
        check(None, Some("same-site"), false);
        check(Some("http://localhost:5173"), Some("same-site"), false);
        check(Some("http://localhost:11435"), Some("cross-site"), false);
        check(Some("http://example.org"), None, false);
        check(Some("https://example.org.evil.example"), None, false);
        check(Some("null"), None, false);
        check(Some(""), None, false);
    }

    #[test]
    fn sites_that_may_use_the_apis() {
        let check = |origin: Option<&str>, fetch: Option<&str>, fine: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "localhost:11434".parse().unwrap());
            headers.extend(origin.map(|value| (header::ORIGIN, value.parse().unwrap())));
            headers.extend(fetch.map(|value| (SEC_FETCH_SITE, value.parse().unwrap())));
            assert_eq!(guard("127.0.0.1").admits_api(&headers), fine, "{origin:?} {fetch:?}");
        };
        for origin in [
            "http://localhost:11434",
            "http://localhost:5173",
            "https://127.0.0.1",
            "http://[::1]:3000",
            "app://obsidian.md",
            "vscode-webview://abc",
            "chrome-extension://abc",
            "https://example.org",
        ] {
            check(Some(origin), Some("cross-site"), true);
        }
        for origin in [
            "https://evil.example",
            "http://localhost.evil.example",
            "http://localhost@evil.example",
            "https://example.org.evil.example",
            "null",
            "",
        ] {
            check(Some(origin), None, false);
        }
        check(None, None, true);
        check(None, Some("cross-site"), false);
        assert!(matches_pattern("*", "https://any.example"));
        assert!(!matches_pattern("ab*ba", "aba"));
    }
}
