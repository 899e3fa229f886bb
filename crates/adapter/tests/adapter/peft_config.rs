use rullama_adapter::AdapterError;

use crate::support::{KEY, read, safetensors};

/// The scale read from a file with one pair of rank 4.
fn scale(config: &str) -> Result<f32, AdapterError> {
    let [a, b] = [format!("{KEY}.lora_A.weight"), format!("{KEY}.lora_B.weight")];
    let file = safetensors(&[(&a, &[4, 5]), (&b, &[3, 4])], &[]);
    Ok(read(file, Some(config))?.pairs[0].scale)
}

#[test]
fn scales_follow_the_configuration() {
    for (config, wanted) in [
        (r#"{"r": 4, "lora_alpha": 8}"#, 2.0),
        (r#"{"r": 4, "lora_alpha": 6.5}"#, 1.625),
        (r#"{"r": 4, "lora_alpha": 8, "use_rslora": true}"#, 4.0),
        (r#"{"r": 16, "lora_alpha": 8, "rank_pattern": {"q_proj": 4}}"#, 2.0),
        (r#"{"r": 4, "lora_alpha": 8, "alpha_pattern": {"layers.0.self_attn.q_proj": 1}}"#, 0.25),
        (r#"{"r": 4, "lora_alpha": 8, "alpha_pattern": {"layers\\.\\d+\\..*q_proj": 1}}"#, 0.25),
        // Patterns match whole path segments at the end only.
        (r#"{"r": 4, "lora_alpha": 8, "alpha_pattern": {"proj": 1, "self_attn": 1}}"#, 2.0),
        // The first matching pattern wins.
        (r#"{"r": 4, "lora_alpha": 8, "alpha_pattern": {".*q_proj": 4, "q_proj": 2}}"#, 1.0),
        (
            r#"{"r": 8, "lora_alpha": 16, "use_rslora": true, "rank_pattern": {"q_proj": 4},
                "alpha_pattern": {"q_proj": 2}}"#,
            1.0,
        ),
    ] {
        assert_eq!(scale(config).expect("a scale"), wanted, "{config}");
    }
}

#[test]
fn features_that_change_the_output_are_refused() {
    for field in [
        r#""use_dora": true"#,
        r#""bias": "all""#,
        r#""lora_bias": true"#,
        r#""modules_to_save": ["lm_head"]"#,
        r#""fan_in_fan_out": true"#,
        r#""target_parameters": ["experts.gate_up_proj"]"#,
        r#""trainable_token_indices": [1, 2]"#,
        r#""layer_replication": [[0, 1]]"#,
        r#""alora_invocation_tokens": [7]"#,
    ] {
        let config = format!(r#"{{"r": 4, "lora_alpha": 8, {field}}}"#);
        let error = scale(&config);
        assert!(matches!(error, Err(AdapterError::Unsupported { .. })), "{field}: {error:?}");
    }
    // The same fields with values that enable nothing.
    let disabled = r#"{"r": 4, "lora_alpha": 8, "use_dora": false, "bias": "none", "modules_to_save": [],
        "target_parameters": null, "trainable_token_indices": null}"#;
    assert_eq!(scale(disabled).expect("a scale"), 2.0);
}

#[test]
fn bad_configurations_say_what_is_wrong() {
    for (config, word) in [
        ("nonsense", "adapter_config.json"),
        (r#"{"lora_alpha": 8}"#, "r is missing"),
        (r#"{"r": 4}"#, "lora_alpha is missing"),
        (r#"{"r": 0, "lora_alpha": 8}"#, "whole number"),
        (r#"{"r": -4, "lora_alpha": 8}"#, "whole number"),
        (r#"{"r": 4, "lora_alpha": "much"}"#, "a number"),
        (r#"{"r": 4, "lora_alpha": 1e300}"#, "a number"),
        (r#"{"r": 4, "lora_alpha": 8, "peft_type": "IA3"}"#, "IA3"),
        (r#"{"r": 4, "lora_alpha": 8, "alpha_pattern": {"(": 1}}"#, "pattern"),
        (r#"{"r": 4, "lora_alpha": 8, "rank_pattern": [1]}"#, "rank_pattern"),
        (r#"{"r": 2, "lora_alpha": 8}"#, "rank 4"),
    ] {
        let error = scale(config).expect_err(config).to_string();
        assert!(error.contains(word), "{config}: {error}");
    }
}
