//! Who is let in, and the headers everybody gets.

use crate::running::{Running, weights};

const PATHS: [&str; 3] = ["/rullama/models", "/rullama/nothing", "/api/tags"];

#[test]
fn forged_hosts_are_refused_everywhere() {
    let server = Running::with(|options| options.allowed_hosts = vec!["box.lan".into()]);
    let blob = server.add("gemma4", &weights("gemma4", "a"));
    for path in ["/", "/api/version", "/rullama/models", &blob] {
        for host in
            ["evil.example", "evil.example:11435", "localhost.evil.example", "", "192.168.7.7"]
        {
            server.ask("GET", path, &[("Host", host)]).refused(403, "forbidden_host");
        }
        for host in ["localhost", "127.0.0.1:1", "[::1]:11435", "box.lan", "Box.LAN:80"] {
            assert_eq!(server.ask("GET", path, &[("Host", host)]).status, 200, "{path} {host}");
        }
        let two = [("Host", "localhost"), ("Host", "evil.example")];
        let status = server.ask("GET", path, &two).status;
        assert!(status == 400 || status == 403, "{status}");
    }
    let proxied = server.ask("GET", "http://evil.example/api/version", &[("Host", "localhost")]);
    proxied.refused(403, "forbidden_host");
}

#[test]
fn other_sites_are_refused() {
    let server = Running::start();
    let blob = server.add("gemma4", &weights("gemma4", "a"));
    let own = format!("http://{}", server.address);
    let paths = PATHS.into_iter().chain([blob.as_str()]);
    for path in paths {
        for headers in [
            &[("Origin", "https://evil.example")][..],
            &[("Origin", "null")],
            &[("Origin", "http://localhost.evil.example")],
            &[("Sec-Fetch-Site", "cross-site")],
            &[("Sec-Fetch-Site", "same-site")],
        ] {
            let answer = server.ask("GET", path, headers);
            answer.refused(403, "forbidden_origin");
            assert_eq!(answer.header("access-control-allow-origin"), "");
        }
        for headers in [
            &[][..],
            &[("Origin", own.as_str())],
            &[("Origin", own.as_str()), ("Sec-Fetch-Site", "same-origin")],
            &[("Sec-Fetch-Site", "none")],
        ] {
            let answer = server.ask("GET", path, headers);
            assert_ne!(answer.status, 403, "{path} {headers:?}");
        }
    }
    // Other ports of this machine may use the APIs, but not read the models' files.
    let neighbour = [("Origin", "http://localhost:5173")];
    server.ask("GET", &blob, &neighbour).refused(403, "forbidden_origin");
    let answer = server.ask("GET", "/api/tags", &neighbour);
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (200, neighbour[0].1)
    );
    let forged = [("Origin", own.as_str()), ("Sec-Fetch-Site", "cross-site")];
    server.ask("GET", &blob, &forged).refused(403, "forbidden_origin");
    // Links to the app may be anywhere.
    assert_eq!(server.ask("GET", "/", &[("Sec-Fetch-Site", "cross-site")]).status, 200);
}

#[test]
fn sites_the_user_allowed() {
    let server = Running::with(|options| {
        options.origins = vec![
            "https://chat.example/".parse().unwrap(),
            "http://localhost:5173".parse().unwrap(),
        ];
    });
    let blob = server.add("gemma4", &weights("gemma4", "a"));
    for origin in ["https://chat.example", "http://localhost:5173"] {
        let headers =
            [("Origin", origin), ("Sec-Fetch-Site", "cross-site"), ("Range", "bytes=0-3")];
        let answer = server.ask("GET", &blob, &headers);
        assert_eq!((answer.status, answer.body.as_slice()), (206, &b"GGUF"[..]));
        assert_eq!(answer.header("access-control-allow-origin"), origin);
        assert!(answer.header("vary").contains("origin"));
        assert!(answer.header("access-control-expose-headers").contains("content-range"));

        let preflight = server.ask(
            "OPTIONS",
            &blob,
            &[
                ("Origin", origin),
                ("Access-Control-Request-Method", "GET"),
                ("Access-Control-Request-Headers", "range"),
                ("Access-Control-Request-Private-Network", "true"),
            ],
        );
        assert_eq!(preflight.status, 200);
        assert_eq!(preflight.header("access-control-allow-origin"), origin);
        assert!(preflight.header("access-control-allow-headers").contains("range"));
        assert_eq!(preflight.header("access-control-allow-private-network"), "true");
        assert_eq!(preflight.header("access-control-allow-credentials"), "");
    }
    for origin in
        ["https://evil.example", "https://chat.example.evil.example", "http://chat.example"]
    {
        for method in ["GET", "OPTIONS"] {
            server.ask(method, &blob, &[("Origin", origin)]).refused(403, "forbidden_origin");
        }
    }
    // An image or script of the allowed site's page has no origin; it is not let in.
    let embedded = server.ask("GET", &blob, &[("Sec-Fetch-Site", "cross-site")]);
    embedded.refused(403, "forbidden_origin");
}

#[test]
fn preflights_without_allowed_sites_get_nothing() {
    let server = Running::start();
    let own = format!("http://{}", server.address);
    let answer = server.ask("OPTIONS", "/rullama/models", &[("Origin", &own)]);
    answer.refused(405, "method_not_allowed");
}

#[test]
fn nothing_can_be_written() {
    let server = Running::start();
    for path in ["/", "/rullama/models", "/rullama/blobs/x"] {
        for method in ["POST", "PUT", "DELETE", "PATCH"] {
            let answer = server.ask(method, path, &[("Content-Length", "0")]);
            answer.refused(405, "method_not_allowed");
            assert!(answer.header("allow").contains("GET"), "{}", answer.header("allow"));
        }
    }
    server.ask("POST", "/api/tags", &[("Content-Length", "0")]).refused(405, "");
    server.ask("GET", "/api/nothing", &[]).refused(404, "");
}

#[test]
fn every_answer_is_isolated() {
    let server = Running::start();
    let blob = server.add("gemma4", &weights("gemma4", "a"));
    for path in ["/", "/x.js", "/api/version", "/api/nothing", "/rullama/models", &blob] {
        for headers in [&[][..], &[("Host", "evil.example")], &[("Range", "bytes=9999999-")]] {
            let answer = server.ask("GET", path, headers);
            for (name, value) in [
                ("cross-origin-opener-policy", "same-origin"),
                ("cross-origin-embedder-policy", "require-corp"),
                ("cross-origin-resource-policy", "same-origin"),
                ("x-content-type-options", "nosniff"),
                ("referrer-policy", "no-referrer"),
            ] {
                assert_eq!(answer.header(name), value, "{path} {headers:?}");
            }
            let is_page = answer.header("content-type").starts_with("text/html");
            let policy = answer.header("content-security-policy");
            assert_eq!(
                policy
                    .contains("default-src 'none'; script-src 'self' 'wasm-unsafe-eval' 'sha256-"),
                is_page
            );
        }
    }
}
