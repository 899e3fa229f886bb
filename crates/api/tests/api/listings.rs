//! Lists of models.

use std::time::Duration;

use rullama_api::listing::{
    Details, ModelEntry, ModelList, ModelObject, ProcessList, Progress, RunningModel, ShowReply,
    TagList, Version,
};
use rullama_api::{Capability, Timestamp};
use serde_json::{json, to_string, to_value};

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_unix(Duration::from_secs(seconds))
}

fn details() -> Details {
    Details {
        format: "gguf".into(),
        family: "gemma4".into(),
        families: vec!["gemma4".into()],
        parameter_size: "5.1B".into(),
        quantization_level: "Q4_K_M".into(),
        context_length: Some(131_072),
        embedding_length: Some(1536),
        ..Details::default()
    }
}

fn entry(name: &str, modified: u64) -> ModelEntry {
    ModelEntry {
        name: name.into(),
        model: name.into(),
        modified_at: at(modified),
        size: 7_162_394_016,
        digest: "ab".repeat(32),
        details: details(),
        capabilities: vec![Capability::Completion, Capability::Vision, Capability::Thinking],
    }
}

#[test]
fn tags_newest_first() {
    assert_eq!(to_string(&TagList::default()).expect("JSON"), r#"{"models":[]}"#);
    let list = TagList::new(vec![entry("old:1", 1), entry("gemma4:e2b", 1_777_622_400)]);
    let list = to_value(&list).expect("JSON");
    assert_eq!(
        list["models"][0],
        json!({
            "name": "gemma4:e2b", "model": "gemma4:e2b", "modified_at": "2026-05-01T08:00:00Z", "size": 7_162_394_016_u64,
            "digest": "ab".repeat(32),
            "details": {"parent_model": "", "format": "gguf", "family": "gemma4", "families": ["gemma4"], "parameter_size": "5.1B",
                "quantization_level": "Q4_K_M", "context_length": 131_072, "embedding_length": 1536},
            "capabilities": ["completion", "vision", "thinking"],
        })
    );
    assert_eq!(list["models"][1]["name"], "old:1");
}

#[test]
fn version_is_one_that_clients_accept() {
    let version = to_value(Version::default()).expect("JSON");
    let digits: Vec<u32> = version["version"]
        .as_str()
        .expect("text")
        .split('.')
        .filter_map(|part| part.parse().ok())
        .collect();
    assert!(digits.as_slice() >= [0, 13, 5].as_slice() && digits.len() == 3);
}

#[test]
fn show_leaves_empty_fields_out() {
    let show = to_value(ShowReply { details: details(), ..ShowReply::default() }).expect("JSON");
    let fields: Vec<&String> = show.as_object().expect("an object").keys().collect();
    assert_eq!(fields, ["details", "model_info", "capabilities", "modified_at"]);
    assert_eq!(show["model_info"], json!({}));
}

#[test]
fn running_models_by_expiry() {
    let running = |name: &str, expires_at| RunningModel {
        name: name.into(),
        model: name.into(),
        size: 1,
        digest: String::new(),
        details: details(),
        expires_at,
        size_vram: 1,
        context_length: 4096,
    };
    let list = ProcessList::new(vec![running("a", at(5)), running("b", Timestamp::FAR_FUTURE)]);
    let list = to_value(&list).expect("JSON");
    assert_eq!(list["models"][0]["expires_at"], "9999-12-31T23:59:59Z");
    assert_eq!(list["models"][1]["name"], "a");
}

#[test]
fn models_for_openai_and_anthropic() {
    let list = ModelList::new(vec![ModelObject::new("gemma4:e2b", "library", at(1_777_622_400))]);
    let expected = concat!(
        r#"{"object":"list","data":[{"id":"gemma4:e2b","object":"model","created":1777622400,"owned_by":"library","type":"model","#,
        r#""display_name":"gemma4:e2b","created_at":"2026-05-01T08:00:00Z"}],"has_more":false,"first_id":"gemma4:e2b","last_id":"gemma4:e2b"}"#,
    );
    assert_eq!(to_string(&list).expect("JSON"), expected);
    let empty = to_value(ModelList::new(Vec::new())).expect("JSON");
    assert_eq!((&empty["data"], &empty["first_id"]), (&json!([]), &json!(null)));
}

#[test]
fn progress_lines() {
    assert_eq!(Progress::success().to_line(), b"{\"status\":\"success\"}\n");
    let line = Progress::layer(&format!("sha256:{}", "0123456789ab".repeat(5)), 5, 9);
    let text = String::from_utf8(line.to_line()).expect("text");
    assert!(text.starts_with(r#"{"status":"pulling 0123456789ab","digest":"sha256:0123"#));
    assert!(text.ends_with("\"total\":9,\"completed\":5}\n"));
}
