#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rullama_testkit::entry::audio(data));
