//! Lost connections, stalls and busy servers.

use super::*;

#[test]
fn a_lost_connection_is_resumed_at_the_same_byte() {
    let server = good_head_then(content(200_000), |request, reply| {
        if request.number == 1 { reply.cut_after(7) } else { reply }
    });
    let source = open(&server).unwrap();
    assert_eq!(read(&source, 100_000..150_000).unwrap(), content(200_000)[100_000..150_000]);
    assert_eq!(server.requests()[2].range(), (100_007, 149_999));
    assert_eq!(source.bytes_fetched(), 65_536 + 50_000, "nothing was received twice");
}

#[test]
fn a_connection_that_is_always_lost_is_given_up() {
    let server = good_head_then(content(200_000), |_, reply| reply.cut_after(10));
    let source = open(&server).unwrap();
    let error = read(&source, 100_000..150_000).unwrap_err();
    assert!(
        matches!(
            error,
            SourceError::ConnectionLost { received: 40, expected: 50_000, attempts: 4, .. }
        ),
        "{error}"
    );
    assert_eq!(source.requests(), 1 + 4);
}

#[test]
fn a_connection_closed_without_a_response_is_lost() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let error = HttpSource::open(&url, short_timeouts()).unwrap_err();
    assert!(
        matches!(error, SourceError::ConnectionLost { received: 0, attempts: 4, .. }),
        "{error}"
    );
}

#[test]
fn an_incomplete_head_is_completed_by_the_next_read() {
    let file = content(200_000);
    let server = Server::start(move |request| {
        let reply = Reply::part(&file, request);
        if request.number == 0 { reply.cut_after(1_000) } else { reply }
    });
    let source = open(&server).unwrap();
    assert_eq!(source.bytes_fetched(), 1_000);
    assert_eq!(read(&source, 0..50_000).unwrap(), content(50_000));
    assert_eq!(server.requests()[1].range(), (1_000, 49_999));
}

#[test]
fn a_shorter_part_than_requested_is_continued() {
    let server = good_head_then(content(200_000), |request, reply| {
        if request.number > 1 {
            return reply;
        }
        let (first, _) = request.range();
        let body = &content(200_000)[first as usize..first as usize + 100];
        let value = format!("bytes {first}-{}/200000", first + 99);
        Reply::new(206, body).header("Content-Range", &value)
    });
    let source = open(&server).unwrap();
    assert_eq!(read(&source, 100_000..100_300).unwrap(), content(200_000)[100_000..100_300]);
    assert_eq!(server.requests()[2].range(), (100_100, 100_299));
}

/// Longer than any client of these tests waits.
const LONG: Duration = Duration::from_secs(3);

#[test]
fn a_stall_is_noticed_and_resumed() {
    let server = good_head_then(content(200_000), move |request, reply| {
        if request.range().0 == 100_000 { reply.stall_after(5, LONG) } else { reply }
    });
    let options = HttpOptions { stall: Duration::from_millis(250), ..short_timeouts() };
    let source = HttpSource::open(&server.url("/"), options).unwrap();
    assert_eq!(read(&source, 100_000..100_010).unwrap(), content(200_000)[100_000..100_010]);
    assert_eq!(server.requests().last().unwrap().range(), (100_005, 100_009));
}

#[test]
fn endless_stalls_are_given_up() {
    let stall = Duration::from_millis(250);
    let server = good_head_then(content(200_000), |_, reply| reply.stall_after(5, LONG));
    let options = HttpOptions { stall, attempts: 2, ..short_timeouts() };
    let source = HttpSource::open(&server.url("/"), options.clone()).unwrap();
    let error = read(&source, 100_000..150_000).unwrap_err();
    assert!(
        matches!(error, SourceError::Stalled { timeout, attempts: 2, .. } if timeout == stall),
        "{error}"
    );

    // A server that accepts connections and sends nothing.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let error = HttpSource::open(&url, options).unwrap_err();
    assert!(matches!(error, SourceError::Stalled { attempts: 2, .. }), "{error}");
}

#[test]
fn an_announced_length_allocates_no_memory() {
    const TOTAL: u64 = u64::MAX;
    let server = Server::start(|request| {
        let (first, last) = request.range();
        Reply::new(206, content(1_000))
            .header("Content-Length", &(last - first + 1).to_string())
            .header("Content-Range", &format!("bytes {first}-{last}/{TOTAL}"))
            .cut_after(1_000)
    });
    let source = open(&server).unwrap();
    let error = read(&source, 0..TOTAL).unwrap_err();
    assert!(matches!(error, SourceError::ConnectionLost { received: 5_000, .. }), "{error}");
}

#[test]
fn server_errors_are_retried() {
    for status in [500, 502, 503, 429, 408] {
        let file = content(100);
        let server = Server::start(move |request| {
            if request.number == 0 { Reply::new(status, "?") } else { Reply::part(&file, request) }
        });
        let source = open(&server).unwrap();
        assert_eq!(read(&source, 0..100).unwrap(), content(100));
        assert_eq!(source.requests(), 2);
    }
}

#[test]
fn a_persistent_server_error_is_reported_with_its_status() {
    let server = Server::start(|_| Reply::new(503, "tired"));
    let error = open(&server).unwrap_err();
    assert!(matches!(error, SourceError::Status { status: 503, .. }), "{error}");
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn a_refused_connection_is_unreachable() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error =
        HttpSource::open(&format!("http://127.0.0.1:{port}/"), short_timeouts()).unwrap_err();
    assert!(matches!(error, SourceError::Unreachable { attempts: 4, .. }), "{error}");
}

#[test]
fn zero_attempts_mean_one() {
    let server = Server::start(|_| Reply::new(500, ""));
    let options = HttpOptions { attempts: 0, ..short_timeouts() };
    assert!(HttpSource::open(&server.url("/"), options).is_err());
    assert_eq!(server.requests().len(), 1);
}
