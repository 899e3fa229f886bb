//! Options: defaults, layers, warnings and refusals.

use std::collections::BTreeMap;

use rullama_sampling::{
    options::{OptionWarning, SamplingOptions, resolve_seed},
    sampling::{Sampler, SamplingError},
};
use serde_json::{Value, json};

fn applied(layer: &Value) -> (SamplingOptions, Vec<OptionWarning>) {
    let mut options = SamplingOptions::default();
    let warnings = options.apply(layer).expect("a good layer");
    (options, warnings)
}

#[test]
fn defaults_are_gemmas_and_ollamas() {
    let gemma = SamplingOptions::default();
    assert_eq!((gemma.temperature, gemma.top_k, gemma.top_p), (1.0, 64, 0.95));
    let ollama = SamplingOptions::ollama();
    assert_eq!((ollama.temperature, ollama.top_k, ollama.top_p), (0.8, 40, 0.9));
    for options in [gemma, ollama] {
        assert_eq!((options.min_p, options.typical_p), (0.0, 1.0));
        assert_eq!((options.repeat_penalty, options.repeat_last_n), (1.0, 64));
        assert_eq!((options.seed, options.num_predict, options.num_keep), (-1, -1, 4));
        assert_eq!(options.validate(), Ok(()));
    }
}

#[test]
fn later_layers_win() {
    let mut options = SamplingOptions::ollama();
    let hints =
        [("general.sampling.temp", 1.0), ("general.sampling.top_k", 64.0), ("general.name", 3.0)];
    assert_eq!(options.apply_hints(hints), []);
    assert_eq!(options.apply(&json!({"top_k": 20, "stop": ["<turn|>"]})), Ok(vec![]));
    assert_eq!(options.apply(&json!({"temperature": 0, "stop": ["a", "b"]})), Ok(vec![]));
    assert_eq!((options.temperature, options.top_k, options.top_p), (0.0, 20, 0.9));
    assert_eq!(options.stop, ["a", "b"]);
}

#[test]
fn every_name_reaches_its_field() {
    let layer = json!({
        "temperature": 0.5, "top_k": 1, "top_p": 0.25, "min_p": 0.125, "typical_p": 0.75,
        "repeat_penalty": 1.5, "repeat_last_n": -1, "presence_penalty": -0.5, "frequency_penalty": 2,
        "seed": 7, "stop": ["x"], "num_predict": 9, "ignore_eos": true, "num_keep": 5,
        "logit_bias": {"3": 1.5, "4": false},
        "dry_multiplier": 0.8, "dry_base": 2, "dry_allowed_length": 3, "dry_penalty_last_n": 10,
        "dry_sequence_breakers": ["."], "xtc_probability": 0.5, "xtc_threshold": 0.25, "top_n_sigma": 1,
        "dynatemp_range": 0.5, "dynatemp_exponent": 2, "logprobs": true, "top_logprobs": 20
    });
    let (options, warnings) = applied(&layer);
    assert_eq!(warnings, []);
    let expected = SamplingOptions {
        temperature: 0.5,
        top_k: 1,
        top_p: 0.25,
        min_p: 0.125,
        typical_p: 0.75,
        repeat_penalty: 1.5,
        repeat_last_n: -1,
        presence_penalty: -0.5,
        frequency_penalty: 2.0,
        seed: 7,
        stop: vec!["x".into()],
        num_predict: 9,
        ignore_eos: true,
        num_keep: 5,
        logit_bias: BTreeMap::from([(3, 1.5)]),
        suppress: vec![4],
        dry_multiplier: 0.8,
        dry_base: 2.0,
        dry_allowed_length: 3,
        dry_penalty_last_n: 10,
        dry_sequence_breakers: vec![".".into()],
        xtc_probability: 0.5,
        xtc_threshold: 0.25,
        top_n_sigma: 1.0,
        dynatemp_range: 0.5,
        dynatemp_exponent: 2.0,
        logprobs: true,
        top_logprobs: 20,
        ..SamplingOptions::default()
    };
    assert_eq!(options, expected);
}

#[test]
fn unknown_and_obsolete_names_are_ignored() {
    let unknown = |name: &str| OptionWarning::Unknown { name: name.into() };
    let (options, warnings) = applied(&json!({"warmth": 3, "top_k": null, "Top_p": "x"}));
    assert_eq!(options, SamplingOptions::default());
    assert_eq!(warnings, [unknown("warmth"), unknown("Top_p")]);
    assert_eq!(warnings[0].to_string(), "ignored the unknown option \"warmth\"");

    let obsolete = json!({
        "mirostat": 2, "mirostat_tau": "x", "mirostat_eta": 1, "tfs_z": 1, "penalize_newline": true,
        "numa": false, "low_vram": true, "f16_kv": true, "use_mlock": false
    });
    assert_eq!(applied(&obsolete), (SamplingOptions::default(), vec![]));
    let load_options = json!({
        "num_ctx": 4096, "num_batch": 512, "num_gpu": -1, "main_gpu": 0, "use_mmap": true,
        "num_thread": 8, "draft_num_predict": 4
    });
    assert_eq!(applied(&load_options), (SamplingOptions::default(), vec![]));
    assert_eq!(applied(&Value::Null), (SamplingOptions::default(), vec![]));
}

#[test]
fn logit_bias_in_both_forms() {
    let biases = |value| applied(&json!({"logit_bias": value})).0;
    let expected = BTreeMap::from([(5, 1.0), (7, -2.5)]);
    let options = biases(json!({"5": 1, "7": -2.5, "9": false}));
    assert_eq!((options.logit_bias, options.suppress), (expected.clone(), vec![9]));
    let options = biases(json!([[5, 1], [7, -2.5], [9, false]]));
    assert_eq!((options.logit_bias, options.suppress), (expected, vec![9]));
}

#[track_caller]
fn check_type(layer: &Value, message: &str) {
    let mut options = SamplingOptions::default();
    let error = options.apply(layer).expect_err("a bad layer");
    assert_eq!(error.to_string(), message);
    assert_eq!(options, SamplingOptions::default(), "an error changes nothing");
}

#[test]
fn wrong_types_name_the_option() {
    let number = json!({"top_p": 0.5, "temperature": "hot"});
    check_type(&number, "option \"temperature\" must be a number, got \"hot\"");
    let whole = "must be a whole number within its range, got";
    check_type(&json!({"top_k": 40.5}), &format!("option \"top_k\" {whole} 40.5"));
    check_type(
        &json!({"top_k": 3_000_000_000u32}),
        &format!("option \"top_k\" {whole} 3000000000"),
    );
    check_type(&json!({"num_ctx": "4096"}), &format!("option \"num_ctx\" {whole} \"4096\""));
    check_type(&json!({"top_logprobs": -1}), &format!("option \"top_logprobs\" {whole} -1"));
    check_type(&json!({"use_mmap": 1}), "option \"use_mmap\" must be true or false, got 1");
    check_type(&json!({"stop": "x"}), "option \"stop\" must be a list of strings, got \"x\"");
    check_type(
        &json!({"stop": ["x", 1]}),
        "option \"stop\" must be a list of strings, got [\"x\",1]",
    );
    let pairs =
        "option \"logit_bias\" must be an object or a list of pairs of token ids and numbers, got";
    check_type(&json!({"logit_bias": {"a": 1}}), &format!("{pairs} {{\"a\":1}}"));
    check_type(&json!({"logit_bias": {"1": true}}), &format!("{pairs} {{\"1\":true}}"));
    check_type(&json!({"logit_bias": [[1, 2, 3]]}), &format!("{pairs} [[1,2,3]]"));
    check_type(&json!({"logit_bias": [[-1, 2]]}), &format!("{pairs} [[-1,2]]"));
    let object = "options must be a JSON object of names and values, got a list";
    check_type(&json!([1]), object);
}

#[test]
fn long_values_are_shortened_in_messages() {
    let mut options = SamplingOptions::default();
    let error = options.apply(&json!({"top_k": "é".repeat(5000)})).expect_err("a bad layer");
    assert!(error.to_string().chars().count() < 150);
}

#[test]
fn integers_may_be_written_as_floats() {
    assert_eq!(applied(&json!({"top_k": 40.0})).0.top_k, 40);
    assert_eq!(applied(&json!({"seed": 1e3})).0.seed, 1000);
    assert_eq!(applied(&json!({"seed": i64::MAX})).0.seed, i64::MAX);
}

#[track_caller]
fn check_value(options: &SamplingOptions, option: &str) {
    for refused in [options.validate(), Sampler::new(options, 1).map(|_| ())] {
        match refused {
            Err(SamplingError::OutOfRange { option: named, .. }) => assert_eq!(named, option),
            other => panic!("{option}: {other:?}"),
        }
    }
}

#[test]
fn values_out_of_range_are_refused() {
    type Set = fn(&mut SamplingOptions, f32);
    let any_sign: [(&str, Set); 4] = [
        ("temperature", |o, v| o.temperature = v),
        ("presence_penalty", |o, v| o.presence_penalty = v),
        ("frequency_penalty", |o, v| o.frequency_penalty = v),
        ("top_n_sigma", |o, v| o.top_n_sigma = v),
    ];
    let not_negative: [(&str, Set); 12] = [
        ("top_p", |o, v| o.top_p = v),
        ("min_p", |o, v| o.min_p = v),
        ("typical_p", |o, v| o.typical_p = v),
        ("repeat_penalty", |o, v| o.repeat_penalty = v),
        ("dry_multiplier", |o, v| o.dry_multiplier = v),
        ("dry_base", |o, v| o.dry_base = v),
        ("xtc_probability", |o, v| o.xtc_probability = v),
        ("xtc_threshold", |o, v| o.xtc_threshold = v),
        ("dynatemp_range", |o, v| o.dynatemp_range = v),
        ("dynatemp_exponent", |o, v| o.dynatemp_exponent = v),
        ("mirostat_tau", |o, v| o.mirostat_tau = v),
        ("mirostat_eta", |o, v| o.mirostat_eta = v),
    ];
    let check_all = |cases: &[(&str, Set)], values: &[f32]| {
        for (option, set) in cases {
            for &value in values {
                let mut options = SamplingOptions::default();
                set(&mut options, value);
                check_value(&options, option);
            }
        }
    };
    let infinite = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    check_all(&any_sign, &infinite);
    check_all(&not_negative, &infinite);
    check_all(&not_negative, &[-0.1]);
    check_all(&[("repeat_penalty", |o, v| o.repeat_penalty = v)], &[0.0, 1e-45]);
}

#[test]
fn integers_out_of_range_are_refused() {
    let with = |layer: Value| {
        let mut options = SamplingOptions::default();
        options.apply(&layer).expect_err("a bad layer")
    };
    for (option, value) in [
        ("repeat_last_n", -2),
        ("dry_penalty_last_n", -2),
        ("dry_allowed_length", -1),
        ("top_logprobs", 21),
    ] {
        let error = with(json!({ option: value }));
        assert!(
            matches!(error, SamplingError::OutOfRange { option: named, .. } if named == option)
        );
    }
    check_value(&SamplingOptions { mirostat: 3, ..SamplingOptions::default() }, "mirostat");
    let logit_bias = BTreeMap::from([(1, f32::NAN)]);
    check_value(&SamplingOptions { logit_bias, ..SamplingOptions::default() }, "logit_bias");
    let message = with(json!({"repeat_penalty": 0})).to_string();
    assert_eq!(message, "option \"repeat_penalty\" must be above 0 and finite, got 0");
    // Too large for the type that holds it.
    assert!(matches!(with(json!({"temperature": 1e300})), SamplingError::OutOfRange { .. }));
}

#[test]
fn off_values_pass() {
    let layer = json!({
        "temperature": -1, "top_k": -5, "top_p": 3, "top_n_sigma": -7, "xtc_threshold": 2, "dry_base": 0.5,
        "num_predict": -2, "presence_penalty": -2
    });
    assert_eq!(applied(&layer).1, []);
}

#[test]
fn invalid_hints_warn_and_are_ignored() {
    let mut options = SamplingOptions::default();
    let warnings = options.apply_hints([
        ("general.sampling.temp", f64::NAN),
        ("general.sampling.penalty_repeat", 0.0),
        ("general.sampling.magic", 1.0),
        ("general.sampling.min_p", 0.5),
    ]);
    assert_eq!(options, SamplingOptions { min_p: 0.5, ..SamplingOptions::default() });
    assert_eq!(warnings.len(), 3);
    assert!(
        matches!(&warnings[0], OptionWarning::InvalidHint { name, .. } if name.ends_with("temp"))
    );
    assert!(matches!(&warnings[2], OptionWarning::Unknown { name } if name.ends_with("magic")));
}

#[test]
fn seeds() {
    assert_eq!(resolve_seed(-1, 77), 77);
    assert_eq!(resolve_seed(i64::MIN, 77), 77);
    assert_eq!(resolve_seed(0, 77), 0);
    assert_eq!(resolve_seed(42, 77), 42);
    assert_eq!(resolve_seed((1 << 32) + 5, 77), 5);
}

#[test]
fn options_survive_json() {
    let options = SamplingOptions {
        mirostat: 2,
        logit_bias: BTreeMap::from([(9, 0.1)]),
        ..SamplingOptions::ollama()
    };
    let json = serde_json::to_string(&options).expect("options are JSON");
    assert_eq!(serde_json::from_str::<SamplingOptions>(&json).expect("JSON is options"), options);
    let partial: SamplingOptions =
        serde_json::from_str(r#"{"top_k": 3}"#).expect("defaults fill in");
    assert_eq!(partial, SamplingOptions { top_k: 3, ..SamplingOptions::default() });
}
