//! Files that change between two reads.

use super::*;
use crate::Change;

/// Opens with the header `was`, reads with the header `now`.
fn change(was: (&'static str, &'static str), now: (&'static str, &'static str)) -> Option<Change> {
    let server = Server::start(move |request| {
        let (name, value) = if request.number == 0 { was } else { now };
        Reply::part(&content(200_000), request).header(name, value)
    });
    let source = open(&server).unwrap();
    match read(&source, 100_000..150_000) {
        Ok(bytes) => {
            assert_eq!(bytes, content(200_000)[100_000..150_000]);
            None
        }
        Err(SourceError::Changed { change, .. }) => Some(change),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn another_etag() {
    let found = change(("ETag", "\"one\""), ("ETag", "\"two\""));
    assert_eq!(found, Some(Change::ETag { was: "\"one\"".into(), now: "\"two\"".into() }));
    assert!(change(("ETag", "W/\"one\""), ("ETag", "W/\"two\"")).is_some());
}

#[test]
fn the_same_etag() {
    assert_eq!(change(("ETag", "\"one\""), ("ETag", "\"one\"")), None);
    assert_eq!(change(("ETag", "\"one\""), ("ETag", "W/\"one\"")), None, "weakened by a proxy");
    assert_eq!(change(("ETag", "\"one\""), ("X-Other", "1")), None, "not repeated");
}

#[test]
fn another_date() {
    let (monday, tuesday) = ("Mon, 01 Jan 2024 00:00:00 GMT", "Tue, 02 Jan 2024 00:00:00 GMT");
    let found = change(("Last-Modified", monday), ("Last-Modified", tuesday));
    assert_eq!(found, Some(Change::LastModified { was: monday.into(), now: tuesday.into() }));
    assert_eq!(change(("Last-Modified", monday), ("Last-Modified", monday)), None);
}

#[test]
fn another_length() {
    let server = Server::start(|request| {
        let len = if request.number == 0 { 200_000 } else { 200_001 };
        Reply::part(&content(len), request)
    });
    let error = read(&open(&server).unwrap(), 100_000..100_001).unwrap_err();
    assert_changed(&error, &Change::Length { was: 200_000, now: 200_001 });
}

#[test]
fn a_shorter_file_without_the_requested_range() {
    let error = read_error(|_, _| Reply::new(416, "").header("Content-Range", "bytes */5"));
    assert_changed(&error, &Change::Length { was: 200_000, now: 5 });
}

#[test]
fn a_strong_etag_is_sent_as_if_range() {
    let server = Server::start(|request| match request.headers.get("if-range") {
        None => Reply::part(&content(200_000), request).header("ETag", "\"one\""),
        Some(tag) => {
            assert_eq!(tag, "\"one\"");
            Reply::new(200, content(200_000)).header("ETag", "\"two\"")
        }
    });
    let error = read(&open(&server).unwrap(), 100_000..150_000).unwrap_err();
    assert_changed(&error, &Change::ETag { was: "\"one\"".into(), now: "\"two\"".into() });
}

#[test]
fn a_whole_file_of_another_length_has_changed() {
    let error = read_error(|_, _| Reply::new(200, content(10)));
    assert_changed(&error, &Change::Length { was: 200_000, now: 10 });
}

#[test]
fn weak_tags_and_dates_are_not_sent_as_conditions() {
    for (name, value) in [("ETag", "W/\"one\""), ("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")]
    {
        let server = Server::start(move |request| {
            Reply::part(&content(200_000), request).header(name, value)
        });
        read(&open(&server).unwrap(), 100_000..150_000).unwrap();
        assert!(server.requests().iter().all(|r| !r.headers.contains_key("if-range")), "{name}");
    }
}

fn assert_changed(error: &SourceError, expected: &Change) {
    assert!(matches!(error, SourceError::Changed { change, .. } if change == expected), "{error}");
}
