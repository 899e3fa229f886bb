//! Foreign templates: what they may do, and that hostile ones end with an error instead of a hang or a crash.
#![cfg(feature = "jinja")]

use rullama_chat::{ChatError, Conversation, Limits, Message, render_template};

/// Runs a template in a thread of its own and fails if it takes too long; where there are no threads, in place.
fn run(template: &str) -> Result<String, ChatError> {
    let template = template.to_owned();
    let job = move || {
        let conversation = Conversation {
            messages: vec![Message::new("user", " Hi <b> "), Message::new("assistant", "Yo")],
            ..Conversation::default()
        };
        render_template(&template, &conversation, &Limits::default()).map(|prompt| prompt.text())
    };
    #[cfg(target_family = "wasm")]
    return job();
    #[cfg(not(target_family = "wasm"))]
    {
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(job()));
        receiver
            .recv_timeout(std::time::Duration::from_secs(20))
            .expect("the template neither hangs nor crashes")
    }
}

fn check(template: &str, expected: &str) {
    match run(template) {
        Ok(text) => assert_eq!(text, expected, "{template}"),
        Err(error) => panic!("{}: {error}", template.chars().take(80).collect::<String>()),
    }
}

fn check_limit(template: &str) {
    let shown: String = template.chars().take(80).collect();
    match run(template) {
        Err(ChatError::TemplateLimit { .. }) => {}
        other => panic!("{shown}: {:?}", other.map(|text| text.len())),
    }
}

fn check_unsupported(template: &str) {
    match run(template) {
        Err(ChatError::TemplateUnsupported { .. }) => {}
        other => panic!("{template}: {other:?}"),
    }
}

#[test]
fn usual_templates() {
    check(
        "{%- for message in messages %}\n{{- '<|im_start|>' + message['role'] + '\n' + message.content | trim + '<|im_end|>\n' }}\n{%- endfor %}\n\
         {%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
        "<|im_start|>user\nHi <b><|im_end|>\n<|im_start|>assistant\nYo<|im_end|>\n<|im_start|>assistant\n",
    );
    check(
        "{{ bos_token }}{% if messages[0].role == 'system' %}{% set loop_messages = messages[1:] %}\
         {% else %}{% set loop_messages = messages %}{% endif %}\
         {% for m in loop_messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}\
         {{ raise_exception('roles must alternate') }}{% endif %}[{{ loop.index }}/{{ loop.length }} {{ m.role | upper }}]\
         {{ m['content'].strip() }}{{ ', ' if not loop.last else eos_token }}{% endfor %}",
        "<bos>[1/2 USER]Hi <b>, [2/2 ASSISTANT]Yo<eos>",
    );
    check(
        "{% macro turn(m, sep='|') %}{{ m.role }}{{ sep }}{% endmacro %}{% set ns = namespace(last=-1) %}\
         {% for m in messages[::-1] %}{% if m.role == 'user' and ns.last < 0 %}{% set ns.last = loop.index0 %}{% endif %}\
         {{ turn(m, sep=':') }}{% endfor %}{{ ns.last }}{{ turn(messages[0]) }}",
        "assistant:user:1user|",
    );
    check(
        "{{ {'a': [1, none, true, 1.5], 'b': 'é\\n'} | tojson }}",
        r#"{"a": [1, null, true, 1.5], "b": "é\n"}"#,
    );
    check("{{ [{'k': 1}] | tojson(indent=2) }}", "[\n  {\n    \"k\": 1\n  }\n]");
    check(
        "{% for k, v in {'b': 1, 'A': 2}.items() if v > 1 %}{{ k }}={{ v }}{% else %}none{% endfor %}",
        "A=2",
    );
    check(
        "{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}",
        "02",
    );
    check(
        "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | first | trim }}",
        "Hi <b>",
    );
    check(
        "{% set x %}a{{ 1 + 1 }}{% endset %}{% generation %}{{ x * 2 }}{% endgeneration %}",
        "a2a2",
    );
    check(
        "{{ tools is defined }} {{ strftime_now is defined }} {{ nothing | default('d') }} {{ x }}",
        "False False d ",
    );
    check(
        "{% if tools is not none and tools %}{{ tools[0].function.name }}{% endif %}{{ 'x' if false }}",
        "",
    );
}

#[test]
fn calls_and_tools_are_data() {
    let conversation = Conversation::from_json(
        r#"{"messages": [{"role": "assistant", "thinking": "hm", "tool_calls": [{"id": 1, "name": "f", "arguments": "{\"b\": [1]}"}]}],
            "tools": [{"name": "f"}], "thinking": true}"#,
    )
    .unwrap();
    let template = "{{ messages[0].tool_calls[0].function.arguments | tojson }}{{ messages[0].reasoning_content }}\
                    {{ messages[0].content }}{{ tools[0].function.name }}{{ enable_thinking }}{{ messages[0].tool_calls[0].id }}";
    let prompt = render_template(template, &conversation, &Limits::default()).unwrap();
    assert_eq!(prompt.text(), r#"{"b": [1]}hmNonefTrue1"#);
}

#[test]
fn text_that_explodes() {
    check_limit("{{ 'x' * 1000000000 }}");
    check_limit("{{ 9000000000000000000 * 'x' }}");
    check_limit("{{ [1] * 1000000000 }}");
    check_limit(
        "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
    );
    check_limit(
        "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
    );
    check_limit(
        "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}{% endfor %}",
    );
    check_limit(&format!("{{% set x = 'x' %}}{}", "{% set x = x ~ x %}".repeat(99)));
    check_limit("{{ ('a' * 10000) | replace('a', 'b' * 10000) }}");
    check_limit("{{ ('a' * 10000).replace('', 'b' * 10000) }}");
    check_limit("{{ (['a'] * 10000) | join('b' * 10000) }}");
    check_limit("{{ ('b' * 10000).join(['a'] * 10000) }}");
    check_limit("{{ 'a\nb' | indent(1000000000) }}");
    check_limit("{{ ('a\n' * 10000) | indent('b' * 10000) }}");
    check_limit("{{ [1] | tojson(indent=1000000000) }}");
    check_limit("{{ ([1] * 10000) | tojson(separators=['a' * 10000, '']) }}");
    check_limit(&format!(
        "{{% macro m(x) %}}{{{{ x }}}}{{{{ x }}}}{{% endmacro %}}{{{{ {}'x'{} }}}}",
        "m(".repeat(30),
        ")".repeat(30)
    ));
    check_limit(
        "{% for i in range(1000000) %}padding padding padding padding padding padding padding padding{% endfor %}",
    );
}

#[test]
fn data_that_explodes() {
    let doubling = "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(100) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}";
    for use_it in [
        "{{ ns.x }}",
        "{{ ns.x == ns.y }}",
        "{{ ns.x | tojson }}",
        "{{ ns.x | string | length }}",
        "{{ ns.x in [ns.y] }}",
        "{{ [ns.x, ns.y] | unique }}",
    ] {
        check_limit(&format!("{doubling}{use_it}"));
    }
    check_limit(
        "{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = [ns.x] %}{% endfor %}",
    );
    check_limit(
        "{% set ns = namespace(x={}) %}{% for i in range(100000) %}{% set ns.x = {'k': ns.x} %}{% endfor %}",
    );
    check_limit(
        "{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    );
    assert!(matches!(
        run("{% set ns = namespace() %}{% set ns.x = [ns] %}"),
        Err(ChatError::TemplateType { .. })
    ));
    assert!(matches!(
        run("{% set ns = namespace() %}{% set ns.x = ns %}"),
        Err(ChatError::TemplateType { .. })
    ));
}

#[test]
fn loops_that_do_not_end() {
    check_limit("{% for i in range(1000000000000) %}{% endfor %}");
    check_limit("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}");
    check_limit(
        "{% for a in range(100000) %}{% for b in 'x' * 100000 %}{% break %}{% endfor %}{% endfor %}",
    );
    check_limit("{% set s = 'x' * 1000000 %}{% for i in range(100000) %}{{ s[0] }}{% endfor %}");
    check_limit(
        "{% set s = 'x' * 1000000 %}{% for i in range(100000) %}{% set t = s[1:] %}{% endfor %}",
    );
    check_limit(
        "{% set s = 'x' * 1000000 %}{% for i in range(100000) %}{{ s | length }}{% endfor %}",
    );
    check_limit(
        "{% set s = 'x' * 1000000 %}{% for i in range(100000) %}{{ 'y' in s }}{{ s.startswith('y') }}{% endfor %}",
    );
    check_limit(
        "{% set s = 'x' * 1000000 %}{% for i in range(100000) %}{{ {}[s] }}{{ {}.get(s) }}{% endfor %}",
    );
    check_limit("{{ range(1000000) | unique | length }}");
    check_limit(
        "{% for a in range(100000) %}{% for b in range(1000) | sort(reverse=true) %}{% endfor %}{% endfor %}",
    );
    check_limit(
        "{% for a in range(100000) %}{% if range(1000) | map('string') | select('eq', 'x') | list %}{% endif %}{% endfor %}",
    );
    let nested: String = (0..20).map(|i| format!("{{% for v{i} in range(9) %}}")).collect();
    check_limit(&format!("{nested}{{{{ v0 + v19 }}}}{}", "{% endfor %}".repeat(20)));
}

#[test]
fn recursion_is_limited() {
    check_limit("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
    check_limit(
        "{% macro a(n) %}{{ b(n + 1) }}{% endmacro %}{% macro b(n) %}{{ a(n) }}{% endmacro %}{{ a(0) }}",
    );
    check_limit("{% macro m(x=m()) %}{% endmacro %}{{ m() }}");
    check_limit(
        "{% macro m(l) %}{% for x in l %}{{ m([l, l]) }}{% endfor %}{% endmacro %}{{ m([1]) }}",
    );
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("-", ""),
        ("not ", ""),
        ("{'a':", "}"),
        ("x[", "]"),
        ("f(", ")"),
        ("x if x else ", ""),
    ] {
        check_limit(&format!("{{{{ {}1{} }}}}", open.repeat(10_000), close.repeat(10_000)));
    }
    for (open, close) in [
        ("{% if 1 %}", "{% endif %}"),
        ("{% for x in y %}", "{% endfor %}"),
        ("{% set x %}", "{% endset %}"),
    ] {
        check_limit(&format!("{}{}", open.repeat(5_000), close.repeat(5_000)));
    }
}

#[test]
fn length_alone_is_harmless() {
    check(&format!("{{{{ 1{} }}}}", " + 1".repeat(20_000)), "20001");
    check(&format!("{{{{ ' a '{} }}}}", " | trim".repeat(20_000)), "a");
    check(
        &format!(
            "{{% if false %}}{}{{% else %}}b{{% endif %}}",
            "{% elif false %}a".repeat(10_000)
        ),
        "b",
    );
    check(&format!("{{{{ x{} }}}}", " or x".repeat(20_000)), "");
    check(&"{ ".repeat(100_000), &"{ ".repeat(100_000));
    check_limit(&" ".repeat(300_000));
}

#[test]
fn nothing_outside_can_be_reached() {
    for tag in [
        "include 'x'",
        "import 'x' as y",
        "from 'x' import y",
        "extends 'x'",
        "block x",
        "do x()",
        "call x()",
        "filter x",
        "with x = 1",
        "raw",
        "autoescape true",
    ] {
        check_unsupported(&format!("{{% {tag} %}}"));
    }
    for call in [
        "open('/etc/passwd')",
        "strftime_now('%Y')",
        "lipsum()",
        "cycler()",
        "super()",
        "debug()",
        "x()",
    ] {
        check_unsupported(&format!("{{{{ {call} }}}}"));
    }
    check_unsupported("{{ 'x' | pprint }}");
    check_unsupported("{{ '%9999999999d' | format(1) }}");
    check_unsupported("{{ '{:9999999999}'.format(1) }}");
    check_unsupported("{{ 'x'.center(9999999999) }}");
    check_unsupported("{{ 'x'.__class__() }}");
    check_unsupported("{{ messages.append(1) }}");
    check_unsupported("{{ 1 is filter }}");
    check_unsupported("{% for x in y recursive %}{% endfor %}");
    check("{{ ''.__class__ }}{{ messages.__init__ }}{{ messages[0].__globals__ }}", "");
}

#[test]
fn wrong_templates_say_where() {
    let line_of = |template: &str| match run(template) {
        Err(ChatError::TemplateSyntax { line, .. } | ChatError::TemplateType { line, .. }) => line,
        other => panic!("{template}: {other:?}"),
    };
    assert_eq!(line_of("a\nb {{ 1 + }}"), 2);
    assert_eq!(line_of("a\n{% if x %}\n"), 2);
    assert_eq!(line_of("{% endif %}"), 1);
    assert_eq!(line_of("\n\n{{ 1 + 'a' }}"), 3);
    assert_eq!(line_of("{{ x.y }}\n{{ x }}"), 1);
    assert_eq!(line_of("{{ 9 ** 9 ** 9 }}"), 1);
    assert_eq!(line_of("{{ 1 // 0 }}"), 1);
    assert_eq!(line_of("{% set a, b = [1] %}"), 1);
    assert!(
        matches!(run("{{ raise_exception('no') }}"), Err(ChatError::TemplateRaised { message }) if message == "no")
    );
}
