//! Concurrent pulls of the same blobs.

use std::{ops::ControlFlow, thread, time::Duration};

use rullama_pull::{Progress, PullError, Puller, delete};

use crate::{
    registry::{Registry, noise},
    setup::{PART, Setup, options},
};

fn registry() -> (Registry, Vec<u8>) {
    let registry = Registry::start();
    let weights = noise(8 * PART as usize, 31);
    registry.publish("library/tiny", "latest", &[("model", &weights)]);
    registry.publish("library/twin", "latest", &[("model", &weights)]);
    registry.faults().pause = Duration::from_millis(40);
    (registry, weights)
}

/// Bytes of the model, its config, and one byte of each to find their addresses.
const OVERHEAD: u64 = 200;

#[test]
fn pulls_in_one_process_join() {
    let (registry, weights) = registry();
    let setup = Setup::new();
    let names = ["library/tiny", "library/twin", "library/tiny"].map(|name| registry.name(name));
    thread::scope(|scope| {
        for name in &names {
            let puller = setup.puller.clone();
            scope.spawn(move || puller.pull(name, &mut |_| ControlFlow::Continue(())).unwrap());
        }
    });
    for name in &names {
        setup.assert_whole(name, &weights);
    }
    assert!(registry.take_sent() <= weights.len() as u64 + OVERHEAD);
}

#[test]
fn independent_pullers_wait_for_each_other() {
    let (registry, weights) = registry();
    let setup = Setup::new();
    let name = registry.name("library/tiny");
    // Like two processes: no shared memory.
    let other = Puller::new(setup.root(), options());
    thread::scope(|scope| {
        for puller in [&setup.puller, &other] {
            let name = &name;
            scope.spawn(move || puller.pull(name, &mut |_| ControlFlow::Continue(())).unwrap());
        }
    });
    setup.assert_whole(&name, &weights);
    assert!(registry.take_sent() <= weights.len() as u64 + 2 * OVERHEAD);
}

#[test]
fn a_download_continues_when_one_of_two_callers_cancels() {
    let (registry, weights) = registry();
    let setup = Setup::new();
    let name = registry.name("library/tiny");
    thread::scope(|scope| {
        let leaver = scope.spawn(|| {
            setup.puller.pull(&name, &mut |progress| match progress {
                Progress::Layer { completed, .. } if completed > PART => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
        });
        let stayer = scope.spawn(|| setup.pull(&name));
        assert!(matches!(leaver.join().unwrap(), Err(PullError::Cancelled)));
        stayer.join().unwrap().unwrap();
    });
    setup.assert_whole(&name, &weights);
    assert!(registry.take_sent() <= weights.len() as u64 + OVERHEAD);
}

#[test]
fn blobs_deleted_during_a_pull_are_downloaded_again() {
    let (registry, weights) = registry();
    registry.faults().pause = Duration::ZERO;
    let (tiny, twin) = (registry.name("library/tiny"), registry.name("library/twin"));
    // Between downloading the blobs and installing the model; the caller may change the store at both reports.
    for moment in [Progress::Verifying, Progress::WritingManifest] {
        let setup = Setup::new();
        setup.pull(&tiny).unwrap();
        let root = setup.root();
        let mut deleted = false;
        let mut on_progress = |progress| {
            if progress == moment && !deleted {
                deleted = true;
                assert_eq!(delete(&root, &tiny).unwrap().blobs.len(), 2);
            }
            ControlFlow::Continue(())
        };
        setup.puller.pull(&twin, &mut on_progress).unwrap();
        assert!(deleted);
        setup.assert_whole(&twin, &weights);
    }
}
