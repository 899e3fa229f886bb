//! What happens to the template text of a model file.

use rullama_chat::{
    ChatError, Conversation, Family, Limits, Message, RenderOptions, TemplateKind, recognise,
    render, render_template,
};
use rullama_testkit::golden;

fn original(name: &str) -> String {
    String::from_utf8(golden(&format!("chat-template/google-gemma-4-{name}-it.2026-07-09.jinja")))
        .expect("UTF-8")
}

#[test]
fn the_original_templates_are_known() {
    assert_eq!(recognise(&original("E2B")), TemplateKind::Known(Family::Small));
    assert_eq!(recognise(&original("31B")), TemplateKind::Known(Family::Large));
}

#[test]
fn known_templates_go_to_the_native_renderer() {
    let conversation =
        Conversation { messages: vec![Message::new("user", "x")], ..Conversation::default() };
    for (name, family) in [("E2B", Family::Small), ("31B", Family::Large)] {
        let prompt = render_template(&original(name), &conversation, &Limits::default()).unwrap();
        assert_eq!(prompt, render(&conversation, RenderOptions::for_model(family)).unwrap());
    }
}

#[test]
fn foreign_templates_are_run_or_refused() {
    let conversation =
        Conversation { messages: vec![Message::new("user", "x")], ..Conversation::default() };
    let rendered = render_template("{{ messages[0].content }}", &conversation, &Limits::default());
    if cfg!(feature = "jinja") {
        assert_eq!(rendered.unwrap().text(), "x");
    } else {
        let error = rendered.unwrap_err();
        assert!(matches!(error, ChatError::ForeignTemplate));
        assert!(error.to_string().contains("`jinja` feature"));
    }
}
