//! URLs: which are accepted, and the targets of redirects.

use ureq::http::Uri;

/// `url` as an http or https URI with a host.
pub fn web_address(url: &str) -> Option<Uri> {
    let uri: Uri = url.trim().parse().ok()?;
    let web = matches!(uri.scheme_str(), Some("http" | "https"));
    (web && uri.host().is_some_and(|host| !host.is_empty())).then_some(uri)
}

/// `url` without user name and password, for messages.
pub(super) fn without_login(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.into() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => url.into(),
    }
}

/// The target of a `Location` header relative to `base`. `None` if it is not http(s), or http while `base` is https.
pub fn follow(base: &Uri, location: &str) -> Option<Uri> {
    let location = location.split('#').next().unwrap_or_default().trim();
    if location.is_empty() {
        return None;
    }
    let scheme = base.scheme_str()?;
    let authority = base.authority()?.as_str();
    let absolute = if has_scheme(location) {
        location.to_owned()
    } else if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else {
        format!("{scheme}://{authority}{}", path_from(base.path(), location))
    };
    let next = web_address(&absolute)?;
    let downgraded = scheme == "https" && next.scheme_str() != Some("https");
    (!downgraded).then_some(next)
}

/// Whether the first separator in `location` is the colon after a scheme.
fn has_scheme(location: &str) -> bool {
    location.find([':', '/', '?']).is_some_and(|at| location.as_bytes()[at] == b':')
}

/// A relative reference without authority, resolved against the path `base`.
fn path_from(base: &str, location: &str) -> String {
    let (path, query) = match location.find('?') {
        Some(at) => location.split_at(at),
        None => (location, ""),
    };
    let folder = base.rfind('/').map_or("/", |at| &base[..=at]);
    let joined = match path {
        "" => return format!("{base}{query}"),
        _ if path.starts_with('/') => path.to_owned(),
        _ => format!("{folder}{path}"),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.split('/').skip(1) {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    let slash = if joined.ends_with("/.") || joined.ends_with("/..") { "/" } else { "" };
    format!("/{}{slash}{query}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{follow, web_address, without_login};

    #[test]
    fn urls() {
        for fine in ["http://a", "https://a.b/c?d", "HTTP://a:80/", "http://[::1]:8080/x"] {
            assert!(web_address(fine).is_some(), "{fine}");
        }
        for bad in
            ["", "a", "/a/b", "file:///a", "ftp://a/b", "http://", "http:///x", "http://a b/"]
        {
            assert!(web_address(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn logins_are_not_shown() {
        for (url, shown) in [
            ("https://me:secret@host/x@y", "https://host/x@y"),
            ("https://me@host", "https://host"),
            ("https://host/x@y", "https://host/x@y"),
            ("https://host?u=a@b", "https://host?u=a@b"),
            ("not a url", "not a url"),
        ] {
            assert_eq!(without_login(url), shown);
        }
    }

    #[test]
    fn redirects() {
        let base = "https://host:8443/a/b?q=1".parse().unwrap();
        for (location, to) in [
            ("https://other/x?y=1#part", "https://other/x?y=1"),
            ("//other/x", "https://other/x"),
            ("/x", "https://host:8443/x"),
            ("x", "https://host:8443/a/x"),
            ("./x/../y", "https://host:8443/a/y"),
            ("../../../x", "https://host:8443/x"),
            ("x/..", "https://host:8443/a/"),
            ("x/?a:b/c", "https://host:8443/a/x/?a:b/c"),
            ("?z=2", "https://host:8443/a/b?z=2"),
        ] {
            assert_eq!(follow(&base, location).unwrap(), to, "{location}");
        }
        for location in
            ["", "#part", "http://host/x", "ftp://host/x", "file:///etc/x", "https://", "a b"]
        {
            assert!(follow(&base, location).is_none(), "{location}");
        }
        let plain = "http://host/a".parse().unwrap();
        assert_eq!(follow(&plain, "https://host/a").unwrap(), "https://host/a");
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(url in ".*", location in "(.|[/.:?#@]){0,20}") {
            without_login(&url);
            web_address(&url);
            let base = "http://host/a/b".parse().unwrap();
            if let Some(next) = follow(&base, &location) {
                prop_assert!(web_address(&next.to_string()).is_some());
                prop_assert!(!next.path().split('/').any(|part| part == ".."), "{next}");
            }
        }
    }
}
