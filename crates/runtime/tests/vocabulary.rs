//! Tokenizer and chat template of a model file.

use std::rc::Rc;

use pollster::block_on;
use rullama_chat::Family;
use rullama_gguf::{Gguf, Value, Writer};
use rullama_runtime::vocabulary::{
    FamilyError, TemplateToRun, VocabularyError, template, template_to_run, tokenizer,
};
use rullama_source::MemorySource;
use rullama_testkit::golden;
use rullama_tokenizer::{Special, TokenizerError};

fn open(bytes: Vec<u8>) -> Gguf {
    block_on(Gguf::open(Rc::new(MemorySource::new("test.gguf", bytes)))).expect("a valid file")
}

fn file(pairs: &[(&str, Value)]) -> Gguf {
    let writer =
        pairs.iter().fold(Writer::new(), |writer, (key, value)| writer.kv(*key, value.clone()));
    open(writer.finish().expect("a valid file"))
}

fn family(gguf: &Gguf) -> Option<Family> {
    template(gguf).expect("a template").family()
}

fn text(text: &str) -> Value {
    Value::String(text.into())
}

#[test]
fn golden_models_have_a_tokenizer_and_a_family() {
    for (name, expected) in [
        ("micro-e2b-Q8_0", Family::Small),
        ("tiny-e2b-Q4_K_M", Family::Small),
        ("micro-moe-BF16", Family::Large),
    ] {
        let gguf = open(golden(&format!("gguf/{name}.gguf")));
        let tokenizer = tokenizer(&gguf).unwrap();
        assert_eq!(tokenizer.token_count(), 640, "{name}");
        assert_eq!(tokenizer.bos(), Some(2), "{name}");
        assert!(!tokenizer.encode("Hello", Special::Parse).is_empty(), "{name}");
        assert_eq!(family(&gguf), Some(expected), "{name}");
    }
}

#[test]
fn the_template_decides_before_the_architecture() {
    let small = "<|turn>x<turn|><|think|>";
    let large = "<|turn>x<turn|><|channel>thought\\n<channel|>";
    for (template, expected) in [(small, Family::Small), (large, Family::Large)] {
        assert_eq!(family(&file(&[("tokenizer.chat_template", text(template))])), Some(expected));
    }
    let broken = template(&file(&[("tokenizer.chat_template", text("{% for %}"))]));
    assert!(matches!(broken, Err(FamilyError::Chat(_))));
    let wrong = template(&file(&[("tokenizer.chat_template", Value::U32(1))]));
    assert!(matches!(wrong, Err(FamilyError::Gguf(_))));
}

#[test]
fn templates_that_must_be_run_come_with_what_they_need() {
    let of = |template: &str| {
        let tokens: rullama_gguf::StringArray = ["<s>", "</s>"].into_iter().collect();
        let gguf = file(&[
            ("general.name", text("Micro")),
            ("tokenizer.ggml.tokens", Value::from(tokens)),
            ("tokenizer.ggml.bos_token_id", Value::U32(0)),
            ("tokenizer.ggml.eos_token_id", Value::U32(1)),
            ("tokenizer.chat_template", text(template)),
        ]);
        template_to_run(&gguf).expect("readable keys")
    };
    let wanted = |template: &str, is_of_known_family| TemplateToRun {
        template: template.into(),
        bos: "<s>".into(),
        eos: "</s>".into(),
        name: "Micro".into(),
        is_of_known_family,
    };
    assert_eq!(of("<|turn>x<turn|><|think|>"), None);
    assert_eq!(of("[INST]{{ x }}"), Some(wanted("[INST]{{ x }}", false)));
    let chatml = "<|im_start|>{{ x }}<|im_end|>";
    assert_eq!(of(chatml), Some(wanted(chatml, true)));
    assert_eq!(template_to_run(&file(&[])).expect("no template"), None);
    assert!(template_to_run(&file(&[("tokenizer.chat_template", Value::U32(1))])).is_err());
}

#[test]
fn without_a_template_per_layer_inputs_decide() {
    let with_width = |width: u32| {
        let pairs = [
            ("general.architecture", text("gemma4")),
            ("gemma4.embedding_length_per_layer_input", Value::U32(width)),
        ];
        family(&file(&pairs))
    };
    assert_eq!((with_width(256), with_width(0)), (Some(Family::Small), Some(Family::Large)));
    assert_eq!(family(&file(&[])), Some(Family::Large));
    for (architecture, expected) in [("gemma3", Family::Gemma3), ("llama", Family::ChatMl)] {
        let of = family(&file(&[("general.architecture", text(architecture))]));
        assert_eq!(of, Some(expected), "{architecture}");
    }
}

#[test]
fn files_without_a_usable_vocabulary() {
    let error = tokenizer(&file(&[])).unwrap_err();
    assert!(matches!(&error, VocabularyError::NoVocabulary { .. }), "{error}");
    assert!(error.to_string().contains("test.gguf"), "{error}");
    let error = tokenizer(&file(&[("tokenizer.ggml.tokens", Value::U32(1))])).unwrap_err();
    assert!(matches!(error, VocabularyError::Gguf(_)), "{error}");
    let tokens: Value = Value::Array(rullama_gguf::Array::String(["a", "b"].into_iter().collect()));
    let error = tokenizer(&file(&[("tokenizer.ggml.tokens", tokens)])).unwrap_err();
    assert!(
        matches!(error, VocabularyError::Tokenizer(TokenizerError::LengthMismatch { .. })),
        "{error}"
    );
}
