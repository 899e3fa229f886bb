//! Redirects.

use super::*;

fn to(location: &str) -> Reply {
    Reply::new(302, "moved").header("Location", location)
}

#[test]
fn redirects_are_followed_and_remembered() {
    let server = Server::start(|request| match request.path.as_str() {
        "/model.gguf" => to("/second?x=1"),
        "/second?x=1" => to("../third"),
        _ => Reply::part(&content(200_000), request),
    });
    let source = open(&server).unwrap();
    assert_eq!(source.name(), server.url("/model.gguf"));
    assert_eq!(source.resolved_url(), server.url("/third"));
    assert_eq!(read(&source, 100_000..100_009).unwrap(), content(200_000)[100_000..100_009]);
    assert_eq!(source.requests(), 4, "the second read uses the resolved URL");
}

#[test]
fn redirects_to_another_server_are_followed() {
    let other = good_head_then(content(100), |_, reply| reply);
    let target = other.url("/file");
    let server = Server::start(move |_| to(&target));
    let source = open(&server).unwrap();
    assert_eq!(read(&source, 0..100).unwrap(), content(100));
}

#[test]
fn an_expired_redirect_is_resolved_again() {
    for status in [401, 403, 404, 410] {
        let server = Server::start(move |request| match request.path.as_str() {
            "/model.gguf" if request.number < 2 => to("/signed-1"),
            "/model.gguf" => to("/signed-2"),
            "/signed-1" if request.number > 1 => Reply::new(status, "expired"),
            _ => Reply::part(&content(200_000), request),
        });
        let source = open(&server).unwrap();
        assert_eq!(read(&source, 100_000..100_009).unwrap(), content(200_000)[100_000..100_009]);
        assert_eq!(source.resolved_url(), server.url("/signed-2"));
    }
}

#[test]
fn loops_end() {
    let server = Server::start(|_| to("/model.gguf"));
    let error = open(&server).unwrap_err();
    assert!(matches!(error, SourceError::TooManyRedirects { limit: 10, .. }), "{error}");
    assert_eq!(server.requests().len(), 11);
}

#[test]
fn the_body_of_a_redirect_is_not_downloaded() {
    let server = Server::start(|request| match request.path.as_str() {
        "/model.gguf" => to("/file")
            .header("Content-Length", "7000000000")
            .stall_after(1, Duration::from_secs(5)),
        _ => Reply::part(&content(100), request),
    });
    let started = std::time::Instant::now();
    open(&server).unwrap();
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[test]
fn redirects_to_other_protocols_are_refused() {
    for location in ["file:///etc/passwd", "ftp://host/x", "", "http://", "a b"] {
        let error = open_error(move |_| to(location));
        assert!(
            matches!(&error, SourceError::BadRedirect { location: l, .. } if l == location),
            "{location}: {error}"
        );
    }
    let error = open_error(|_| Reply::new(301, "").without("Location"));
    assert!(matches!(error, SourceError::BadRedirect { .. }), "{error}");
}

#[test]
fn urls_of_other_protocols_are_refused() {
    for url in ["file:///etc/passwd", "ftp://host/file", "model.gguf", "", "http://", "//host/x"] {
        let error = HttpSource::open(url, short_timeouts()).unwrap_err();
        assert!(matches!(error, SourceError::BadUrl { .. }), "{url}: {error}");
    }
}

#[test]
fn logins_stay_out_of_messages() {
    let server = Server::start(|request| {
        assert_eq!(request.headers["authorization"], "Basic bWU6c2VjcmV0");
        Reply::new(404, "")
    });
    let url = server.url("/x").replace("http://", "http://me:secret@");
    let error = HttpSource::open(&url, short_timeouts()).unwrap_err();
    assert!(matches!(error, SourceError::Status { status: 404, .. }), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
}
