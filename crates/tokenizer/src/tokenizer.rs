//! The tokenizer: built and validated once, then used for encoding.

use std::borrow::Cow;

use crate::{
    Span, Special, TokenizerError, Vocab,
    bpe::{Bpe, Encoder, Pieces},
    byte_alphabet,
    chars::Chars,
    kind::Kind,
    marker::{Marker, Markers, recognised},
    merge_list::MergeList,
    merges::Merges,
    pre_tokenizer::PreTokenizer,
    roles::Roles,
    texts::Texts,
};

/// A vocabulary prepared for encoding and decoding.
#[derive(Debug)]
pub struct Tokenizer {
    pub(crate) texts: Texts,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) roles: Roles,
    /// Whether prompts begin with `bos`, and whether texts end with `eos`.
    pub(crate) ends: (bool, bool),
    /// Whether token texts are in the byte alphabet.
    pub(crate) byte_level: bool,
    /// Whether a space is added before text.
    pub(crate) space_prefix: bool,
    markers: Markers,
    bpe: Bpe,
}

impl Tokenizer {
    /// Validates `vocab` and copies what is needed.
    ///
    /// An empty token text is accepted and never matched. If a pair is merged twice, its first rank wins.
    ///
    /// # Errors
    /// If the vocabulary is empty, contradicts itself or is not of this kind: see [`TokenizerError`].
    pub fn new(vocab: &Vocab<'_>) -> Result<Self, TokenizerError> {
        check_shape(vocab)?;
        let pre_tokenizer = pre_tokenizer(vocab)?;
        let byte_level = pre_tokenizer.is_some();
        let texts = Texts::new(&vocab.tokens)?;
        let roles = Roles::new(vocab, &texts)?;
        let kinds = kinds(vocab, &roles, byte_level)?;
        let is_piece = |id: u32| kinds[id as usize] == Kind::Normal;
        let by_score = vocab.scores.filter(|_| vocab.merges.is_empty());
        let list = match by_score {
            Some(scores) => MergeList::by_score(scores, &texts, &kinds)?,
            None => MergeList::new(&vocab.merges, &texts, &is_piece)?,
        };
        if list.merges.is_empty() {
            return Err(TokenizerError::NoMerges);
        }
        let merges = Merges::new(&list);
        let pieces = match pre_tokenizer {
            Some(pre_tokenizer) => {
                Pieces::Bytes { bytes: Box::new(byte_pieces(&texts, is_piece)), pre_tokenizer }
            }
            None => Pieces::Chars {
                chars: chars(&vocab.tokens, &kinds),
                joints: Box::new(list.joints),
                bytes: Box::new(bytes(&kinds, roles.unknown)?),
            },
        };
        // Gemma 4's files set `add_bos_token` to false, but prompts need the token.
        let adds_bos = match (pre_tokenizer, by_score) {
            (Some(pre_tokenizer), _) => vocab.add_bos.unwrap_or(pre_tokenizer.adds_bos),
            (None, Some(_)) => vocab.add_bos.unwrap_or(true),
            (None, None) => true,
        };
        Ok(Self {
            markers: Markers::new(&texts, &kinds)?,
            texts,
            kinds,
            roles,
            ends: (adds_bos, vocab.add_eos.unwrap_or(false)),
            byte_level,
            space_prefix: !byte_level && by_score.is_some() && space_prefix(vocab),
            bpe: Bpe { merges, pieces },
        })
    }

    /// The ids of `text`, without a beginning-of-sequence token.
    pub fn encode(&self, text: &str, special: Special) -> Vec<u32> {
        let is_marker = |marker: &Marker| recognised(self.kinds[marker.id as usize], special);
        self.encode_between(text, &self.markers.find(text, &self.texts, is_marker))
    }

    /// The ids of a text made of trusted and untrusted spans, without a beginning-of-sequence token.
    ///
    /// Special tokens are recognised only where every byte comes from a template. All other text is encoded as one:
    /// merges cross span boundaries.
    pub fn encode_spans(&self, spans: &[Span<'_>]) -> Vec<u32> {
        let mut text = String::new();
        // End offsets of the runs of equally trusted spans; the first run is trusted.
        let mut ends = vec![0];
        for span in spans {
            let (Span::Template(part) | Span::Text(part)) = span;
            text.push_str(part);
            let is_template = matches!(span, Span::Template(_));
            if is_template == (ends.len() % 2 == 1) {
                ends.pop();
            }
            ends.push(text.len());
        }
        let is_marker = |marker: &Marker| {
            let run = ends.partition_point(|end| *end <= marker.place.start);
            let trusted = run % 2 == 0 && marker.place.end <= ends[run];
            let special = if trusted { Special::Parse } else { Special::None };
            recognised(self.kinds[marker.id as usize], special)
        };
        self.encode_between(&text, &self.markers.find(&text, &self.texts, is_marker))
    }

    /// The ids of a prompt: [`encode_spans`](Self::encode_spans), preceded by the token that the vocabulary
    /// [begins](Self::begin) prompts with, unless the spans begin with it.
    pub fn encode_prompt(&self, spans: &[Span<'_>]) -> Vec<u32> {
        let mut ids = self.encode_spans(spans);
        if let Some(bos) = self.begin()
            && ids.first() != Some(&bos)
        {
            ids.insert(0, bos);
        }
        ids
    }

    /// The lengths in bytes of the pieces that the pre-tokenizer splits plain text into; one piece without a pre-tokenizer.
    pub fn pre_tokenize(&self, text: &str) -> Vec<usize> {
        match &self.bpe.pieces {
            Pieces::Chars { .. } => vec![text.len()],
            Pieces::Bytes { pre_tokenizer, .. } => {
                let mut rest = text;
                std::iter::from_fn(|| {
                    let len = Some(rest).filter(|rest| !rest.is_empty())?;
                    let len = pre_tokenizer.piece(len);
                    rest = &rest[len..];
                    Some(len)
                })
                .collect()
            }
        }
    }

    fn encode_between(&self, text: &str, markers: &[Marker]) -> Vec<u32> {
        let (text, markers) = match self.space_prefix {
            true => prefixed(text, markers),
            false => (Cow::Borrowed(text), Cow::Borrowed(markers)),
        };
        let mut encoder = Encoder::new(&self.bpe, (&self.texts, &self.kinds), &text);
        let mut start = 0;
        for marker in &*markers {
            encoder.encode(start..marker.place.start);
            encoder.ids.push(marker.id);
            start = marker.place.end;
        }
        encoder.encode(start..text.len());
        encoder.ids
    }
}

/// Sixteen times the longest known list. Ids and ranks fit 32 bits, with a value left for "none".
pub(crate) const LIMIT: usize = 1 << 23;

fn check_shape(vocab: &Vocab<'_>) -> Result<(), TokenizerError> {
    let tokens = vocab.tokens.len();
    for (array, count) in [("tokens", tokens), ("merges", vocab.merges.len())] {
        if count > LIMIT {
            return Err(TokenizerError::TooMany { array, count, limit: LIMIT });
        }
    }
    let same_length = |array, count| match count {
        _ if count == tokens => Ok(()),
        _ => Err(TokenizerError::LengthMismatch { array, count, tokens }),
    };
    if tokens == 0 {
        return Err(TokenizerError::EmptyVocabulary);
    }
    same_length("token types", vocab.types.len())?;
    same_length("scores", vocab.scores.map_or(tokens, <[f32]>::len))?;
    if vocab.merges.is_empty() && vocab.scores.is_none() {
        return Err(TokenizerError::NoMerges);
    }
    Ok(())
}

/// The pre-tokenizer of a byte-level vocabulary; `None` for other vocabularies.
fn pre_tokenizer(vocab: &Vocab<'_>) -> Result<Option<PreTokenizer>, TokenizerError> {
    match vocab.model {
        Some("gpt2") => match vocab.pre {
            Some(name) => PreTokenizer::by_name(name).map(Some),
            None => Err(TokenizerError::NoPreTokenizer),
        },
        None | Some("llama" | "gemma4") => Ok(None),
        Some(model) => Err(TokenizerError::unknown_model(model)),
    }
}

/// Whether a space is added before text. Only files that name the model `llama` default to it.
fn space_prefix(vocab: &Vocab<'_>) -> bool {
    vocab.add_space_prefix.unwrap_or(vocab.model == Some("llama"))
}

/// The text with a space before each range between markers, and the markers' new positions.
fn prefixed<'t>(text: &'t str, markers: &[Marker]) -> (Cow<'t, str>, Cow<'t, [Marker]>) {
    let mut longer = String::with_capacity(text.len() + markers.len() + 1);
    let mut moved = Vec::with_capacity(markers.len());
    let push_text = |longer: &mut String, part: &str| {
        if !part.is_empty() {
            longer.push(' ');
            longer.push_str(part);
        }
    };
    let mut start = 0;
    for Marker { place, id } in markers {
        push_text(&mut longer, &text[start..place.start]);
        let from = longer.len();
        longer.push_str(&text[place.clone()]);
        moved.push(Marker { place: from..longer.len(), id: *id });
        start = place.end;
    }
    push_text(&mut longer, &text[start..]);
    (longer.into(), moved.into())
}

fn kinds(vocab: &Vocab<'_>, roles: &Roles, byte_level: bool) -> Result<Vec<Kind>, TokenizerError> {
    let rows = (0..).zip(vocab.types.iter().zip(&vocab.tokens));
    let mut kinds = rows
        .map(|(id, (&value, text))| Kind::new(id, value, text, byte_level))
        .collect::<Result<Vec<_>, _>>()?;
    // A token that ends generation is neither shown nor recognised in user text, whatever its type in the file.
    for &end in &roles.ends {
        let kind = &mut kinds[end as usize];
        if matches!(kind, Kind::UserDefined | Kind::Verbatim) {
            *kind = Kind::Control;
        }
    }
    Ok(kinds)
}

fn chars(tokens: &[&str], kinds: &[Kind]) -> Chars {
    let mut table = Chars::new();
    for (id, (text, kind)) in (0..).zip(tokens.iter().zip(kinds)) {
        let mut chars = text.chars();
        match (kind, chars.next(), chars.next()) {
            // A space in text is encoded as `▁`; a token whose text is a space is unreachable.
            (Kind::Normal, Some('▁'), None) => {
                table.insert('▁', id);
                table.insert(' ', id);
            }
            (Kind::Normal, Some(c), None) if c != ' ' => table.insert(c, id),
            _ => {}
        }
    }
    table
}

/// The tokens of single bytes of a byte-level vocabulary.
fn byte_pieces(texts: &Texts, is_piece: impl Fn(u32) -> bool) -> [Option<u32>; 256] {
    byte_alphabet::CHARS
        .map(|c| texts.id_of(c.encode_utf8(&mut [0; 4]).as_bytes()).filter(|id| is_piece(*id)))
}

fn bytes(kinds: &[Kind], unknown: Option<u32>) -> Result<[u32; 256], TokenizerError> {
    let mut found = [unknown; 256];
    for (id, kind) in (0..).zip(kinds) {
        if let Kind::Byte(byte) = kind {
            found[usize::from(*byte)] = Some(id);
        }
    }
    let mut table = [0; 256];
    for (byte, (entry, id)) in (0..=u8::MAX).zip(table.iter_mut().zip(found)) {
        *entry = id.ok_or(TokenizerError::NoFallback { byte })?;
    }
    Ok(table)
}
