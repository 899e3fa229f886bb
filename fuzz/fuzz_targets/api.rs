#![no_main]

#[path = "../../crates/api/tests/api/entry.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    entry::read_all(data);
});
