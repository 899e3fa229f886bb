//! Modified headers end in typed errors or kernels, never in a panic. `cargo +nightly fuzz run headers` searches further.

mod entry;

use std::path::Path;

use entry::{FILES, NUMBERS, headers, keys};
use proptest::prelude::*;

#[test]
fn golden_headers_reach_the_kernels() {
    for (file, name) in FILES.iter().enumerate() {
        for device in (0..32u8).step_by(5) {
            let reached = headers(&[file as u8, device << 1]);
            assert!(reached.graphs > 0 && reached.dispatches > 0, "{name}: {reached:?}");
        }
    }
}

#[test]
fn every_seed() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/headers");
    let seeds: Vec<_> = std::fs::read_dir(corpus).expect("the target has seeds").collect();
    assert!(seeds.len() >= 5, "too few seeds");
    for seed in seeds {
        headers(&std::fs::read(seed.expect("a seed").path()).expect("a seed can be read"));
    }
}

/// Every tensor in every format, and every tensor missing.
#[test]
fn each_format_and_each_missing_tensor() {
    for file in 0..FILES.len() as u8 {
        for tensor in 0..40u16 {
            let [low, high] = tensor.to_le_bytes();
            headers(&[file, 1, 7, low, high, 0, 0, 0]);
            // A seventh of the formats per tensor; its neighbours cover the rest.
            for format in (low % 7..34).step_by(7) {
                headers(&[file, 1 | format << 1, 7, low, high, 0xc0, format, 128]);
            }
        }
    }
}

/// Every value in every key of some files, with tensor shapes that match.
fn each_value_in_each_key(files: impl Iterator<Item = u8>) {
    for file in files {
        for key in 0..keys(file) {
            for number in 0..NUMBERS {
                headers(&[file, 1 | number << 1, 0, key, 0, 0, number, key]);
            }
        }
    }
}

// Two tests, so that two cores share the files.
#[test]
fn each_value_in_each_key_of_even_files() {
    each_value_in_each_key((0..FILES.len() as u8).step_by(2));
}

#[test]
fn each_value_in_each_key_of_odd_files() {
    each_value_in_each_key((1..FILES.len() as u8).step_by(2));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    #[test]
    fn any_changes(data in prop::collection::vec(any::<u8>(), 0..2 + 6 * 6)) {
        headers(&data);
    }

    /// Two changed keys, with tensor shapes that match.
    #[test]
    fn two_values(file in any::<u8>(), device in any::<u8>(), keys in any::<[u8; 2]>(), numbers in any::<[u8; 2]>()) {
        let [a, b] = keys;
        headers(&[file, device | 1, 0, a, 0, 0, numbers[0], 0, 0, b, 0, 0, numbers[1], 1]);
    }
}
