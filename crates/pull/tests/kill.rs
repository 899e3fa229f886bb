//! Pulls, copies and deletions in a process that is killed at random moments: the store stays readable, holds complete
//! models only, and the next pull resumes.
//!
//! The test starts itself as the child process to kill, so it has its own main function.
#![allow(clippy::unwrap_used, reason = "a test without the usual harness")]

#[allow(dead_code, reason = "shared with the other tests")]
#[path = "it/registry.rs"]
mod registry;

use std::{
    env,
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use rullama_pull::{CreateRequest, PartSize, PullOptions, Puller, copy, create, delete};
use rullama_store::{ModelName, Store};

use registry::{Registry, noise};

const PART: usize = 128 << 10;
/// Enough iterations to hit every phase of a pull.
const KILLS: u64 = 25;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [command, root, name] = &arguments[..]
        && command.starts_with("child-")
    {
        return child(command, Path::new(root), &name.parse().unwrap());
    }
    // As the standard harness with a filter, or when it only lists tests.
    if arguments
        .iter()
        .any(|text| text == "--list" || (!text.starts_with('-') && !"kill".contains(text.as_str())))
    {
        return;
    }
    killed_pulls_continue();
    killed_changes_are_complete_or_absent();
    #[cfg(unix)]
    a_full_disk_keeps_the_parts();
}

fn options() -> PullOptions {
    PullOptions {
        insecure: true,
        checkpoint: Duration::from_millis(1),
        part_size: PartSize { min: PART as u64, max: PART as u64 },
        ..PullOptions::default()
    }
}

fn pull(root: &Path, name: &ModelName) -> Result<(), rullama_pull::PullError> {
    let go_on = &mut |_| ControlFlow::Continue(());
    Puller::new(root, options()).pull(name, go_on).map(drop)
}

/// The work of the child process.
fn child(command: &str, root: &Path, name: &ModelName) {
    match command {
        "child-pull" => {
            if let Err(error) = pull(root, name) {
                let full = matches!(error, rullama_pull::PullError::DiskFull { .. });
                std::process::exit(if full { 3 } else { 4 });
            }
        }
        _ => loop {
            // Copies, changes and deletes forever.
            let other: ModelName = "changed".parse().unwrap();
            let request = CreateRequest {
                from: Some(name.full()),
                system: Some("be brief".into()),
                ..CreateRequest::default()
            };
            let go_on = &mut |_| ControlFlow::Continue(());
            create(root, &other, &request, go_on).unwrap();
            copy(root, &other, &"copied".parse().unwrap()).unwrap();
            delete(root, &other).unwrap();
            delete(root, &"copied".parse().unwrap()).unwrap();
        },
    }
}

fn spawn(command: &str, root: &Path, name: &ModelName) -> Child {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args([command, root.to_str().unwrap(), &name.full()]);
    child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// A registry with a model of eight parts.
fn setup() -> (Registry, Vec<u8>, tempfile::TempDir, PathBuf) {
    let registry = Registry::start();
    let weights = noise(8 * PART, 1);
    registry.publish("library/tiny", "latest", &[("model", &weights), ("params", b"{}")]);
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("models");
    (registry, weights, folder, root)
}

/// Checks that every model that a reader such as Ollama finds is complete.
fn assert_complete_models(root: &Path) -> usize {
    if !root.is_dir() {
        return 0;
    }
    let store = Store::open(root).unwrap();
    let listing = store.list();
    assert!(listing.unreadable.is_empty());
    for entry in &listing.entries {
        let files = store.files(entry).unwrap();
        for layer in &files.blobs {
            let go_on = &mut |_, _| ControlFlow::Continue(());
            rullama_store::verify(&layer.path, &layer.digest, go_on).unwrap();
        }
    }
    listing.entries.len()
}

fn killed_pulls_continue() {
    let (registry, weights, _folder, root) = setup();
    let name = registry.name("library/tiny");
    registry.faults().pause = Duration::from_millis(8);
    let mut in_transfer = 0;
    for round in 0..KILLS {
        registry.take_log();
        registry.take_sent();
        let mut child = spawn("child-pull", &root, &name);
        // At every fraction of the bytes, or some time after the first request: before, between and after transfers.
        let share = weights.len() as u64 * (round / 2) / (KILLS / 2);
        let reached = || match round % 2 {
            0 => registry.sent() > share,
            _ => !registry.log().is_empty(),
        };
        while !reached() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if round % 2 == 1 {
            std::thread::sleep(Duration::from_millis(round * 37 % 150));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let sent = registry.take_sent();
        in_transfer += usize::from(sent > 0 && sent < weights.len() as u64);
        if assert_complete_models(&root) > 0 {
            // Starts from scratch, to hit the first phase often.
            std::fs::remove_dir_all(&root).unwrap();
        }
    }
    assert!(in_transfer > 3, "only {in_transfer} kills hit a transfer");
    // One more that certainly stops in the middle of the weights.
    let _ = std::fs::remove_dir_all(&root);
    registry.faults().pause = Duration::from_millis(40);
    let mut child = spawn("child-pull", &root, &name);
    let digest = rullama_store::Digest::of(&weights);
    let state = |n: usize| root.join(format!("blobs/sha256-{}-partial-{n}", digest.hex()));
    let completed = |n: usize| {
        let text = std::fs::read(state(n)).unwrap_or_default();
        let state: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        state["Completed"].as_u64().unwrap_or(0)
    };
    let recorded = || (0..8).map(completed).sum::<u64>();
    while recorded() < 2 * PART as u64 {
        assert!(child.try_wait().unwrap().is_none(), "the pull ended too early");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = recorded();
    assert_eq!(assert_complete_models(&root), 0);
    registry.settle();
    registry.take_sent();
    registry.faults().pause = Duration::ZERO;
    pull(&root, &name).unwrap();
    let sent = registry.take_sent();
    assert_eq!(assert_complete_models(&root), 1);
    assert!(
        sent <= weights.len() as u64 - kept + 300,
        "{sent} bytes sent although {kept} were there"
    );
    let leftovers = std::fs::read_dir(root.join("blobs")).unwrap().count();
    assert_eq!(leftovers, 3, "weights, params and config, and nothing else");
}

fn killed_changes_are_complete_or_absent() {
    let (registry, _, _folder, root) = setup();
    let name = registry.name("library/tiny");
    pull(&root, &name).unwrap();
    for round in 0..KILLS {
        let mut child = spawn("child-change", &root, &name);
        std::thread::sleep(Duration::from_millis(15 + round * 13 % 60));
        assert!(child.try_wait().unwrap().is_none(), "the child failed");
        child.kill().unwrap();
        child.wait().unwrap();
        let models = assert_complete_models(&root);
        assert!((1..=3).contains(&models), "{models}");
    }
    // Deleting the model restores the base, whatever state the kill left.
    for other in ["changed", "copied"] {
        let _ = delete(&root, &other.parse().unwrap());
    }
    assert_eq!(assert_complete_models(&root), 1);
    let hidden = |entry: std::fs::DirEntry| entry.file_name().to_str().unwrap().starts_with('.');
    copy(&root, &name, &name).unwrap();
    assert!(
        !std::fs::read_dir(root.join("manifests")).unwrap().any(|entry| hidden(entry.unwrap()))
    );
}

/// A file size limit simulates a full disk: writing fails, and the signal is ignored.
#[cfg(unix)]
fn a_full_disk_keeps_the_parts() {
    let (registry, _, _folder, root) = setup();
    let name = registry.name("library/tiny");
    let script = "trap '' XFSZ; ulimit -f 400; exec \"$0\" \"$@\"";
    let mut child = Command::new("sh");
    child.args(["-c", script]).arg(env::current_exe().unwrap());
    child.args(["child-pull", root.to_str().unwrap(), &name.full()]);
    let status = child.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(3), "a typed error");
    assert_eq!(assert_complete_models(&root), 0);
    pull(&root, &name).unwrap();
    assert_eq!(assert_complete_models(&root), 1);
}
