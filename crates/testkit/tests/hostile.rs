//! A short run of the fuzzers' entry points: with every seed, with mutated seeds, with any bytes.

mod mutations;

use mutations::{input, seeds};
use proptest::prelude::*;
use rullama_testkit::entry;

#[test]
fn every_seed() {
    for (target, run) in entry::ALL {
        assert!(seeds(target).len() >= 5, "{target} has too few seeds");
        seeds(target).iter().for_each(|seed| run(seed));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    #[test]
    fn gguf(data in input("gguf")) {
        entry::gguf(&data);
    }

    #[test]
    fn tokenizer(data in input("tokenizer")) {
        entry::tokenizer(&data);
    }

    #[test]
    fn chat(data in input("chat")) {
        entry::chat(&data);
    }
}

/// Fewer cases of slow entry points: sockets, files, and those that load a model in each thread.
const fn slow() -> u32 {
    512
}

#[cfg(feature = "http")]
proptest! {
    #![proptest_config(ProptestConfig::with_cases(slow()))]

    #[test]
    fn http(data in input("http")) {
        entry::http(&data);
    }

    #[test]
    fn manifest(data in input("manifest")) {
        entry::manifest(&data);
    }
}

#[cfg(feature = "models")]
proptest! {
    #![proptest_config(ProptestConfig::with_cases(slow()))]

    #[test]
    fn session(data in input("session")) {
        entry::session(&data);
    }

    #[test]
    fn adapter(data in input("adapter")) {
        entry::adapter(&data);
    }

    #[test]
    fn dataset(data in input("dataset")) {
        entry::dataset(&data);
    }

    #[test]
    fn checkpoint(data in input("checkpoint")) {
        entry::checkpoint(&data);
    }

    #[test]
    fn schema(data in input("schema")) {
        entry::schema(&data);
    }
}

#[cfg(feature = "server")]
proptest! {
    #![proptest_config(ProptestConfig::with_cases(slow() / 4))]

    #[test]
    fn request(data in input("request")) {
        entry::request(&data);
    }
}

#[cfg(feature = "media")]
proptest! {
    #![proptest_config(ProptestConfig { cases: 8 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    #[test]
    fn image(data in input("image")) {
        entry::image(&data);
    }

    #[test]
    fn audio(data in input("audio")) {
        entry::audio(&data);
    }
}
