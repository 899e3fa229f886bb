//! Response headers that pulling depends on.

use std::ops::Range;

use rullama_store::Digest;
use ureq::http::{HeaderMap, HeaderName};

/// A header as text.
pub(crate) fn text(headers: &HeaderMap, name: impl Into<HeaderName>) -> Option<&str> {
    headers.get(name.into())?.to_str().ok().map(str::trim)
}

/// A number of digits only.
pub(crate) fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Whether `Content-Range` announces `range` of a file of `total` bytes. It may end earlier: the rest is then requested
/// again.
pub(crate) fn announces(content_range: &str, range: &Range<u64>, total: u64) -> bool {
    let parsed = || {
        let (unit, rest) = content_range.trim().split_once(' ')?;
        let (bounds, whole) = rest.trim().split_once('/')?;
        let (first, last) = bounds.split_once('-')?;
        let whole_fits = whole == "*" || number(whole)? == total;
        let (first, last) = (number(first)?, number(last)?);
        let bounds_fit = first == range.start && first <= last && last < range.end;
        Some(unit.eq_ignore_ascii_case("bytes") && whole_fits && bounds_fit)
    };
    parsed().unwrap_or(false)
}

/// A `WWW-Authenticate: Bearer` challenge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Challenge {
    pub(crate) realm: String,
    pub(crate) service: Option<String>,
    pub(crate) scope: Option<String>,
}

impl Challenge {
    /// Parses `Bearer realm="…",service="…",scope="…"`, in any order; the realm is required.
    pub(crate) fn parse(header: &str) -> Option<Self> {
        let (scheme, mut rest) = header.trim().split_once(char::is_whitespace)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let mut challenge = Self::default();
        loop {
            rest = rest.trim_start_matches([' ', '\t', ',']);
            if rest.is_empty() {
                break;
            }
            let (key, after) = rest.split_once('=')?;
            let value;
            (value, rest) = match after.strip_prefix('"') {
                Some(quoted) => unquote(quoted)?,
                None => {
                    let end = after.find(',').unwrap_or(after.len());
                    (after[..end].trim().to_owned(), &after[end..])
                }
            };
            match key.trim().to_ascii_lowercase().as_str() {
                "realm" => challenge.realm = value,
                "service" => challenge.service = Some(value),
                "scope" => challenge.scope = Some(value),
                _ => {}
            }
        }
        (!challenge.realm.is_empty()).then_some(challenge)
    }
}

/// The text up to the closing quote, and the rest.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            _ => value.push(c),
        }
    }
    None
}

/// The SHA-256 in an ETag of Hugging Face, if it is one.
pub(crate) fn etag_digest(etag: &str) -> Option<Digest> {
    let bare = etag.trim().trim_start_matches("W/").trim_matches('"');
    Digest::parse(&format!("sha256:{bare}"))
}

/// The address of the next page in a `Link` header.
pub(crate) fn next_link(link: &str) -> Option<&str> {
    link.split(',').find_map(|entry| {
        let (address, attributes) = entry.trim().strip_prefix('<')?.split_once('>')?;
        let next = |attribute: &str| matches!(attribute.trim(), r#"rel="next""# | "rel=next");
        attributes.split(';').any(next).then_some(address)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_must_match_the_request() {
        for (header, fits) in [
            ("bytes 10-19/100", true),
            ("Bytes 10-19/*", true),
            ("bytes 10-15/100", true),
            ("bytes 10-20/100", false),
            ("bytes 9-19/100", false),
            ("bytes 0-99/100", false),
            ("bytes 10-19/101", false),
            ("bytes 10-9/100", false),
            ("bytes */100", false),
            ("bytes 10-19", false),
            ("lines 10-19/100", false),
            ("bytes +10-19/100", false),
            ("", false),
        ] {
            assert_eq!(announces(header, &(10..20), 100), fits, "{header}");
        }
    }

    #[test]
    fn challenges() {
        let challenge = Challenge::parse(
            r#"Bearer realm="https://host/token?a=b,c",service="host", scope="repository:x:pull",error=x"#,
        );
        assert_eq!(
            challenge,
            Some(Challenge {
                realm: "https://host/token?a=b,c".into(),
                service: Some("host".into()),
                scope: Some("repository:x:pull".into()),
            })
        );
        let escaped = Challenge::parse(r#"bearer realm="a\"b""#).unwrap();
        assert_eq!(escaped.realm, "a\"b");
        for bad in ["", "Bearer", "Basic realm=\"x\"", "Bearer service=\"x\"", "Bearer realm=\"x"] {
            assert_eq!(Challenge::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn tags_and_links() {
        let hex = "a".repeat(64);
        for tag in [hex.clone(), format!("\"{hex}\""), format!("W/\"{hex}\"")] {
            assert_eq!(etag_digest(&tag).unwrap().hex(), hex);
        }
        assert!(etag_digest("\"0123\"").is_none());
        assert_eq!(next_link(r#"<https://h/x?c=1>; rel="next""#), Some("https://h/x?c=1"));
        assert_eq!(
            next_link(r#"<https://h/x>; rel="prev", <https://h/y>; rel="next""#),
            Some("https://h/y")
        );
        assert_eq!(next_link("<https://h/x>; rel=\"prev\""), None);
    }

    proptest! {
        #[test]
        fn any_header_is_parsed_or_rejected(header in ".{0,80}", quoted in "[^\"\\\\]{1,40}") {
            announces(&header, &(0..10), 10);
            Challenge::parse(&header);
            Challenge::parse(&format!("Bearer {header}"));
            etag_digest(&header);
            next_link(&header);
            let challenge = Challenge::parse(&format!("Bearer scope=\"{quoted}\",realm=\"{quoted}\""));
            prop_assert_eq!(challenge.unwrap().realm, quoted);
        }

        #[test]
        fn only_exact_ranges_are_accepted(first in 0u64..50, last in 0u64..50, total in 0u64..50) {
            let accepted = announces(&format!("bytes {first}-{last}/{total}"), &(10..20), 40);
            let right = first == 10 && (10..20).contains(&last) && total == 40;
            prop_assert_eq!(accepted, right);
        }
    }
}
