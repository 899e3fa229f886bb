//! Keys, https, and addresses that other machines can reach.

use std::time::Duration;

use rullama_server::{ApiKeys, Options, Server, ServerError, Tls};
use serde_json::json;

use crate::{generation::with_engine, running::weights};

const KEY: &str = "sk-0123456789abcdef";

#[test]
fn keys_are_demanded_in_each_api() {
    let mut keys = ApiKeys::default();
    keys.add(KEY).unwrap();
    let (server, _) = with_engine(|options| options.keys = keys);
    let blob = server.add("gemma4", &weights("gemma4", "a"));
    let bearer = format!("Bearer {KEY}");
    for (path, kind) in [
        ("/api/tags", None),
        ("/v1/models", Some("authentication_error")),
        ("/v1/messages", Some("authentication_error")),
        ("/metrics", Some("authentication_error")),
    ] {
        for headers in [&[][..], &[("Authorization", "Bearer sk-wrong")], &[("x-api-key", "")]] {
            let answer = server.ask("GET", path, headers);
            assert_eq!(answer.status, 401, "{path}");
            let error = answer.json()["error"].clone();
            assert_eq!(error["type"].as_str(), kind);
        }
        for headers in [("Authorization", bearer.as_str()), ("x-api-key", KEY)] {
            assert_ne!(server.ask("GET", path, &[headers]).status, 401, "{path}");
        }
    }
    for path in ["/rullama/models", &blob] {
        let answer = server.ask("GET", path, &[]);
        assert_eq!(
            (answer.status, answer.header("www-authenticate")),
            (401, "Basic realm=\"rullama\"")
        );
        // `me:` and the key, as a browser sends them.
        let basic = "Basic bWU6c2stMDEyMzQ1Njc4OWFiY2RlZg==";
        assert_eq!(server.ask("GET", path, &[("Authorization", basic)]).status, 200);
    }
    for path in ["/", "/health", "/v1/health"] {
        assert_eq!(server.get(path).status, 200, "{path} is public");
    }
}

#[test]
fn other_machines_need_a_word() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let bind = |change: &dyn Fn(&mut Options)| {
        let mut options = Options::new("0.0.0.0:0".parse().unwrap());
        change(&mut options);
        runtime.block_on(Server::bind(options))
    };
    let error = bind(&|_| {}).unwrap_err();
    assert!(matches!(error, ServerError::Unprotected { .. }));
    for word in ["--api-key", "--api-key-file", "--open-to-network"] {
        assert!(error.to_string().contains(word));
    }
    bind(&|options| options.open_to_network = true).unwrap();
    bind(&|options| options.keys.add(KEY).unwrap()).unwrap();
}

#[test]
fn https() {
    let (server, _) = with_engine(|options| {
        options.tls = Some(Tls::SelfSigned { names: vec!["box.local".into()] });
        options.limits.head = Duration::from_secs(5);
    });
    let tls = ureq::tls::TlsConfig::builder().disable_verification(true).build();
    let agent: ureq::Agent = ureq::Agent::config_builder().tls_config(tls).build().into();
    let url = format!("https://{}/v1/chat/completions", server.address);
    let messages = json!([{ "role": "user", "content": "hello there" }]);
    let request = json!({ "model": "gemma4", "messages": messages, "stream": true });
    let mut answer = agent.post(&url).send(request.to_string()).unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    assert!(text.contains("hello ") && text.ends_with("data: [DONE]\n\n"), "{text}");
    let plain = ureq::get(format!("http://{}/health", server.address)).call();
    assert!(plain.is_err(), "plain http is not answered");
    assert_eq!(
        agent.get(format!("https://{}/health", server.address)).call().unwrap().status(),
        200
    );
}

#[test]
fn programs_that_look_for_ollama_find_it() {
    let (server, _) = with_engine(|_| {});
    let answer = server.ask("GET", "/", &[("User-Agent", "ollama/0.13")]);
    assert_eq!((answer.status, answer.text().as_str()), (200, "Ollama is running"));
    let browser = [("User-Agent", "Mozilla/5.0"), ("Accept", "text/html,*/*")];
    assert_ne!(server.ask("GET", "/", &browser).text(), "Ollama is running");
    // A service worker fetches the page like any file.
    let worker =
        [("User-Agent", "Mozilla/5.0"), ("Accept", "*/*"), ("Sec-Fetch-Site", "same-origin")];
    assert_ne!(server.ask("GET", "/", &worker).text(), "Ollama is running");
    let head = server.ask("HEAD", "/", &[("User-Agent", "ollama/0.13")]);
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[test]
fn a_second_address_where_it_is_free() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let bind = || {
        let mut options = Options::new("127.0.0.1:0".parse().unwrap());
        options.also = Some(address);
        runtime.block_on(Server::bind(options)).unwrap()
    };
    assert_eq!(bind().second_address(), None, "another program has it");
    drop(taken);
    let server = bind();
    assert_eq!(server.second_address(), Some(address));
    let first = server.address();
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let running = runtime.spawn(server.run(async { stopped.await.unwrap_or(()) }));
    for address in [first, address] {
        let status = ureq::get(format!("http://{address}/health")).call().unwrap().status();
        assert_eq!(status, 200);
    }
    stop.send(()).unwrap();
    runtime.block_on(running).unwrap().unwrap();
    assert!(std::net::TcpStream::connect(address).is_err());
}
