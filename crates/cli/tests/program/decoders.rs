//! Decoders of other families than Gemma 4.

use crate::{models::golden_arg, program::rullama};

#[test]
fn they_are_shown_and_answer() {
    for (name, architecture, capabilities) in [
        ("micro-llama-Q4_1", "llama", &["text", "tools", "training"][..]),
        ("micro-qwen3-Q8_0", "qwen3", &["text", "tools", "training"]),
        ("micro-g3-Q4_0", "gemma3", &["text", "training"]),
    ] {
        let model = golden_arg(&format!("gguf/{name}.gguf"));
        let shown = rullama(["show", &model, "--json"]).json();
        assert_eq!(shown["architecture"], architecture);
        let found = &shown["capabilities"];
        assert!(
            capabilities.iter().all(|word| found.to_string().contains(word)),
            "{name}: {found}"
        );
        let options = ["--device", "cpu", "--num-predict", "4", "--ctx", "128"];
        rullama([&["run", &model, "hello"], &options[..]].concat()).stdout();
    }
}
