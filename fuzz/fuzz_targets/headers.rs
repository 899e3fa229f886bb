#![no_main]

#[path = "../../crates/models/tests/headers/entry/mod.rs"]
#[allow(dead_code, reason = "the ordinary tests ask for more than the fuzzer does")]
mod entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    entry::headers(data);
});
