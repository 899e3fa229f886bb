//! Media in a rendered conversation: the template's marker is replaced by a placeholder for each soft token.

use rullama_chat::{Prompt, Span};
use rullama_tokenizer::Tokenizer;

use super::{EncodedMedia, MediaKind, Piece};
use crate::{error::RuntimeError, session::Media};

const KINDS: [MediaKind; 3] = [MediaKind::Image, MediaKind::Audio, MediaKind::Video];

/// How a family of models writes a kind of media in prompts.
struct Markup {
    kind: MediaKind,
    /// What templates write, once per medium.
    marker: &'static str,
    /// Tokens that may stand for a soft token; the first that the vocabulary has does. They are not embedded.
    placeholders: &'static [&'static str],
    /// Text before and after the soft tokens.
    ends: (&'static str, &'static str),
}

/// Markup of Gemma 4, then of Gemma 3. Files of Gemma 3 may lack the token for soft tokens, whose row has no meaning.
const MARKUP: [Markup; 4] = [
    Markup {
        kind: MediaKind::Image,
        marker: "<|image|>",
        placeholders: &["<|image|>"],
        ends: ("<|image>", "<image|>"),
    },
    Markup {
        kind: MediaKind::Audio,
        marker: "<|audio|>",
        placeholders: &["<|audio|>"],
        ends: ("<|audio>", "<audio|>"),
    },
    Markup {
        kind: MediaKind::Video,
        marker: "<|video|>",
        placeholders: &["<|video|>"],
        ends: ("<|image>", "<image|>"),
    },
    Markup {
        kind: MediaKind::Image,
        marker: "<start_of_image>",
        placeholders: &["<image_soft_token>", "<pad>"],
        ends: ("\n\n<start_of_image>", "<end_of_image>\n\n"),
    },
];

impl Markup {
    /// The first marker in a text, and its position.
    fn first(text: &str) -> Option<(usize, &'static Self)> {
        let places = MARKUP.iter().filter_map(|markup| Some((text.find(markup.marker)?, markup)));
        places.min_by_key(|(at, _)| *at)
    }

    /// The placeholder and its id.
    fn placeholder(&self, tokenizer: &Tokenizer) -> Result<(&'static str, u32), RuntimeError> {
        let known = |text: &&'static str| Some((*text, tokenizer.id_of(text)?));
        let found = self.placeholders.iter().find_map(known);
        found.ok_or(RuntimeError::NoMarker { marker: self.placeholders[0] })
    }
}

impl MediaKind {
    /// Gemma 4's marker, by which saved conversations name the kind.
    pub fn marker(self) -> &'static str {
        match self {
            Self::Image => "<|image|>",
            Self::Audio => "<|audio|>",
            Self::Video => "<|video|>",
        }
    }

    /// The id of the token that stands for each soft token in prompts of a model with this vocabulary.
    ///
    /// # Errors
    /// If the vocabulary has no markers of this kind.
    pub fn placeholder(self, tokenizer: &Tokenizer) -> Result<u32, RuntimeError> {
        let known =
            |markup: &&Markup| markup.kind == self && tokenizer.id_of(markup.marker).is_some();
        let markup = MARKUP.iter().find(known);
        let markup = markup.ok_or(RuntimeError::NoMarker { marker: self.marker() })?;
        Ok(markup.placeholder(tokenizer)?.1)
    }

    /// Whether soft tokens attend to each other bidirectionally: those of images do, those of audio do not.
    pub fn is_whole(self) -> bool {
        self != Self::Audio
    }

    fn plural(self) -> &'static str {
        match self {
            Self::Image => "images",
            Self::Audio => "audio clips",
            Self::Video => "videos",
        }
    }
}

impl EncodedMedia {
    /// The text in the prompt.
    fn text(&self, (opening, closing): (&str, &str), placeholder: &str) -> String {
        let piece = |piece: &Piece| {
            let time = piece.seconds.map_or_else(String::new, |seconds| {
                format!("{:02}:{:02} ", seconds / 60, seconds % 60)
            });
            time + opening + &placeholder.repeat(piece.rows.count) + closing
        };
        self.pieces.iter().map(piece).collect::<Vec<_>>().join(" ")
    }

    /// The media that replace its placeholders.
    pub fn media(&self, placeholder: u32) -> impl Iterator<Item = Media> {
        let whole = self.kind.is_whole();
        self.pieces.iter().map(move |piece| Media { placeholder, rows: piece.rows.clone(), whole })
    }
}

/// The spans of a prompt with a placeholder for each soft token, and the media that replace the placeholders, both in prompt order.
/// `encoded` has the media of each kind in the order of their markers.
pub(crate) fn spread(
    prompt: &Prompt,
    encoded: &[EncodedMedia],
    tokenizer: &Tokenizer,
) -> Result<(Vec<Span>, Vec<Media>), RuntimeError> {
    let mut waiting = KINDS.map(|kind| encoded.iter().filter(move |other| other.kind == kind));
    let mut places = [0; KINDS.len()];
    let (mut spans, mut media) = (Vec::new(), Vec::new());
    for span in prompt.spans() {
        let mut text = String::new();
        let mut rest = span.text.as_str();
        // Only the template's own markers count; markers in user text are text.
        while let Some((at, markup)) = Markup::first(rest).filter(|_| span.trusted) {
            let kind = markup.kind as usize;
            places[kind] += 1;
            text.push_str(&rest[..at]);
            if let Some(encoded) = waiting[kind].next() {
                let (placeholder, id) = markup.placeholder(tokenizer)?;
                text.push_str(&encoded.text(markup.ends, placeholder));
                media.extend(encoded.media(id));
            }
            rest = &rest[at + markup.marker.len()..];
        }
        text.push_str(rest);
        spans.push(Span { text, trusted: span.trusted });
    }
    for (kind, places) in KINDS.into_iter().zip(places) {
        let given = encoded.iter().filter(|other| other.kind == kind).count();
        if places != given {
            return Err(RuntimeError::NotGiven { what: kind.plural(), places, given });
        }
    }
    Ok((spans, media))
}
