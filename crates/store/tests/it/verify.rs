//! Checking hashes.

use std::{fs, ops::ControlFlow};

use rullama_store::{Digest, StoreError, verify};

const CHUNK: u64 = 1 << 20;

#[test]
fn good_files_pass_and_report_even_steps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("blob");
    for (len, steps) in [
        (0, vec![0]),
        (1, vec![0, 1]),
        (CHUNK, vec![0, CHUNK]),
        (2 * CHUNK + 5, vec![0, CHUNK, 2 * CHUNK, 2 * CHUNK + 5]),
    ] {
        let content = vec![42; usize::try_from(len).unwrap()];
        fs::write(&path, &content).unwrap();
        let mut seen = Vec::new();
        verify(&path, &Digest::of(&content), &mut |done, total| {
            assert_eq!(total, len);
            seen.push(done);
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(seen, steps);
    }
}

#[test]
fn a_known_hash() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("blob");
    fs::write(&path, "abc").unwrap();
    let known = "sha256:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD";
    let known = Digest::parse(known).unwrap();
    verify(&path, &known, &mut |_, _| ControlFlow::Continue(())).unwrap();

    fs::write(&path, "abd").unwrap();
    let error = verify(&path, &known, &mut |_, _| ControlFlow::Continue(())).unwrap_err();
    let StoreError::HashMismatch { expected, actual, .. } = &error else { panic!("{error}") };
    assert_eq!((expected, actual), (&known, &Digest::of(b"abd")));
}

#[test]
fn it_can_be_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("blob");
    let content = vec![0; 3 << 20];
    fs::write(&path, &content).unwrap();
    let mut calls = 0;
    let error = verify(&path, &Digest::of(&content), &mut |done, _| {
        calls += 1;
        if done == CHUNK { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap_err();
    assert!(matches!(error, StoreError::Cancelled { .. }), "{error}");
    assert_eq!(calls, 2);
}

#[test]
fn missing_files_and_folders_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().join("missing"), folder.path().into()] {
        let error = verify(&path, &Digest::of(b""), &mut |_, _| ControlFlow::Continue(()));
        assert!(matches!(error, Err(StoreError::Unreadable { .. })), "{path:?}");
    }
}
