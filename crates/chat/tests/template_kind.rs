//! Detection of the template of a model file.

use rullama_chat::{ChatError, Family};
use rullama_testkit::golden;

fn original(name: &str) -> String {
    String::from_utf8(golden(&format!("chat-template/google-gemma-4-{name}-it.2026-07-09.jinja")))
        .expect("UTF-8")
}

#[test]
fn the_original_templates_are_recognised() {
    assert_eq!(Family::of_template(&original("E2B")).unwrap(), Some(Family::Small));
    assert_eq!(Family::of_template(&original("31B")).unwrap(), Some(Family::Large));
}

/// Foreign templates are not run.
#[test]
fn foreign_templates_are_rejected() {
    let templates = [
        "{{ messages[0].content }}",
        "{% for i in range(10 ** 12) %}{% for j in range(10 ** 12) %}x{% endfor %}{% endfor %}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{% include '/etc/passwd' %}",
        "{{ .Prompt }}",
    ];
    for template in templates {
        let error = Family::of_template(template).unwrap_err();
        assert!(matches!(error, ChatError::ForeignTemplate), "{template}");
        assert!(error.to_string().contains("choose the model family"), "{error}");
    }
}
