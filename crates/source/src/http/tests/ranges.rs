//! Good servers, and servers whose response does not match the request.

use super::*;

#[test]
fn parts_of_a_good_server_are_exact() {
    let file = content(300_000);
    let server = good_head_then(file.clone(), |_, reply| reply);
    let source = open(&server).unwrap();
    assert_eq!(source.len(), 300_000);
    assert_eq!(source.name(), server.url("/model.gguf"));
    assert_eq!(source.resolved_url(), source.name());
    for (start, end) in [(0, 0), (0, 1), (65_535, 65_537), (10, 200_000), (299_999, 300_000)] {
        let bytes = read(&source, start..end).unwrap();
        assert_eq!(bytes, file[start as usize..end as usize], "{start}..{end}");
    }
    let first = &server.requests()[0];
    assert_eq!(first.headers["accept-encoding"], "identity");
    assert!(first.headers["user-agent"].starts_with("rullama/"));
    assert_eq!(server.connections(), 1, "one connection serves all requests");
}

#[test]
fn the_head_is_kept_and_only_the_rest_is_requested() {
    let file = content(200_000);
    let server = good_head_then(file.clone(), |_, reply| reply);
    let source = open(&server).unwrap();
    assert_eq!((source.requests(), source.bytes_fetched()), (1, 65_536));

    assert_eq!(read(&source, 100..65_536).unwrap(), file[100..65_536]);
    assert_eq!(source.requests(), 1, "read from the head");

    assert_eq!(read(&source, 100..70_000).unwrap(), file[100..70_000]);
    assert_eq!((source.requests(), source.bytes_fetched()), (2, 70_000));
    assert_eq!(server.requests()[1].range(), (65_536, 69_999));
}

#[test]
fn a_file_shorter_than_the_head() {
    let server = good_head_then(content(10), |_, reply| reply);
    let source = open(&server).unwrap();
    assert_eq!(source.len(), 10);
    assert_eq!(read(&source, 0..10).unwrap(), content(10));
    assert_eq!((source.requests(), source.bytes_fetched()), (1, 10));
}

#[test]
fn a_huge_file_costs_only_what_is_read() {
    const TOTAL: u64 = 7_000_000_000;
    let server = Server::start(|request| {
        let (first, last) = request.range();
        let body: Vec<u8> = (first..=last).map(|i| byte_at(i as usize)).collect();
        Reply::new(206, body).header("Content-Range", &format!("bytes {first}-{last}/{TOTAL}"))
    });
    let source = open(&server).unwrap();
    assert_eq!(source.len(), TOTAL);
    let end = read(&source, TOTAL - 100..TOTAL).unwrap();
    assert_eq!(end[99], byte_at(TOTAL as usize - 1));
    read(&source, 5_000_000_000..5_000_001_000).unwrap();
    assert_eq!(source.bytes_fetched(), 65_536 + 100 + 1_000);
    assert_eq!(source.requests(), 3);
}

#[test]
fn ranges_outside_are_refused_without_a_request() {
    let server = good_head_then(content(1_000), |_, reply| reply);
    let source = open(&server).unwrap();
    let reversed = Range { start: 3, end: 2 };
    for range in [0..1_001, 1_001..1_001, u64::MAX - 1..u64::MAX, reversed] {
        let error = read(&source, range).unwrap_err();
        assert!(matches!(error, SourceError::OutOfRange { len: 1_000, .. }), "{error}");
    }
    assert_eq!(source.requests(), 1);
}

#[test]
fn a_server_without_ranges_is_refused_without_downloading() {
    let server = Server::start(|_| {
        // The body never arrives.
        Reply::new(200, b"x")
            .header("Content-Length", "7000000000")
            .stall_after(1, Duration::from_secs(5))
    });
    let started = std::time::Instant::now();
    let error = open(&server).unwrap_err();
    assert!(matches!(error, SourceError::NoRanges { .. }), "{error}");
    assert!(started.elapsed() < Duration::from_secs(2), "the body was waited for");
    assert!(error.to_string().contains("download the file"), "{error}");
}

#[test]
fn a_server_that_stops_supporting_ranges_is_an_error() {
    let error = read_error(|_, _| Reply::new(200, content(200_000)));
    assert!(matches!(error, SourceError::NoRanges { .. }), "{error}");
}

#[test]
fn a_web_page_is_called_a_web_page() {
    for kind in ["text/html", "Text/HTML; charset=utf-8", "application/xhtml+xml"] {
        let page =
            move |_: &Request| Reply::new(200, "<html>Sign in</html>").header("Content-Type", kind);
        let error = open_error(page);
        assert!(matches!(error, SourceError::WebPage { .. }), "{kind}: {error}");
        let error = read_error(move |request, _| page(request).header("ETag", "\"page\""));
        assert!(matches!(error, SourceError::WebPage { .. }), "{kind}: {error}");
    }
}

#[test]
fn an_empty_file_is_called_empty() {
    let error = open_error(|_| Reply::new(416, "").header("Content-Range", "bytes */0"));
    assert!(matches!(error, SourceError::Empty { .. }), "{error}");
    let error = open_error(|_| Reply::new(200, ""));
    assert!(matches!(error, SourceError::Empty { .. }), "{error}");
}

#[test]
fn wrong_content_ranges_are_refused() {
    for value in ["bytes 0-49999/200000", "bytes 100000-99999/200000", "bytes 100000-149999/*", "x"]
    {
        let error = read_error(move |_, reply| reply.header("Content-Range", value));
        let SourceError::WrongRange { start: 100_000, end: 150_000, content_range, .. } = error
        else {
            panic!("{value}: {error}")
        };
        assert_eq!(content_range.as_deref(), Some(value));
    }
    let error = read_error(|_, reply| reply.without("Content-Range"));
    assert!(matches!(error, SourceError::WrongRange { content_range: None, .. }), "{error}");
    assert!(error.to_string().contains("missing"), "{error}");

    let file = content(1_000);
    let error = open_error(move |r| Reply::part(&file, r).header("Content-Range", "bytes 1-9/10"));
    assert!(matches!(error, SourceError::WrongRange { start: 0, .. }), "{error}");
}

#[test]
fn more_bytes_than_announced_are_refused() {
    let long = |request: &Request| {
        let (first, last) = request.range();
        let body = content((last - first + 2) as usize);
        Reply::new(206, body).header("Content-Range", &format!("bytes {first}-{last}/200000"))
    };
    let error = open_error(long);
    assert!(matches!(error, SourceError::TooManyBytes { expected: 65_536, .. }), "{error}");
    let error = read_error(move |request, _| long(request));
    assert!(matches!(error, SourceError::TooManyBytes { expected: 50_000, .. }), "{error}");
}

#[test]
fn compressed_responses_are_refused() {
    let error = read_error(|_, reply| reply.header("Content-Encoding", "gzip"));
    assert!(
        matches!(&error, SourceError::Encoded { encoding, .. } if encoding == "gzip"),
        "{error}"
    );

    let file = content(1_000);
    let plain = move |r: &Request| Reply::part(&file, r).header("Content-Encoding", "identity");
    assert_eq!(open(&Server::start(plain)).unwrap().len(), 1_000);
}

#[test]
fn a_chunked_response_is_accepted() {
    let server = good_head_then(content(200_000), |request, reply| {
        let (first, last) = request.range();
        let mut body = Vec::new();
        for chunk in content(200_000)[first as usize..=last as usize].chunks(20_000) {
            body.extend(format!("{:x}\r\n", chunk.len()).bytes());
            body.extend(chunk);
            body.extend(b"\r\n");
        }
        body.extend(b"0\r\n\r\n");
        reply.body(body).without("Content-Length").header("Transfer-Encoding", "chunked")
    });
    let source = open(&server).unwrap();
    assert_eq!(read(&source, 100_000..150_001).unwrap(), content(200_000)[100_000..150_001]);
}

#[test]
fn refusals_carry_their_status() {
    for status in [401, 403, 404, 416, 418, 204, 304] {
        let server = Server::start(move |_| Reply::new(status, "no"));
        let error = open(&server).unwrap_err();
        assert!(
            matches!(error, SourceError::Status { status: s, .. } if s == status),
            "{status}: {error}"
        );
        assert_eq!(server.requests().len(), 1, "{status} is not retried");
        let error = read_error(move |_, _| Reply::new(status, "no"));
        assert!(matches!(error, SourceError::Status { status: s, .. } if s == status), "{error}");
    }
}

#[test]
fn responses_that_are_not_http_are_refused() {
    let error = open_error(|_| Reply::new(206, "").header("Content-Length", "many"));
    assert!(matches!(error, SourceError::BadResponse { .. }), "{error}");
    let error = open_error(|_| Reply::new(206, "").header("Filler", &"x".repeat(100_000)));
    assert!(matches!(error, SourceError::BadResponse { .. }), "{error}");
}
