//! Media in a rendered conversation: the template's marker is repeated once per soft token.

use rullama_chat::{Prompt, Span};
use rullama_tokenizer::Tokenizer;

use super::{EncodedMedia, MediaKind, Piece};
use crate::{error::RuntimeError, session::Media};

const KINDS: [MediaKind; 3] = [MediaKind::Image, MediaKind::Audio, MediaKind::Video];

impl MediaKind {
    /// The placeholder token, once per soft token; templates write one per medium.
    pub fn marker(self) -> &'static str {
        match self {
            Self::Image => "<|image|>",
            Self::Audio => "<|audio|>",
            Self::Video => "<|video|>",
        }
    }

    /// The id of [`Self::marker`].
    ///
    /// # Errors
    /// If the vocabulary has none.
    pub fn placeholder(self, tokenizer: &Tokenizer) -> Result<u32, RuntimeError> {
        let marker = self.marker();
        tokenizer.id_of(marker).ok_or(RuntimeError::NoMarker { marker })
    }

    /// Markers before and after the soft tokens.
    fn ends(self) -> (&'static str, &'static str) {
        match self {
            Self::Image | Self::Video => ("<|image>", "<image|>"),
            Self::Audio => ("<|audio>", "<audio|>"),
        }
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
    fn text(&self) -> String {
        let (opening, closing) = self.kind.ends();
        let piece = |piece: &Piece| {
            let time = piece.seconds.map_or_else(String::new, |seconds| {
                format!("{:02}:{:02} ", seconds / 60, seconds % 60)
            });
            time + opening + &self.kind.marker().repeat(piece.rows.count) + closing
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
        while let Some((at, kind)) = next_marker(rest).filter(|_| span.trusted) {
            places[kind] += 1;
            text.push_str(&rest[..at]);
            if let Some(encoded) = waiting[kind].next() {
                text.push_str(&encoded.text());
                media.extend(encoded.media(KINDS[kind].placeholder(tokenizer)?));
            }
            rest = &rest[at + KINDS[kind].marker().len()..];
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

/// The first marker in a text, and the index of its kind.
fn next_marker(text: &str) -> Option<(usize, usize)> {
    let places = KINDS.iter().enumerate();
    places.filter_map(|(kind, known)| Some((text.find(known.marker())?, kind))).min()
}
