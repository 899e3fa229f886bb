//! Who may ask: requests to a name of this machine, from our own pages or sites the user allowed.
//!
//! A page of another site can make a browser send requests here. Such requests carry the site's origin; and where its domain was
//! pointed at this machine to look like ours (DNS rebinding), they carry its domain as `Host`. Both are refused.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, Uri, header, uri::Authority},
    middleware::Next,
    response::Response,
};

use crate::{Origin, refusal::Refusal};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Names and sites that are let in.
#[derive(Debug)]
pub(crate) struct Guard {
    pub(crate) address: IpAddr,
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) origins: Vec<Origin>,
}

/// Lets requests pass that mean this machine.
pub(crate) async fn check_host(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    guard.host(request.uri(), request.headers())?;
    Ok(next.run(request).await)
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
        let message = "this server accepts requests for localhost and the address it listens on; for another host name, start it with --allowed-host NAME";
        Err(Refusal::forbidden("forbidden_host", message))
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
                    || self.allowed_hosts.iter().any(|allowed| {
                        allowed.eq_ignore_ascii_case(name) || allowed.eq_ignore_ascii_case(bare)
                    })
            }
        }
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
        Guard { address: address.parse().unwrap(), allowed_hosts, origins }
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
            "[fe80::1]:1",
        ] {
            assert!(local.knows(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "evil.localhost",
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
}
