//! The store after a pull.

use std::{fs, ops::ControlFlow};

use rullama_pull::{Progress, PullError};
use rullama_store::Digest;
use serde_json::json;

use crate::{
    registry::{Registry, noise},
    setup::{PART, Setup, impatient},
};

#[test]
fn a_model_is_pulled_completely_and_only_once() {
    let (registry, setup) = (Registry::start(), Setup::new());
    let weights = noise(5 * PART as usize + 777, 1);
    let manifest =
        registry.publish("library/tiny", "latest", &[("model", &weights), ("params", b"{}")]);
    let name = registry.name("library/tiny:latest");
    let short = Digest::of(&weights).short().to_owned();

    let lines = setup.pull_lines(&name);
    assert_eq!(lines.first().map(String::as_str), Some("pulling manifest"));
    assert_eq!(lines[1], format!("pulling {short}"));
    let tail: Vec<&str> = lines.iter().rev().take(3).rev().map(String::as_str).collect();
    assert_eq!(tail, ["verifying sha256 digest", "writing manifest", "success"]);
    setup.assert_whole(&name, &weights);
    let files = setup.store().resolve(&name).unwrap();
    assert_eq!(fs::read(&files.manifest).unwrap(), manifest, "the bytes are the model's id");

    let requests = registry.take_log();
    let first = &requests[0];
    assert_eq!(first.path, "/v2/library/tiny/manifests/latest");
    assert_eq!(first.headers["accept"], "application/vnd.docker.distribution.manifest.v2+json");
    assert!(first.headers["user-agent"].starts_with("rullama/"));
    let ranges = requests.iter().filter(|r| r.method == "GET" && r.headers.contains_key("range"));
    assert!(ranges.count() >= 6, "one request for each part");

    registry.take_sent();
    let pulled = setup.pull(&name).unwrap();
    assert_eq!(pulled.id, Digest::of(&manifest));
    assert_eq!(registry.take_sent(), 0, "existing blobs are not downloaded again");
    assert_eq!(registry.take_log().len(), 1);
}

#[test]
fn progress_has_totals_and_ends_complete() {
    let (registry, setup) = (Registry::start(), Setup::new());
    let weights = noise(3 * PART as usize, 2);
    registry.publish("library/tiny", "latest", &[("model", &weights)]);
    registry.faults().pause = std::time::Duration::from_millis(60);
    let mut seen = Vec::new();
    let mut on_progress = |progress: Progress| {
        if let Progress::Layer { total, completed, .. } = &progress
            && *total == weights.len() as u64
        {
            seen.push(*completed);
            let line = progress.line().unwrap();
            assert_eq!(line["digest"], Digest::of(&weights).to_string());
            assert_eq!(line["completed"], json!(completed));
        }
        ControlFlow::Continue(())
    };
    setup.puller.pull(&registry.name("library/tiny"), &mut on_progress).unwrap();
    assert!(seen.is_sorted() && seen.len() > 2, "{seen:?}");
    assert_eq!(seen.last(), Some(&(weights.len() as u64)));
}

#[test]
fn a_cancelled_pull_keeps_its_parts() {
    let (registry, setup) = (Registry::start(), Setup::new());
    let weights = noise(8 * PART as usize, 3);
    registry.publish("library/tiny", "latest", &[("model", &weights)]);
    registry.faults().pause = std::time::Duration::from_millis(80);
    let name = registry.name("library/tiny");
    let mut on_progress = |progress: Progress| match progress {
        Progress::Layer { completed, .. } if completed > 3 * PART => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let error = setup.puller.pull(&name, &mut on_progress).unwrap_err();
    assert!(matches!(error, PullError::Cancelled), "{error}");
    setup.assert_no_model();
    assert_eq!(fs::metadata(setup.partial(&weights)).unwrap().len(), weights.len() as u64);
    let recorded: u64 = (0..8)
        .map(|n| {
            let path = format!("{}-{n}", setup.partial(&weights).display());
            let state: serde_json::Value =
                serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
            assert_eq!((&state["N"], &state["Size"]), (&json!(n), &json!(PART)));
            state["Completed"].as_u64().unwrap()
        })
        .sum();
    assert!(recorded > 3 * PART, "reported bytes are recorded: {recorded}");

    registry.faults().pause = std::time::Duration::ZERO;
    registry.settle();
    registry.take_sent();
    setup.pull(&name).unwrap();
    setup.assert_whole(&name, &weights);
    let sent = registry.take_sent();
    let config = 100;
    assert!(sent <= weights.len() as u64 - recorded + config, "{sent} after {recorded}");
}

#[test]
fn cancelling_a_manifest_request_returns_at_once() {
    // A server that accepts and never responds.
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let setup = Setup::with(impatient());
    let name = format!("{}/library/tiny", silent.local_addr().unwrap()).parse().unwrap();
    let mut on_progress = |progress| match progress {
        Progress::Waiting => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let error = setup.puller.pull(&name, &mut on_progress).unwrap_err();
    assert!(matches!(error, PullError::Cancelled), "{error}");
    let error = setup.pull(&name).unwrap_err();
    assert!(matches!(error, PullError::Stalled { .. }), "{error}");
}

#[test]
fn ollamas_unfinished_downloads_are_resumed() {
    let (registry, setup) = (Registry::start(), Setup::new());
    let weights = noise(400_000, 4);
    registry.publish("library/tiny", "latest", &[("model", &weights)]);
    fs::create_dir_all(setup.root().join("blobs")).unwrap();
    // Ollama's parts have another length than ours, and the second one is half done.
    let partial = setup.partial(&weights);
    let mut data = vec![0; weights.len()];
    data[..250_000].copy_from_slice(&weights[..250_000]);
    fs::write(&partial, &data).unwrap();
    for (n, offset, size, completed) in [(0, 0, 200_000, 200_000), (1, 200_000, 200_000, 50_000)] {
        let state =
            format!(r#"{{"N":{n},"Offset":{offset},"Size":{size},"Completed":{completed}}}"#);
        fs::write(format!("{}-{n}", partial.display()), state + "\n").unwrap();
    }
    let name = registry.name("library/tiny");
    setup.pull(&name).unwrap();
    setup.assert_whole(&name, &weights);
    let log = registry.take_log();
    assert!(log.iter().any(|r| r.headers.get("range").is_some_and(|r| r == "bytes=250000-399999")));
    assert!(registry.take_sent() < 150_000 + 200);
}

#[test]
fn a_newer_model_replaces_the_old_one_and_its_blobs() {
    let (registry, setup) = (Registry::start(), Setup::new());
    let (old, new, shared) = (noise(1000, 5), noise(1000, 6), noise(1000, 7));
    let name = registry.name("library/tiny");
    registry.publish("library/tiny", "latest", &[("model", &old), ("license", &shared)]);
    setup.pull(&name).unwrap();
    registry.publish("library/tiny", "latest", &[("model", &new), ("license", &shared)]);
    let lines = setup.pull_lines(&name);
    assert!(lines.contains(&"removing unused layers".into()), "{lines:?}");
    setup.assert_whole(&name, &new);
    assert!(!setup.blob(&old).exists());
    assert!(setup.blob(&shared).exists());
}

#[test]
fn names_that_differ_in_case_are_one_model() {
    let (registry, setup) = (Registry::start(), Setup::new());
    let weights = noise(10, 8);
    registry.publish("library/tiny", "v1", &[("model", &weights)]);
    registry.publish("library/Tiny", "V1", &[("model", &weights)]);
    setup.pull(&registry.name("library/tiny:v1")).unwrap();
    let pulled = setup.pull(&registry.name("library/Tiny:V1")).unwrap();
    assert_eq!(pulled.name.tag(), "v1");
    assert_eq!(setup.store().list().entries.len(), 1);
}

#[test]
fn safetensors_models_are_rejected_before_any_download() {
    let (registry, setup) = (Registry::start(), Setup::new());
    registry.publish("library/tiny", "latest", &[("tensor", b"x"), ("model", b"y")]);
    let error = setup.pull(&registry.name("library/tiny")).unwrap_err();
    assert!(matches!(error, PullError::TensorLayers { .. }), "{error}");
    assert_eq!(registry.take_log().len(), 1);
    setup.assert_no_model();
}

#[test]
fn plain_http_is_rejected_unless_allowed() {
    let registry = Registry::start();
    registry.publish("library/tiny", "latest", &[("model", b"y")]);
    let setup =
        Setup::with(rullama_pull::PullOptions { insecure: false, ..crate::setup::options() });
    let name = format!("http://{}/library/tiny", registry.address).parse().unwrap();
    let error = setup.pull(&name).unwrap_err();
    assert!(matches!(error, PullError::Insecure { .. }), "{error}");
    assert!(registry.take_log().is_empty());
}

#[test]
fn empty_layers_are_kept() {
    let (registry, setup) = (Registry::start(), Setup::new());
    registry.publish("library/tiny", "latest", &[("model", b"y"), ("license", b"")]);
    setup.pull(&registry.name("library/tiny")).unwrap();
    setup.assert_whole(&registry.name("library/tiny"), b"y");
}
