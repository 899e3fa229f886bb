//! Templates that try to exhaust memory, time or the stack: each fails with a sentence, fast, and takes little memory.
#![cfg(feature = "jinja")]

use std::time::{Duration, Instant};

use peak_alloc::PeakAlloc;
use rullama_chat::{ChatError, ChatTemplate, Conversation, Message};

/// Measures what a rendering takes.
#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Twice the 256 MiB that values may take, since a growing text is copied, and what one operation takes before its result is counted.
const MOST_MEMORY: usize = 700 << 20;
/// Each takes a second or two at most in a debug build; unlimited ones take hours.
const MOST_TIME: Duration = Duration::from_secs(60);

fn conversation(text: &str) -> Conversation {
    let messages = vec![Message::new("user", text), Message::new("assistant", "Yes.")];
    Conversation { messages, ..Conversation::default() }
}

/// The start of most templates: a namespace, and a loop of many steps.
fn repeat(start: &str, body: &str) -> String {
    format!(
        "{{% set ns = namespace(x={start}) %}}{{% for i in range(99999) %}}{body}{{% endfor %}}"
    )
}

fn in_a_namespace(start: &str, value: &str) -> String {
    repeat(start, &format!("{{% set ns.x = {value} %}}"))
}

/// Templates and a part of the error, if the template has to fail.
fn hostile() -> Vec<(String, Option<&'static str>)> {
    let large = Some("larger than the");
    let memory = Some("too much memory");
    let deep = Some("nested more than");
    let long = Some("more than 250 parts");
    let work = Some("too much text");
    let constant = Some("product of constants");
    // 4 MiB of text, and a list with many elements.
    let text = "{% set t = messages[0].content %}{% set t = t * 1048576 %}";
    let list = "{% set l = range(60000) | list %}";
    let with = |start: &str, rest: &str| format!("{start}{rest}");
    let plain = |template: &str| template.to_owned();
    vec![
        // Operators.
        (in_a_namespace("'abcd'", "ns.x ~ ns.x"), large),
        (in_a_namespace("'abcd'", "ns.x + ns.x"), large),
        (in_a_namespace("[1, 2]", "ns.x + ns.x"), large),
        (in_a_namespace("[1, 2]", "[ns.x, ns.x]"), large),
        (in_a_namespace("{'a': 1}", "{'a': ns.x, 'b': ns.x}"), large),
        (in_a_namespace("[1]", "ns.x * 2"), large),
        (in_a_namespace("'a'", "ns.x * 10"), large),
        (plain("{{ messages[0].content * 1000000000000 }}"), large),
        (plain("{{ [messages] * 1000000000000 }}"), large),
        (plain("{{ ([messages] * 9223372036854775807) | length }}"), large),
        (
            plain("{% set s = 'abcd' %}{% for i in range(40) %}{% set s = s ~ s %}{% endfor %}ok"),
            None,
        ),
        (plain("{{ 'a' * 99999999 }}"), constant),
        (plain("{{ ('a' * 999) * 999 * 999 }}"), constant),
        (plain("{{ ([1] * 1000000000) ~ 'a' }}"), constant),
        (plain("{% if x == 9999 * 'a' %}{% endif %}"), constant),
        (plain(&"{{ 'a' * 1000 }}".repeat(10_000)), None),
        // Many values, each of which is allowed.
        (
            with(
                text,
                "{% set ns = namespace(l=[]) %}{% for i in range(99) %}{% set ns.l = ns.l + [t ~ i] %}{% endfor %}",
            ),
            large,
        ),
        (
            with(
                text,
                "{% for i in range(999) %}{% set ns = namespace(x=t ~ i) %}{{ ns.x[:1] }}{% endfor %}",
            ),
            memory,
        ),
        (
            with(
                text,
                "{% macro m(a, b=t ~ 1) %}{{ b }}{% endmacro %}{% for i in range(99) %}{% set x = m() %}{% endfor %}",
            ),
            memory,
        ),
        (
            repeat(
                "0",
                "{% macro m() %}{{ i }}{% endmacro %}{% set ns.x = 1 %}{% macro n() %}{{ m() }}{% endmacro %}{% macro o() %}{% endmacro %}",
            ),
            memory,
        ),
        // Filters.
        (plain("{{ '%0999999999d' | format(1) }}"), large),
        (plain("{{ '%.999999999f' | format(1) }}"), large),
        (plain("{{ '{:>999999999}'.format(1) }}"), large),
        (plain("{{ '{:0.999999999f}'.format(1.5) }}"), large),
        (
            with(
                text,
                &format!("{{{{ '{}' | format({}) }}}}", "%s".repeat(99), ["t"; 99].join(", ")),
            ),
            work,
        ),
        (with(text, &format!("{{{{ '{}'.format(t) }}}}", "{0}".repeat(99))), large),
        (with(text, "{{ t | replace('', t) }}"), large),
        (with(text, "{{ t | replace('x', t) }}"), large),
        (with(text, "{{ t.replace('x', 'xxxxxxxx') }}"), large),
        (with(text, "{{ t | list }}"), large),
        (with(text, "{{ t | batch(1) }}"), large),
        (with(text, "{{ t.split('') }}"), large),
        (with(text, "{{ t | split('x') }}"), large),
        (with(text, "{{ t.replace('x', '\\n').splitlines() }}"), large),
        (with(text, "{{ t.replace('x', '\\n') | lines }}"), large),
        (with(text, "{{ t | map('upper') | join(t) }}"), work),
        (
            with(list, "{% set t = messages[0].content * 9999 %}{{ l | join(t) }}{{ t.join(l) }}"),
            large,
        ),
        (with(list, "{% set t = messages[0].content * 9999 %}{{ t.join(l) }}"), large),
        (with(list, "{{ l | batch(999999999, 1) }}"), large),
        (with(list, "{{ l | slice(999999999) }}"), large),
        (plain("{{ 'a\\nb\\nc' | indent(999999999) }}"), large),
        (plain("{{ 'a\\nb\\nc' | indent(width=999999999) }}"), large),
        (plain("{{ range(1000000000) }}"), Some("too many elements")),
        (
            plain("{{ range(9223372036854775807, -9223372036854775807, -1) }}"),
            Some("too many elements"),
        ),
        (with(list, "{% for i in l %}{% set k = l | list %}{% endfor %}"), memory),
        (with(list, "{% for i in l %}{% set k = l | map('string') | list %}{% endfor %}"), memory),
        (with(list, "{% for i in l %}{% set k = l[::-1] %}{% endfor %}"), memory),
        (with(list, "{% for i in l %}{% set k = l | reverse | list %}{% endfor %}"), memory),
        (in_a_namespace("[1]", "ns.x + [ns.x | tojson(indent=16)]"), large),
        (in_a_namespace("[[1]]", "[ns.x | tojson, ns.x | string, ns.x ~ '']"), large),
        // Output, and output that is captured.
        (repeat("0", &"x".repeat(9999)), memory),
        (format!("{{% set y %}}{}{{% endset %}}", repeat("0", &"x".repeat(9999))), memory),
        (
            format!("{{% filter upper %}}{}{{% endfilter %}}", repeat("0", &"x".repeat(9999))),
            memory,
        ),
        (
            format!(
                "{{% macro m() %}}{}{{% endmacro %}}{{{{ m() | length }}}}",
                repeat("0", &"x".repeat(9999))
            ),
            memory,
        ),
        (repeat("0", "{{ messages[0].content * 999 }}"), memory),
        (with(text, "{% for i in range(9) %}{{ t }}{% endfor %}"), Some("its output has")),
        // Depth: the engine would overflow the stack.
        (in_a_namespace("0", "[ns.x]"), deep),
        (in_a_namespace("0", "{'a': ns.x}"), deep),
        (in_a_namespace("0", "dict(a=ns.x)"), deep),
        (in_a_namespace("0", "namespace(x=ns.x)"), Some("namespace can be neither")),
        (
            repeat("0", "{% set n = namespace() %}{% set n.x = ns.x %}{% set ns.x = n %}"),
            Some("namespace can be neither"),
        ),
        (
            plain("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}"),
            Some("namespace can be neither"),
        ),
        (
            plain("{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns.x }}"),
            Some("namespace can be neither"),
        ),
        (plain("{{ namespace(a=1) }}"), Some("namespace can be neither")),
        (in_a_namespace("[1, 2]", "ns.x[0:]"), None),
        (in_a_namespace("[1, 2]", "ns.x | reverse"), None),
        (in_a_namespace("{'a': 1}", "{'a': ns.x}.items() | list | first"), deep),
        (repeat("0", "{% macro m() %}{{ ns.x }}{% endmacro %}{% set ns.x = m %}"), None),
        (plain("{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}"), Some("recursion limit")),
        (
            plain("{% for i in [[1]] recursive %}{{ loop([[[1]]]) }}{% endfor %}"),
            Some("recursion limit"),
        ),
        (plain("{% block a %}{{ self.a() }}{% endblock %}"), Some("recursion limit")),
        // Time: many steps over much text.
        (with(text, "{% for i in range(99999) %}{% if 'y' in t %}{% endif %}{% endfor %}"), work),
        (
            with(
                text,
                "{% set u = t ~ 1 %}{% for i in range(99999) %}{% if t ~ 1 == u %}{% endif %}{% endfor %}",
            ),
            memory,
        ),
        (
            with(
                text,
                "{% set u = t ~ 1 %}{% for i in range(99999) %}{% if t < u < t %}{% endif %}{% endfor %}",
            ),
            work,
        ),
        (with(text, "{% for i in range(99999) %}{{ t[-1] }}{{ t[-1:] }}{% endfor %}"), work),
        (with(text, "{% for i in range(99999) %}{% if t is eq t %}{% endif %}{% endfor %}"), work),
        (with(text, "{% for i in range(99999) %}{{ t | length }}{% endfor %}"), work),
        (with(text, "{% for i in range(99999) %}{{ t.find('y') }}{% endfor %}"), work),
        (
            with(
                text,
                "{% for i in range(99999) %}{% if loop.changed(t) %}{% endif %}{% endfor %}",
            ),
            work,
        ),
        (with(list, "{{ l | map('string') | map('list') | sum }}"), large),
        (plain("{{ 'aaa'.count('') }}"), None),
        (plain("{{ 'abc'[0:2:-1] }}{{ 'abc'[-9223372036854775807::-9223372036854775807] }}"), None),
        // Syntax on which the engine's parser, compiler or destructors would recurse.
        (format!("{{{{ x{} }}}}", "+1".repeat(30_000)), long),
        (format!("{{{{ {}x }}}}", "not ".repeat(30_000)), long),
        (format!("{{{{ {}x }}}}", "-".repeat(30_000)), long),
        (format!("{{{{ x{} }}}}", "|e".repeat(30_000)), long),
        (format!("{{{{ x{} }}}}", "[0]".repeat(30_000)), long),
        (format!("{{{{ x{} }}}}", "()".repeat(30_000)), long),
        (format!("{{{{ x{} }}}}", ".a".repeat(30_000)), long),
        (format!("{{{{ x{} }}}}", " is none".repeat(30_000)), long),
        (format!("{{{{ x{} }}}}", " if 1 else 2".repeat(20_000)), long),
        (format!("{{{{ x{} }}}}", " < 1".repeat(30_000)), long),
        (format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(20_000)), long),
        (format!("{}{}", "(".repeat(9), "{{ x }}"), None),
        (format!("{{{{ {}x{} }}}}", "(".repeat(30_000), ")".repeat(30_000)), long),
        (format!("{{{{ [{}] }}}}", "1, ".repeat(30_000)), None),
    ]
}

/// Renders a template, and says what memory it took at most and for how long.
fn rendered(
    template: &str,
    conversation: &Conversation,
) -> (Result<String, ChatError>, usize, Duration) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let start = Instant::now();
    let prompt = ChatTemplate::new(template, "<s>", "</s>")
        .and_then(|template| template.expect("a template").render(conversation, false))
        .map(|prompt| prompt.text());
    (prompt, MEMORY.peak_usage().saturating_sub(before), start.elapsed())
}

/// One test, since memory is measured for the whole process.
#[test]
fn templates_stay_within_their_limits() {
    let mut wrong = Vec::new();
    for (template, expected) in hostile() {
        let name: String = template.chars().take(300).collect();
        let (prompt, memory, time) = rendered(&template, &conversation("xxxx"));
        let bounded = memory < MOST_MEMORY && time < MOST_TIME;
        let as_expected = match (&prompt, expected) {
            (Err(ChatError::Template { message }), Some(part)) => message.contains(part),
            (Ok(text), None) => text.len() < 16 << 20,
            _ => false,
        };
        if !(bounded && as_expected) {
            let prompt = prompt.map(|text| text.len());
            let memory = memory >> 20;
            wrong.push(format!(
                "{prompt:?}, {memory} MiB, {time:?} instead of {expected:?}: {name}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    large_conversations_are_rendered();
}

/// Templates with the habits of real ones, and a conversation with large documents.
fn large_conversations_are_rendered() {
    let document = "Line of a document, with <tags> and ünïcode.\n".repeat(200_000);
    let mut conversation = conversation(&document);
    for turn in 0..1000 {
        conversation
            .messages
            .push(Message::new("user", format!("Question {turn}? {}", "x".repeat(400))));
        conversation.messages.push(Message::new("assistant", "<think>\nhm\n</think>\n\nAnswer."));
    }
    let template = "{% set ns = namespace(all='', last=0, seen=[]) %}\
        {% for message in messages %}\
        {% if message.role == 'user' and not (message.content.startswith('<tool_response>') or '<x>' in message.content) %}\
        {% set ns.last = loop.index0 %}{% endif %}{% set ns.seen = ns.seen + [message.role] %}\
        {% if loop.index0 == (messages | length) - 1 %}{% set ns.all = ns.all ~ message.role %}{% endif %}{% endfor %}\
        {% for message in messages %}{% set content = message.content | trim %}\
        {% if '</think>' in content %}{% set content = content.split('</think>')[-1].lstrip('\\n') %}{% endif %}\
        {{ '<|im_start|>' + message['role'] + '\\n' + content + '<|im_end|>' + '\\n' }}{% endfor %}\
        {{ ns.last }} {{ ns.all }} {{ ns.seen | length }} {{ messages[1:] | selectattr('role', 'equalto', 'user') | list | length }}";
    let (prompt, memory, _) = rendered(template, &conversation);
    let text = prompt.expect("a prompt");
    assert!(memory < MOST_MEMORY, "{} MiB", memory >> 20);
    assert!(text.contains(&document.trim()[..1000]) && text.len() > document.len());
    assert!(text.ends_with("2000 assistant 2002 1000"), "{}", &text[text.len() - 60..]);
}
