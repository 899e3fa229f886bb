//! Decodes token ids to text and gives the properties of single tokens.

use std::borrow::Cow;

use crate::{Stream, Tokenizer, byte_alphabet, kind::Kind};

/// Which special tokens are visible in decoded text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Render {
    /// User-defined ones, where the file has any: text to show to users.
    Plain,
    /// Also the markers of channels and tools, whatever their type in the file: text for the chat parser.
    Markers,
    /// All of them.
    All,
}

/// Markers that structure a reply. `<|tool_response>` is not among them: it ends generation.
const MARKERS: [&str; 18] = [
    "<|channel>",
    "<channel|>",
    "<|tool_call>",
    "<tool_call|>",
    "<tool_response|>",
    "<|\"|>",
    "<start_function_call>",
    "<end_function_call>",
    "<escape>",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<|python_tag|>",
    MEDICAL_THOUGHT[0],
    MEDICAL_THOUGHT[1],
];

/// Delimiters of MedGemma's thoughts.
const MEDICAL_THOUGHT: [&str; 2] = ["<unused94>", "<unused95>"];

/// Tokens that never belong in a reply, by text.
const UNWANTED: [&str; 17] = [
    "<|turn>",
    "<|image>",
    "<|image|>",
    "<image|>",
    "<|audio>",
    "<|audio|>",
    "<audio|>",
    "<|video|>",
    "<start_of_turn>",
    "<start_of_image>",
    "<end_of_image>",
    "<image_soft_token>",
    "<start_function_declaration>",
    "<end_function_declaration>",
    "<|im_start|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
];

impl Tokenizer {
    /// The bytes of a token, which may be an incomplete UTF-8 sequence. An id past the vocabulary has none.
    pub fn piece(&self, id: u32, render: Render) -> Cow<'_, [u8]> {
        let (Some(text), Some(&kind)) = (self.texts.get(id), self.kinds.get(id as usize)) else {
            return Cow::Borrowed(&[]);
        };
        let visible = match kind {
            Kind::Byte(byte) => {
                return Cow::Borrowed(std::slice::from_ref(&BYTES[usize::from(byte)]));
            }
            Kind::Normal if self.byte_level => return byte_alphabet::decode(text).into(),
            Kind::UserDefined | Kind::Verbatim if self.byte_level => true,
            Kind::Normal | Kind::UserDefined | Kind::Verbatim => return spaced(text),
            Kind::Control | Kind::Unknown => match render {
                Render::Plain => false,
                Render::Markers => MARKERS.contains(&text),
                Render::All => true,
            },
            Kind::Unused => false,
        };
        Cow::Borrowed(if visible { text.as_bytes() } else { &[] })
    }

    /// The text of `ids`. Bytes that are not UTF-8 become U+FFFD. The leading space that the vocabulary adds to text is
    /// removed.
    pub fn decode(&self, ids: &[u32], render: Render) -> String {
        let mut bytes = Vec::new();
        for &id in ids {
            bytes.extend_from_slice(&self.piece(id, render));
        }
        if self.space_prefix && bytes.first() == Some(&b' ') {
            bytes.remove(0);
        }
        match String::from_utf8_lossy(&bytes) {
            Cow::Borrowed(_) => String::from_utf8(bytes).expect("checked by the lossy conversion"),
            Cow::Owned(text) => text,
        }
    }

    /// Decodes ids one by one as they are generated.
    pub fn stream(&self, render: Render) -> Stream<'_> {
        Stream::new(self, render)
    }

    /// Number of tokens.
    pub fn token_count(&self) -> u32 {
        self.texts.len()
    }

    /// A token's text as written in the vocabulary, with `▁` for a space.
    pub fn token_text(&self, id: u32) -> Option<&str> {
        self.texts.get(id)
    }

    /// The token with exactly this text.
    pub fn id_of(&self, text: &str) -> Option<u32> {
        self.texts.id_of(text.as_bytes())
    }

    /// The token to put before a prompt; `None` where the vocabulary adds none.
    pub fn begin(&self) -> Option<u32> {
        self.roles.bos.filter(|_| self.ends.0)
    }

    /// The token to put after a whole text, such as a document to embed; most vocabularies have none.
    pub fn end(&self) -> Option<u32> {
        self.roles.eos.filter(|_| self.ends.1)
    }

    /// The beginning-of-sequence token. [`begin`](Self::begin) says whether prompts start with it.
    pub fn bos(&self) -> Option<u32> {
        self.roles.bos
    }

    /// The token that ends a text.
    pub fn eos(&self) -> Option<u32> {
        self.roles.eos
    }

    /// The token that ends a turn.
    pub fn eot(&self) -> Option<u32> {
        self.roles.eot
    }

    /// The unknown token, for bytes without a token.
    pub fn unknown(&self) -> Option<u32> {
        self.roles.unknown
    }

    /// The padding token.
    pub fn padding(&self) -> Option<u32> {
        self.roles.padding
    }

    /// The mask token.
    pub fn mask(&self) -> Option<u32> {
        self.roles.mask
    }

    /// The ids that end generation, ascending.
    pub fn end_of_generation(&self) -> &[u32] {
        &self.roles.ends
    }

    /// Whether `id` ends generation.
    pub fn is_end(&self, id: u32) -> bool {
        self.roles.is_end(id)
    }

    /// The ids the file forbids sampling, ascending.
    pub fn suppressed(&self) -> &[u32] {
        &self.roles.suppressed
    }

    /// All ids that never belong in a reply, ascending: the suppressed ones, media markers, padding, the beginnings of
    /// prompts and turns, the mask, the unknown token and unused tokens.
    pub fn unwanted(&self) -> Vec<u32> {
        let roles = &self.roles;
        let medical =
            |text: &str| MEDICAL_THOUGHT.contains(&text) && self.id_of("<start_of_turn>").is_some();
        let unused = (0..).zip(&self.kinds).filter(|(id, kind)| {
            let text = self.texts.get(*id).filter(|text| is_unused(text) && !medical(text));
            **kind == Kind::Unused || text.is_some()
        });
        let mut ids: Vec<u32> = unused.map(|(id, _)| id).collect();
        ids.extend(UNWANTED.iter().filter_map(|text| self.id_of(text)));
        ids.extend([roles.padding, roles.bos, roles.mask, roles.unknown].into_iter().flatten());
        ids.extend(&roles.suppressed);
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// All bytes, so that single bytes can be borrowed as slices.
static BYTES: [u8; 256] = {
    let mut bytes = [0; 256];
    let mut i = 0;
    while i < 256 {
        bytes[i] = i as u8;
        i += 1;
    }
    bytes
};

fn spaced(text: &str) -> Cow<'_, [u8]> {
    if text.contains('▁') {
        Cow::Owned(text.replace('▁', " ").into_bytes())
    } else {
        Cow::Borrowed(text.as_bytes())
    }
}

/// `<unusedN>`: files give these tokens the type normal.
fn is_unused(text: &str) -> bool {
    let number = text.strip_prefix("<unused").and_then(|rest| rest.strip_suffix('>'));
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}
