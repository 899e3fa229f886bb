//! llama.cpp's additional routes.

use rullama_api::request::llamacpp;
use rullama_api::response::llamacpp::{
    AppliedTemplate, Detokenized, Health, LoraAdapter, Metrics, TokenPiece, Tokenized, Tokens,
};
use serde_json::to_string;

#[test]
fn requests() {
    let request = llamacpp::tokenize(br#"{"content": "hi"}"#).expect("a text");
    assert!(!request.add_special && request.parse_special && !request.with_pieces);
    assert_eq!(request.model, None);
    assert!(llamacpp::tokenize(b"{}").is_err());
    assert_eq!(llamacpp::detokenize(br#"{"tokens": [1, 2]}"#).map(|r| r.tokens), Ok(vec![1, 2]));
    assert_eq!(llamacpp::detokenize(br#"{"tokens": []}"#).map(|r| r.tokens), Ok(vec![]));
    assert!(llamacpp::detokenize(br#"{"tokens": ["a"]}"#).is_err());
    let template = llamacpp::apply_template(
        br#"{"messages": [{"role": "user", "content": "hi"}], "chat_template_kwargs": {"enable_thinking": true}}"#,
    );
    let template = template.expect("messages");
    assert_eq!((template.chat.conversation.messages.len(), template.think), (1, Some(true)));
    let scales = llamacpp::lora_adapters(br#"[{"id": 0, "scale": 0.5}]"#).expect("a list");
    assert_eq!((scales[0].id, scales[0].scale), (0, 0.5));
    for wrong in
        [&b"{}"[..], b"[{}]", br#"[{"id": -1, "scale": 1}]"#, br#"[{"id": 0, "scale": "x"}]"#]
    {
        assert!(llamacpp::lora_adapters(wrong).is_err());
    }
}

#[test]
fn responses() {
    assert_eq!(json(&Health::default()), r#"{"status":"ok"}"#);
    assert_eq!(json(&Tokenized { tokens: Tokens::Ids(vec![1]) }), r#"{"tokens":[1]}"#);
    let pieces = vec![
        TokenPiece { id: 1, piece: b"a".to_vec().into() },
        TokenPiece { id: 2, piece: vec![0xc3].into() },
    ];
    let pieces = Tokenized { tokens: Tokens::Pieces(pieces) };
    assert_eq!(json(&pieces), r#"{"tokens":[{"id":1,"piece":"a"},{"id":2,"piece":[195]}]}"#);
    assert_eq!(json(&Detokenized { content: "a".into() }), r#"{"content":"a"}"#);
    assert_eq!(json(&AppliedTemplate { prompt: "p".into() }), r#"{"prompt":"p"}"#);
    let adapter = LoraAdapter { id: 0, path: "a.gguf".into(), scale: 0.1 };
    assert_eq!(json(&adapter), r#"{"id":0,"path":"a.gguf","scale":0.1}"#);
}

/// A value as JSON text.
fn json<T: serde::Serialize>(value: &T) -> String {
    to_string(value).expect("plain values")
}

#[test]
fn metrics() {
    let metrics = Metrics {
        prompt_tokens_total: 10,
        prompt_seconds_total: 2.5,
        requests_deferred: 3,
        ..Metrics::default()
    };
    let text = metrics.to_text();
    assert!(text.contains(
        "# TYPE llamacpp:prompt_tokens_total counter\nllamacpp:prompt_tokens_total 10\n"
    ));
    assert!(text.contains(
        "# TYPE llamacpp:prompt_tokens_seconds gauge\nllamacpp:prompt_tokens_seconds 4\n"
    ));
    assert!(text.contains("llamacpp:predicted_tokens_seconds 0\n"));
    assert!(text.contains("llamacpp:requests_deferred 3\n"));
}
