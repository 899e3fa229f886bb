//! Bytes of blobs: whole, in parts, and not again.

use rullama_gguf::{DType, Writer};
use rullama_store::Digest;

use crate::{
    client::Answer,
    running::{Running, weights},
};

/// A server with one blob, its path and its bytes.
fn one_blob() -> (Running, String, Vec<u8>) {
    let server = Running::start();
    let bytes = weights("gemma4", "one");
    let path = server.add("gemma4", &bytes);
    (server, path, bytes)
}

#[track_caller]
fn check_caching(answer: &Answer, bytes: &[u8]) {
    let etag = format!("\"sha256-{}\"", Digest::of(bytes).hex());
    assert_eq!(answer.header("etag"), etag);
    assert_eq!(answer.header("cache-control"), "private, max-age=31536000, immutable");
    assert_eq!(answer.header("accept-ranges"), "bytes");
    assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin");
}

#[test]
fn a_whole_blob() {
    let (server, path, bytes) = one_blob();
    let answer = server.get(&path);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-length"), bytes.len().to_string());
    assert_eq!(answer.header("content-type"), "application/octet-stream");
    assert_eq!(answer.header("content-range"), "");
    check_caching(&answer, &bytes);
    assert_eq!(answer.body, bytes);
    let (start, hex) = path.split_at(path.len() - 64);
    assert_eq!(server.get(&format!("{start}{}", hex.to_uppercase())).body, bytes);
}

#[test]
fn only_the_head() {
    let (server, path, bytes) = one_blob();
    // Ranges are for GET.
    for headers in [&[][..], &[("Range", "bytes=0-0")]] {
        let answer = server.ask("HEAD", &path, headers);
        assert_eq!((answer.status, answer.body.len()), (200, 0));
        assert_eq!(answer.header("content-length"), bytes.len().to_string());
        check_caching(&answer, &bytes);
    }
}

#[test]
fn parts() {
    let (server, path, bytes) = one_blob();
    let len = bytes.len();
    let check = |range: String, want: std::ops::Range<usize>| {
        let answer = server.ask("GET", &path, &[("Range", &range)]);
        assert_eq!(answer.status, 206, "{range}");
        let place = format!("bytes {}-{}/{len}", want.start, want.end - 1);
        assert_eq!(answer.header("content-range"), place);
        assert_eq!(answer.header("content-length"), want.len().to_string());
        check_caching(&answer, &bytes);
        assert_eq!(answer.body, bytes[want], "{range}");
    };
    check("bytes=0-0".into(), 0..1);
    check(format!("bytes={}-{}", len - 1, len - 1), len - 1..len);
    check("bytes=5-10".into(), 5..11);
    check("bytes=7-".into(), 7..len);
    check("bytes=-1".into(), len - 1..len);
    check("bytes=-5".into(), len - 5..len);
    check("bytes=-999999".into(), 0..len);
    check("bytes=3-999999".into(), 3..len);
}

#[test]
fn parts_that_cannot_be_had() {
    let (server, path, bytes) = one_blob();
    let len = bytes.len();
    for range in [
        format!("bytes={len}-"),
        "bytes=-0".into(),
        "bytes=2-1".into(),
        "bytes=0-0,2-3".into(),
        "bytes=x".into(),
    ] {
        let answer = server.ask("GET", &path, &[("Range", &range)]);
        answer.refused(416, "bad_range");
        assert_eq!(answer.header("content-range"), format!("bytes */{len}"), "{range}");
    }
    // A unit nobody knows is no range at all.
    assert_eq!(server.ask("GET", &path, &[("Range", "lines=0-1")]).body, bytes);
}

#[test]
fn what_the_client_has_is_not_sent_again() {
    let (server, path, bytes) = one_blob();
    let etag = format!("\"sha256-{}\"", Digest::of(&bytes).hex());
    for (value, status) in [
        (etag.clone(), 304),
        (format!("W/{etag}"), 304),
        (format!("\"x\", {etag}"), 304),
        ("*".into(), 304),
        ("\"sha256-x\"".into(), 200),
        (etag.replace('"', ""), 200),
    ] {
        let answer = server.ask("GET", &path, &[("If-None-Match", &value)]);
        assert_eq!(answer.status, status, "{value}");
        assert_eq!(answer.body.is_empty(), status == 304);
        check_caching(&answer, &bytes);
    }
    // It goes before a range.
    let both = [("If-None-Match", etag.as_str()), ("Range", "bytes=0-0")];
    assert_eq!(server.ask("GET", &path, &both).status, 304);
}

#[test]
fn a_part_only_of_the_same_file() {
    let (server, path, bytes) = one_blob();
    let etag = format!("\"sha256-{}\"", Digest::of(&bytes).hex());
    let weak = format!("W/{etag}");
    for (value, status) in [
        (etag.as_str(), 206),
        (weak.as_str(), 200),
        ("\"x\"", 200),
        ("Sun, 15 Nov 2026 12:00:00 GMT", 200),
    ] {
        let answer = server.ask("GET", &path, &[("If-Range", value), ("Range", "bytes=1-2")]);
        assert_eq!(answer.status, status, "{value}");
        assert_eq!(answer.body.len(), if status == 206 { 2 } else { bytes.len() });
    }
}

/// Several pieces are read and sent, the last one shorter than the others.
#[test]
fn a_blob_of_several_pieces() {
    let server = Running::start();
    let numbers: Vec<u8> = (0..800_001u32).flat_map(u32::to_le_bytes).collect();
    let file = Writer::new().kv("general.architecture", "gemma4");
    let bytes = file.tensor("x", &[800_001], DType::F32, numbers).finish().unwrap();
    let path = server.add("gemma4", &bytes);
    assert!(server.get(&path).body == bytes);
    let (first, last) = (1_000_000, 3_200_000);
    let range = format!("bytes={first}-{last}");
    assert!(server.ask("GET", &path, &[("Range", &range)]).body == bytes[first..=last]);
}

/// The manifest is still the old one, the bytes are not.
#[test]
fn a_blob_that_was_cut_is_not_sent() {
    let (server, path, bytes) = one_blob();
    assert_eq!(server.get(&path).status, 200);
    std::fs::write(server.store.blob_path(&Digest::of(&bytes)), b"GGUF").unwrap();
    server.get(&path).refused(500, "internal");
    assert!(server.models()[0]["error"].as_str().unwrap().contains("4 bytes"));
    server.get(&path).refused(404, "not_found");
}
