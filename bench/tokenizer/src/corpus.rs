//! The texts to encode, made the same way every time.

/// A text and what it is.
pub(crate) struct Text {
    pub(crate) name: &'static str,
    pub(crate) text: String,
}

/// Length that long texts are brought to, in bytes.
const LENGTH: usize = 256 << 10;

/// All texts. `tokens` are those of the vocabulary.
pub(crate) fn texts(tokens: &[&str]) -> Vec<Text> {
    let prose: Vec<_> = include_str!("../text/prose.txt").lines().collect();
    let languages: Vec<_> = include_str!("../text/languages.txt").lines().collect();
    let words: Vec<_> = tokens.iter().copied().filter(|token| is_word(token)).collect();
    let code = concat!(
        include_str!("../../../goldens/chat-template/google-gemma-4-31B-it.2026-07-09.jinja"),
        include_str!("main.rs"),
        include_str!("oracle.rs"),
        include_str!("corpus.rs"),
    );
    let mut line = shuffled(&prose, " ", LENGTH);
    line.truncate(100_000);
    let text = |name, text| Text { name, text };
    vec![
        text("English prose", shuffled(&prose, "\n\n", LENGTH)),
        text("source code", code.repeat(LENGTH / code.len() + 1)),
        text("twenty languages", shuffled(&languages, "\n", LENGTH)),
        text("one line of 100,000", line),
        text("words that never repeat", shuffled(&words, "", LENGTH).replace('▁', " ")),
        text("one sentence", prose[0].into()),
        text("two words", "Hello, world!".into()),
    ]
}

fn is_word(token: &str) -> bool {
    token
        .strip_prefix('▁')
        .is_some_and(|word| word.chars().count() > 3 && word.chars().all(char::is_alphabetic))
}

/// Parts in a random but fixed order until there are `length` bytes.
fn shuffled(parts: &[&str], between: &str, length: usize) -> String {
    let mut text = String::new();
    let mut state = 1_u64;
    while text.len() < length {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(parts[(state >> 33) as usize % parts.len()]);
        text.push_str(between);
    }
    text
}
