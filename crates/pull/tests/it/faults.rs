//! Servers that misbehave.

use std::fs;

use rullama_pull::PullError;
use rullama_store::ModelName;

use crate::{
    registry::{Faults, Registry, noise},
    setup::{PART, Setup, impatient},
};

/// A registry with one model of eight parts, and faults.
fn broken(faults: impl FnOnce(&mut Faults)) -> (Registry, Setup, ModelName, Vec<u8>) {
    let registry = Registry::start();
    let weights = noise(8 * PART as usize - 5, 11);
    registry.publish("library/tiny", "latest", &[("model", &weights)]);
    faults(&mut registry.faults());
    let name = registry.name("library/tiny");
    (registry, Setup::new(), name, weights)
}

/// The pull succeeds despite `faults`.
fn survives(faults: impl FnOnce(&mut Faults)) -> Registry {
    let (registry, setup, name, weights) = broken(faults);
    setup.pull(&name).unwrap();
    setup.assert_whole(&name, &weights);
    registry
}

#[test]
fn servers_that_refuse_head() {
    let registry = survives(|faults| faults.refuse_head = true);
    assert!(registry.take_log().iter().any(|request| request.method == "HEAD"));
}

#[test]
fn servers_that_ignore_ranges() {
    let registry = survives(|faults| faults.ignore_range = true);
    // Each of eight threads may have started on the whole file before the fallback to one connection.
    assert!(registry.take_sent() >= 8 * PART - 5);
}

#[test]
fn servers_that_ignore_ranges_and_cut() {
    survives(|faults| {
        faults.ignore_range = true;
        faults.cut = (3 * PART as usize, 12);
    });
}

#[test]
fn connections_that_are_cut() {
    survives(|faults| faults.cut = (PART as usize - 40_000, 12));
}

#[test]
fn connections_that_stall() {
    let (registry, _, name, weights) = broken(|faults| faults.stall = (70_000, 4));
    let setup = Setup::with(impatient());
    setup.pull(&name).unwrap();
    setup.assert_whole(&name, &weights);
    assert_eq!(registry.faults().stall.1, 0);
}

#[test]
fn servers_that_are_busy() {
    let registry = survives(|faults| faults.busy = 12);
    assert_eq!(registry.faults().busy, 0);
}

#[test]
fn servers_that_are_down_for_good() {
    let (registry, setup, name, _) = broken(|faults| faults.busy = usize::MAX);
    let error = setup.pull(&name).unwrap_err();
    assert!(matches!(error, PullError::Connection { attempts: 6, .. }), "{error:?}");
    setup.assert_no_model();
    registry.faults().busy = 0;
    setup.pull(&name).unwrap();
}

#[test]
fn data_with_a_wrong_byte_is_deleted() {
    let (_registry, setup, name, weights) = broken(|faults| faults.corrupt = 1);
    let error = setup.pull(&name).unwrap_err();
    assert!(matches!(error, PullError::DigestMismatch { .. }), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("digest mismatch, file must be downloaded again: want sha256:"));
    setup.assert_no_model();
    assert!(setup.blobs().is_empty(), "{:?}", setup.blobs());
    setup.pull(&name).unwrap();
    setup.assert_whole(&name, &weights);
}

#[test]
fn wrong_ranges() {
    let (_registry, setup, name, _) = broken(|faults| faults.wrong_range = true);
    let error = setup.pull(&name).unwrap_err();
    assert!(matches!(error, PullError::BadResponse { .. }), "{error}");
    setup.assert_no_model();
}

#[test]
fn redirects_to_another_host_carry_no_credentials() {
    for status in [301, 302, 303, 307, 308] {
        let storage = Registry::start();
        let (registry, setup, name, weights) = broken(|faults| {
            faults.redirect = Some(storage.url());
            faults.redirect_status = Some(status);
            faults.token = Some("t0ken".into());
        });
        storage.publish("library/tiny", "latest", &[("model", &weights)]);
        setup.pull(&name).unwrap();
        setup.assert_whole(&name, &weights);
        assert_eq!(registry.take_sent(), 0);
        let requests = registry.take_log();
        assert!(requests.iter().any(|request| request.authorization() == Some("Bearer t0ken")));
        // Once per blob: all ranges use the same address.
        let redirected =
            requests.iter().filter(|r| r.method == "GET" && r.path.contains("/blobs/"));
        assert_eq!(redirected.count(), 2);
        let log = storage.take_log();
        assert!(log.len() >= 9, "all parts and the config");
        assert!(log.iter().all(|request| request.authorization().is_none()));
    }
}

#[test]
fn addresses_that_expire_are_renewed() {
    let storage = Registry::start();
    let (registry, setup, name, weights) = broken(|faults| faults.redirect = Some(storage.url()));
    storage.publish("library/tiny", "latest", &[("model", &weights)]);
    storage.faults().expires_after = Some(3);
    setup.pull(&name).unwrap();
    setup.assert_whole(&name, &weights);
    let renewed = registry.take_log();
    assert!(renewed.iter().filter(|r| r.method == "GET" && r.path.contains("/blobs/")).count() > 2);
}

#[test]
fn redirects_in_circles() {
    let (registry, setup, name, _) = broken(|_| {});
    registry.faults().redirect = Some(registry.url());
    let error = setup.pull(&name).unwrap_err();
    assert!(matches!(error, PullError::BadResponse { .. }), "{error}");
    assert!(registry.take_log().len() < 200);
}

#[test]
fn tags_that_do_not_exist() {
    let (registry, setup, name, _) = broken(|_| {});
    let error = setup.pull(&registry.name("library/tiny:other")).unwrap_err();
    assert_eq!(error.to_string(), "pull model manifest: file does not exist");
    let refusal = (400, r#"{"error":"no such tag"}"#.to_owned());
    registry.faults().status.insert("/v2/library/tiny/manifests/latest".into(), refusal);
    let error = setup.pull(&name).unwrap_err();
    assert!(matches!(&error, PullError::Refused { status: 400, .. }), "{error}");
    assert!(error.to_string().contains("no such tag"));
    setup.assert_no_model();
}

#[test]
fn blobs_of_another_size_or_missing() {
    let (registry, setup, name, weights) = broken(|_| {});
    let path = format!("/v2/library/tiny/blobs/{}", rullama_store::Digest::of(&weights));
    registry.put(&path, &weights[1..]);
    let error = setup.pull(&name).unwrap_err();
    assert!(matches!(error, PullError::SizeMismatch { .. }), "{error}");
    registry.faults().status.insert(path, (404, String::new()));
    let error = setup.pull(&name).unwrap_err();
    assert!(matches!(error, PullError::Refused { status: 404, .. }), "{error}");
    setup.assert_no_model();
}

#[test]
fn invalid_manifests() {
    let (registry, setup, name, _) = broken(|_| {});
    let path = "/v2/library/tiny/manifests/latest";
    let digest = format!("sha256:{}", "a".repeat(64));
    for text in [
        String::new(),
        "<html>".into(),
        "{}".into(),
        format!(r#"{{"config":{{"digest":"{digest}","size":-1}}}}"#),
        r#"{"config":{"digest":"sha256:../../../../x","size":1}}"#.into(),
    ] {
        registry.put(path, text.clone());
        let error = setup.pull(&name).unwrap_err();
        assert!(matches!(error, PullError::BadManifest { .. }), "{text}: {error}");
    }
    registry.put(path, vec![b' '; 5 << 20]);
    let error = setup.pull(&name).unwrap_err();
    assert!(matches!(error, PullError::BadResponse { .. }), "{error}");
    setup.assert_no_model();
}

#[test]
fn connection_refused() {
    let unused = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let setup = Setup::new();
    let error = setup.pull(&format!("{unused}/library/tiny").parse().unwrap()).unwrap_err();
    assert!(matches!(error, PullError::Connection { attempts: 6, .. }), "{error}");
}

#[test]
fn a_blob_of_the_wrong_length_in_the_store_is_replaced() {
    let (_registry, setup, name, weights) = broken(|_| {});
    fs::create_dir_all(setup.root().join("blobs")).unwrap();
    fs::write(setup.blob(&weights), &weights[..9]).unwrap();
    setup.pull(&name).unwrap();
    setup.assert_whole(&name, &weights);
}

#[test]
fn wrong_states_only_cost_time() {
    let (_registry, setup, name, weights) = broken(|_| {});
    fs::create_dir_all(setup.root().join("blobs")).unwrap();
    let partial = setup.partial(&weights);
    let state = |size: usize| format!(r#"{{"N":0,"Offset":0,"Size":{size},"Completed":{size}}}"#);
    // Complete according to its state, but the data is missing or wrong.
    fs::write(format!("{}-0", partial.display()), state(weights.len())).unwrap();
    setup.pull(&name).unwrap();
    setup.assert_whole(&name, &weights);

    fs::remove_file(setup.blob(&weights)).unwrap();
    fs::write(&partial, vec![0; weights.len()]).unwrap();
    fs::write(format!("{}-0", partial.display()), state(weights.len())).unwrap();
    assert!(matches!(setup.pull(&name), Err(PullError::DigestMismatch { .. })));
    setup.pull(&name).unwrap();
    setup.assert_whole(&name, &weights);
}
