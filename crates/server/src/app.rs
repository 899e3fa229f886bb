//! The app: the files the web build made, as part of the program. Debug builds read them from the source tree instead.

use std::borrow::Cow;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use percent_encoding::percent_decode_str;
use rust_embed::RustEmbed;

use crate::{content::none_match, refusal::Refusal};

const PAGE: &str = "index.html";

const NOT_BUILT: &str = "rullama is running, but this program was built without the app.\n\n\
    `cargo xtask run` in rullama's source folder builds both.\n\
    The models of this machine are listed at /rullama/models.\n";

#[derive(RustEmbed)]
#[folder = "../../web/app/dist"]
#[allow_missing = true]
struct Built;

/// A file of the app.
struct Asset {
    bytes: Cow<'static, [u8]>,
    etag: String,
}

/// The answer to a request for `path`.
pub(crate) fn answer(path: &str, headers: &HeaderMap) -> Result<Response, Refusal> {
    find(&built, path, headers)
}

fn built(name: &str) -> Option<Asset> {
    let file = Built::get(name)?;
    let hash = file.metadata.sha256_hash();
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(Asset { bytes: file.data, etag: format!("\"{hex}\"") })
}

fn find(
    get: &dyn Fn(&str) -> Option<Asset>,
    path: &str,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    let missing = || Refusal::not_found("the app has no such file");
    let name =
        percent_decode_str(path.trim_start_matches('/')).decode_utf8().map_err(|_| missing())?;
    let name = if name.is_empty() { PAGE } else { &name };
    if name.split('/').any(|part| part.is_empty() || part.starts_with('.')) || name.contains('\\') {
        return Err(missing());
    }
    if let Some(asset) = get(name) {
        return Ok(send(name, asset, headers));
    }
    let is_view = !name.rsplit('/').next().unwrap_or_default().contains('.');
    if !is_view && name != PAGE {
        return Err(missing());
    }
    match get(PAGE) {
        Some(page) => Ok(send(PAGE, page, headers)),
        None => Ok(not_built()),
    }
}

fn send(name: &str, asset: Asset, headers: &HeaderMap) -> Response {
    // Their names change with their content.
    let cache = if name.starts_with("assets/") {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let caching = [(header::CACHE_CONTROL, cache.to_owned()), (header::ETAG, asset.etag)];
    if none_match(headers, &caching[1].1) {
        return (StatusCode::NOT_MODIFIED, caching).into_response();
    }
    let body = match asset.bytes {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => bytes.into(),
    };
    ([(header::CONTENT_TYPE, kind(name))], caching, Body::from(body)).into_response()
}

fn not_built() -> Response {
    let kinds =
        [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::CACHE_CONTROL, "no-store")];
    (kinds, NOT_BUILT).into_response()
}

/// The media type of a file by its ending.
fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "txt" => "text/plain; charset=utf-8",
        "json" | "map" => "application/json",
        "wasm" => "application/wasm",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiny_app(name: &str) -> Option<Asset> {
        let bytes: &'static [u8] = match name {
            "index.html" => b"<!doctype html>",
            "sw.js" => b"self",
            "app.webmanifest" => b"{}",
            "assets/engine-abc.wasm" => b"\0asm",
            ".env" | "assets/.." => b"secret",
            _ => return None,
        };
        Some(Asset { bytes: bytes.into(), etag: format!("\"{}\"", bytes.len()) })
    }

    fn get(path: &str) -> (u16, String, String) {
        let response = find(&tiny_app, path, &HeaderMap::new()).into_response();
        let text = |name| {
            let value = response.headers().get(name);
            value.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
        };
        (response.status().as_u16(), text(header::CONTENT_TYPE), text(header::CACHE_CONTROL))
    }

    #[test]
    fn files_have_their_types_and_lifetimes() {
        let check = |path: &str, kind: &str, cache: &str| {
            assert_eq!(get(path), (200, kind.into(), cache.into()), "{path}");
        };
        let long = "public, max-age=31536000, immutable";
        check("/", "text/html; charset=utf-8", "no-cache");
        check("/index.html", "text/html; charset=utf-8", "no-cache");
        check("/sw.js", "text/javascript; charset=utf-8", "no-cache");
        check("/app.webmanifest", "application/manifest+json", "no-cache");
        check("/assets/engine-abc.wasm", "application/wasm", long);
        check("/assets/engine%2Dabc.wasm", "application/wasm", long);
        check("/settings/device", "text/html; charset=utf-8", "no-cache");
    }

    #[test]
    fn other_files_are_not_there() {
        for path in [
            "/x.js",
            "/assets/x.wasm",
            "/.env",
            "/%2eenv",
            "/assets/..",
            "/assets/%2e%2e",
            "/../index.html",
            "/assets//x",
            "/a\\b",
            "/%ff",
        ] {
            assert_eq!(get(path).0, 404, "{path}");
        }
    }

    #[test]
    fn what_the_browser_has_is_not_sent_again() {
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, "\"x\", W/\"15\"".parse().unwrap());
        let response = find(&tiny_app, "/", &headers).unwrap();
        assert_eq!(response.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(response.headers()[header::ETAG], "\"15\"");
        assert_eq!(find(&tiny_app, "/sw.js", &headers).unwrap().status(), StatusCode::OK);
    }

    #[test]
    fn without_the_app_the_page_says_how_to_build_it() {
        let none = |_: &str| None;
        for path in ["/", "/index.html", "/chat"] {
            let response = find(&none, path, &HeaderMap::new()).unwrap();
            assert_eq!(response.headers()[header::CONTENT_TYPE], "text/plain; charset=utf-8");
        }
        assert!(find(&none, "/sw.js", &HeaderMap::new()).is_err());
        assert!(NOT_BUILT.contains("cargo xtask run"));
    }
}
