//! Bytes as a text to encode and as a vocabulary.

use std::{rc::Rc, sync::LazyLock};

use pollster::block_on;
use rullama_gguf::{Gguf, Optional};
use rullama_source::MemorySource;
use rullama_tokenizer::{Render, Span, Special, Tokenizer, Vocab};

use super::text;
use crate::golden;

/// A tokenizer and the types of its tokens.
struct Subject {
    tokenizer: Tokenizer,
    types: Vec<i64>,
    /// Whether decoding need not give the text back: bytes without a token are dropped, spaces are put in.
    lossy: bool,
}

/// The 640 tokens of the golden models.
static SMALL: LazyLock<Subject> = LazyLock::new(|| {
    let source = MemorySource::new("golden", golden("gguf/micro-e2b-Q8_0.gguf"));
    let file = block_on(Gguf::open(Rc::new(source))).expect("a valid golden file");
    let strings = |key: &str| file.strings(key).expect("the golden file has a vocabulary");
    let id = |key: &str| file.u32(key).optional().expect("the golden file has ids");
    let types = file.integers("tokenizer.ggml.token_type").expect("tokens have types");
    Subject::new(Vocab {
        tokens: strings("tokenizer.ggml.tokens").iter().collect(),
        types,
        merges: strings("tokenizer.ggml.merges").iter().collect(),
        bos: id("tokenizer.ggml.bos_token_id"),
        eos: id("tokenizer.ggml.eos_token_id"),
        unknown: id("tokenizer.ggml.unknown_token_id"),
        ..Vocab::default()
    })
    .expect("a valid golden vocabulary")
});

/// Encodes the bytes as text with a known vocabulary, and parses them as a vocabulary, one token, merge or id per line
/// (`~` is a line break): no text causes a panic, is lost, or can forge a special token.
pub fn tokenizer(data: &[u8]) {
    let text = text(data);
    SMALL.check(&text);
    SMALL.decode_any(data);
    let lines: Vec<String> = text.split('\n').map(|line| line.replace('~', "\n")).collect();
    let scores = scores(&lines);
    if let Some(subject) = Subject::new(vocabulary(&lines, &scores)) {
        subject.check(&text);
        subject.decode_any(data);
    }
}

fn scores(lines: &[String]) -> Vec<f32> {
    lines.iter().filter_map(|line| line.strip_prefix('#')?.parse().ok()).collect()
}

/// A vocabulary out of lines, made to be written by hand and by chance. The first character says what a line is: a digit
/// is the type of a token, `+` a merge, `#` a score, `M` the model, `P` the pre-tokenizer, `S` a space prefix, any other
/// letter an id.
fn vocabulary<'a>(lines: &'a [String], scores: &'a [f32]) -> Vocab<'a> {
    let mut vocab = Vocab { scores: (!scores.is_empty()).then_some(scores), ..Vocab::default() };
    for line in lines {
        let mut chars = line.chars();
        let Some(first) = chars.next() else { continue };
        let rest = chars.as_str();
        let id = rest.parse().ok();
        match first {
            '0'..='9' => {
                vocab.tokens.push(rest);
                vocab.types.extend(first.to_digit(10).map(i64::from));
            }
            '+' => vocab.merges.push(rest),
            'M' => vocab.model = Some(rest),
            'P' => vocab.pre = Some(rest),
            'S' => vocab.add_space_prefix = Some(true),
            'b' => vocab.bos = id,
            'e' => vocab.eos = id,
            't' => vocab.eot = id,
            'u' => vocab.unknown = id,
            'p' => vocab.padding = id,
            'm' => vocab.mask = id,
            'E' => vocab.eos_ids.extend(rest.parse::<i64>()),
            's' => vocab.suppress.extend(rest.parse::<i64>()),
            '!' => drop(vocab.types.pop()),
            _ => {}
        }
    }
    vocab
}

impl Subject {
    fn new(vocab: Vocab<'_>) -> Option<Self> {
        match Tokenizer::new(&vocab) {
            Ok(tokenizer) => {
                let lossy = vocab.model == Some("gpt2") || vocab.add_space_prefix == Some(true);
                Some(Self { tokenizer, types: vocab.types, lossy })
            }
            Err(error) => {
                assert!(!error.to_string().is_empty(), "an error without a message: {error:?}");
                None
            }
        }
    }

    fn check(&self, text: &str) {
        let plain = self.encode(text, Special::None);
        assert_eq!(self.specials(&plain), [0u32; 0], "plain text became a special token");
        self.encode(text, Special::UserDefined);
        let parsed = self.encode(text, Special::Parse);

        // How a text is split into spans does not matter, only which of them are trusted.
        let (a, b) = text.split_at(text.floor_char_boundary(text.len() / 3));
        let spans = |spans: [Span<'_>; 2]| self.tokenizer.encode_spans(&spans);
        assert_eq!(spans([Span::Text(a), Span::Text(b)]), plain);
        assert_eq!(spans([Span::Template(a), Span::Template(b)]), parsed);
        let mixed = self.specials(&spans([Span::Template(a), Span::Text(b)]));
        let own = self.specials(&self.tokenizer.encode(a, Special::Parse));
        assert_eq!(mixed, own, "a user forged a marker");
    }

    /// Encodes; decoding must give the text back, except for the difference between `▁` and a space.
    fn encode(&self, text: &str, special: Special) -> Vec<u32> {
        let ids = self.tokenizer.encode(text, special);
        assert!(ids.iter().all(|id| *id < self.tokenizer.token_count()));
        // The unknown token stands for any character.
        if !self.lossy && !ids.iter().any(|id| Some(*id) == self.tokenizer.unknown()) {
            let back = self.tokenizer.decode(&ids, Render::All);
            assert_eq!(back.replace('▁', " "), text.replace('▁', " "), "{special:?}");
        }
        ids
    }

    /// The special tokens among `ids`, without the unknown one, which any character may become.
    fn specials(&self, ids: &[u32]) -> Vec<u32> {
        let special = |id: &&u32| match self.types[**id as usize] {
            1 | 6 => false,
            // User-defined blanks and HTML tags are text that anyone may write.
            4 => !self.tokenizer.token_text(**id).is_some_and(is_text),
            _ => true,
        };
        let known = |id: &&u32| Some(**id) != self.tokenizer.unknown();
        ids.iter().filter(special).filter(known).copied().collect()
    }

    /// Any ids can be decoded, with the same result at once and one by one.
    fn decode_any(&self, data: &[u8]) {
        let ids: Vec<u32> =
            data.as_chunks().0.iter().map(|pair| u16::from_le_bytes(*pair).into()).collect();
        for render in [Render::Plain, Render::Markers, Render::All] {
            let mut stream = self.tokenizer.stream(render);
            let mut streamed: String = ids.iter().map(|id| stream.push(*id)).collect();
            streamed += &stream.finish();
            let decoded = self.tokenizer.decode(&ids, render);
            assert!(
                streamed == decoded || self.lossy && streamed.strip_prefix(' ') == Some(&decoded)
            );
        }
        let unwanted = self.tokenizer.unwanted();
        assert!(unwanted.iter().all(|id| *id < self.tokenizer.token_count()));
    }
}

/// Whether a user-defined token is white space, or looks like a tag.
fn is_text(token: &str) -> bool {
    let inside = token.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    let is_tag = |name: &str| {
        name.strip_prefix('/')
            .unwrap_or(name)
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    token.chars().all(|c| c.is_whitespace() || c == '▁') || inside.is_some_and(is_tag)
}
