//! `rullama pull` against a registry on this machine: what is pulled is listed, runs and can be deleted; what fails leaves nothing behind.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rullama_store::Digest;
use serde_json::Value;

use crate::{program::has, registry::Registry, store::Store};

/// A registry with the demo model; its name there.
fn published() -> (Registry, String, Vec<u8>) {
    let registry = Registry::start();
    let weights = rullama::demo_gguf().unwrap();
    registry.publish("library/tiny", "latest", &[("model", &weights), ("params", b"{}")]);
    let name = format!("{}/library/tiny:latest", registry.address);
    (registry, name, weights)
}

/// All files in a folder and below.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all
}

#[test]
fn pulled_models_are_listed_run_and_deleted() {
    let (_registry, name, weights) = published();
    let store = Store::empty();
    let pulled = store.rullama(&["pull", "--insecure", &name]).run();
    assert_eq!(pulled.code, Some(0), "{}", pulled.stderr);
    has(&pulled.stdout, &["Pulled", &name]);
    has(&pulled.stderr, &["pulling manifest", "verifying sha256 digest", "writing manifest"]);
    let blob = store.blob_path(&Digest::of(&weights));
    assert!(fs::read(&blob).unwrap() == weights);
    assert_eq!(files(store.root()).len(), 4, "weights, parameters, config and manifest");
    has(&store.rullama(&["list"]).stdout(), &[&name]);
    let reply = store.rullama(&["run", &name, "--device", "cpu", "What is 23 + 45?"]).stdout();
    has(&reply, &["68"]);
    // A second pull has nothing to download; a copy shares the blobs.
    let again = store.rullama(&["pull", "--insecure", "--json", &name]).stdout();
    let last: Value = serde_json::from_str(again.lines().last().unwrap()).unwrap();
    assert_eq!(last["status"], "success", "{again}");
    has(&store.rullama(&["cp", &name, "mine"]).stdout(), &["Copied", "mine"]);
    has(&store.rullama(&["rm", &name]).stdout(), &["Deleted"]);
    assert!(blob.is_file(), "the copy needs it");
    has(&store.rullama(&["rm", "mine"]).stdout(), &["Deleted"]);
    assert_eq!(files(store.root()), [] as [PathBuf; 0]);
    has(&store.rullama(&["rm", "mine"]).fails(3), &["mine"]);
}

#[test]
fn exit_codes_say_what_went_wrong() {
    let (registry, name, _) = published();
    let store = Store::empty();
    let pull = |name: &str| store.rullama(&["pull", "--insecure", name]).run();
    let missing = pull(&name.replace("tiny", "nobody"));
    assert_eq!(missing.code, Some(3), "{}", missing.stderr);
    has(&missing.stderr, &["file does not exist", "check its name"]);
    // https is spoken unless plain http is allowed; this registry has none.
    let secure = store.rullama(&["pull", &format!("http://{name}")]).run();
    assert_eq!(secure.code, Some(1), "{}", secure.stderr);
    has(&secure.stderr, &["--insecure"]);
    registry.faults().corrupt = usize::MAX;
    let corrupt = pull(&name);
    assert_eq!(corrupt.code, Some(6), "{}", corrupt.stderr);
    has(&corrupt.stderr, &["digest mismatch"]);
    registry.faults().corrupt = 0;
    registry
        .faults()
        .status
        .insert("/v2/library/tiny/manifests/latest".into(), (401, String::new()));
    let refused = pull(&name);
    assert_eq!(refused.code, Some(5), "{}", refused.stderr);
    registry.faults().status.clear();
    registry.faults().status.insert("/v2/library/tiny/manifests/latest".into(), (200, "{".into()));
    let broken = pull(&name);
    assert_eq!(broken.code, Some(4), "{}", broken.stderr);
    assert_eq!(files(store.root()), [] as [PathBuf; 0], "nothing is left of them");
    // Nothing listens on this port.
    let nobody = pull("127.0.0.1:1/library/tiny");
    assert_eq!(nobody.code, Some(5), "{}", nobody.stderr);
}

#[test]
fn a_killed_pull_goes_on_where_it_was() {
    let (registry, name, weights) = published();
    let store = Store::empty();
    // Pieces of 16 kB: the download takes so long that some of it has been recorded.
    let pieces = (weights.len() / (16 << 10)) as u32;
    registry.faults().pause = Duration::from_secs(8) / pieces;
    let mut program = store.rullama(&["pull", "--insecure", &name]);
    let mut child = program.spawn();
    let hex = Digest::of(&weights).hex().to_owned();
    let state = store.root().join(format!("blobs/sha256-{hex}-partial-0"));
    let recorded = || {
        let text = fs::read(&state).unwrap_or_default();
        let state: Value = serde_json::from_slice(&text).unwrap_or_default();
        state["Completed"].as_u64().unwrap_or(0)
    };
    let start = Instant::now();
    while recorded() == 0 {
        assert!(child.try_wait().unwrap().is_none(), "the pull ended too early");
        assert!(start.elapsed() < Duration::from_secs(60), "nothing was recorded");
        std::thread::sleep(Duration::from_millis(5));
    }
    // SIGKILL: the program cannot clean up.
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = recorded();
    assert!(!store.rullama(&["list"]).run().stdout.contains("tiny"), "it is not complete");
    registry.settle();
    registry.take_sent();
    registry.faults().pause = Duration::ZERO;
    let resumed = store.rullama(&["pull", "--insecure", &name]).run();
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    let sent = registry.take_sent();
    // Besides the rest of the weights: parameters and config.
    assert!(sent <= weights.len() as u64 - kept + 300, "{sent} bytes although {kept} were there");
    assert!(fs::read(store.blob_path(&Digest::of(&weights))).unwrap() == weights);
    assert_eq!(files(store.root()).len(), 4, "weights, parameters, config and manifest");
}
