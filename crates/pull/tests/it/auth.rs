//! Which servers receive credentials.

use rullama_pull::{PullError, PullOptions, Secret};

use crate::{
    registry::{Registry, noise},
    setup::{PART, Setup, options},
};

fn registry(token: Option<&str>) -> (Registry, Vec<u8>) {
    let registry = Registry::start();
    let weights = noise(2 * PART as usize, 21);
    registry.publish("library/tiny", "latest", &[("model", &weights)]);
    registry.faults().token = Some("short-lived".into());
    registry.faults().user_token = token.map(str::to_owned);
    (registry, weights)
}

fn with_token(host: &str, token: &str) -> PullOptions {
    PullOptions { tokens: vec![(host.into(), Secret::new(token))], ..options() }
}

#[test]
fn a_token_is_fetched_on_a_challenge() {
    let (registry, weights) = registry(None);
    let setup = Setup::new();
    let name = registry.name("library/tiny");
    setup.pull(&name).unwrap();
    setup.assert_whole(&name, &weights);
    let log = registry.take_log();
    let exchanges: Vec<_> = log.iter().filter(|r| r.path.starts_with("/token")).collect();
    assert_eq!(exchanges.len(), 1, "one exchange serves all requests");
    assert_eq!(exchanges[0].path, "/token?service=mock&scope=repository%3Atiny%3Apull");
}

#[test]
fn the_users_token_is_sent_only_to_its_host() {
    let (registry, weights) = registry(Some("secret"));
    let host = registry.address.to_string();
    let name = registry.name("library/tiny");
    let error = Setup::new().pull(&name).unwrap_err();
    assert!(matches!(error, PullError::Unauthorized { .. }), "{error}");
    assert!(error.to_string().starts_with("unauthorized: access denied"));
    let elsewhere = Setup::with(with_token("other.example", "secret"));
    assert!(matches!(elsewhere.pull(&name), Err(PullError::Unauthorized { .. })));
    registry.take_log();

    let setup = Setup::with(with_token(&host, "secret"));
    setup.pull(&name).unwrap();
    setup.assert_whole(&name, &weights);
    for request in registry.take_log() {
        let secret = request.authorization() == Some("Bearer secret");
        assert_eq!(secret, request.path.starts_with("/token"), "{request:?}");
    }
}

#[test]
fn a_realm_on_another_host_gets_no_token() {
    let (registry, _) = registry(Some("secret"));
    let thief = Registry::start();
    registry.faults().realm = Some(format!("{}/token", thief.url()));
    let setup = Setup::with(with_token(&registry.address.to_string(), "secret"));
    let error = setup.pull(&registry.name("library/tiny")).unwrap_err();
    assert!(matches!(error, PullError::Unauthorized { .. }), "{error}");
    assert!(thief.take_log().is_empty());
}

#[test]
fn a_rejected_token_is_not_retried_forever() {
    let (registry, _) = registry(None);
    // The exchange works, but its token is not accepted.
    let path = "/v2/library/tiny/manifests/latest";
    registry.faults().status.insert(path.into(), (401, String::new()));
    let error = Setup::new().pull(&registry.name("library/tiny")).unwrap_err();
    assert!(matches!(error, PullError::Unauthorized { .. }), "{error}");
    assert!(registry.take_log().len() <= 3);
}
