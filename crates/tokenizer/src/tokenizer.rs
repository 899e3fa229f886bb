//! The tokenizer: built and checked once, then encoding.

use crate::{
    Span, Special, TokenizerError, Vocab,
    bpe::{Bpe, Encoder},
    chars::Chars,
    kind::Kind,
    marker::{Marker, Markers, recognised},
    merge_list::MergeList,
    merges::Merges,
    roles::Roles,
    texts::Texts,
};

/// A vocabulary made ready for encoding and decoding.
#[derive(Debug)]
pub struct Tokenizer {
    pub(crate) texts: Texts,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) roles: Roles,
    markers: Markers,
    bpe: Bpe,
}

impl Tokenizer {
    /// Checks `vocab` and copies what is needed.
    ///
    /// An empty token text is accepted and never matched. A pair that is merged twice keeps its first rank.
    ///
    /// # Errors
    /// If the vocabulary is empty, contradicts itself or is not of this kind: see [`TokenizerError`].
    pub fn new(vocab: &Vocab<'_>) -> Result<Self, TokenizerError> {
        check_shape(vocab)?;
        let texts = Texts::new(&vocab.tokens)?;
        let roles = Roles::new(vocab, &texts)?;
        let kinds = kinds(vocab, &roles)?;
        let list = match vocab.scores {
            Some(scores) if vocab.merges.is_empty() => MergeList::by_score(scores, &texts, &kinds)?,
            _ => MergeList::new(&vocab.merges, &texts, &kinds)?,
        };
        if list.merges.is_empty() {
            return Err(TokenizerError::NoMerges);
        }
        let bpe = Bpe {
            chars: chars(&vocab.tokens, &kinds),
            merges: Merges::new(&list),
            joints: list.joints,
            bytes: bytes(&kinds, roles.unknown)?,
        };
        Ok(Self { markers: Markers::new(&texts, &kinds)?, texts, kinds, roles, bpe })
    }

    /// The ids of `text`, without a beginning-of-sequence token.
    pub fn encode(&self, text: &str, special: Special) -> Vec<u32> {
        let markers = match special {
            Special::None => Vec::new(),
            _ => self.find_markers(text, 0, special),
        };
        self.encode_between(text, &markers)
    }

    /// The ids of a text made of trusted and untrusted spans, without a beginning-of-sequence token.
    ///
    /// Special tokens are recognised only where every byte comes from a template. All else is encoded as one text:
    /// pieces are joined across the borders of spans.
    pub fn encode_spans(&self, spans: &[Span<'_>]) -> Vec<u32> {
        let mut text = String::new();
        let mut markers = Vec::new();
        for run in spans.chunk_by(|a, b| matches!((a, b), (Span::Template(_), Span::Template(_)))) {
            let start = text.len();
            for span in run {
                let (Span::Template(part) | Span::Text(part)) = span;
                text.push_str(part);
            }
            if let [Span::Template(_), ..] = run {
                markers.extend(self.find_markers(&text, start, Special::Parse));
            }
        }
        self.encode_between(&text, &markers)
    }

    /// The ids of a prompt: [`encode_spans`](Self::encode_spans), and a beginning-of-sequence token first unless the
    /// spans begin with one.
    pub fn encode_prompt(&self, spans: &[Span<'_>]) -> Vec<u32> {
        let mut ids = self.encode_spans(spans);
        if let Some(bos) = self.roles.bos
            && ids.first() != Some(&bos)
        {
            ids.insert(0, bos);
        }
        ids
    }

    fn find_markers(&self, text: &str, from: usize, special: Special) -> Vec<Marker> {
        self.markers.find(text, from, |candidate| {
            let id = self.texts.id_of(candidate)?;
            recognised(self.kinds[id as usize], special).then_some(id)
        })
    }

    fn encode_between(&self, text: &str, markers: &[Marker]) -> Vec<u32> {
        let mut encoder = Encoder::new(&self.bpe, text);
        let mut start = 0;
        for marker in markers {
            encoder.encode(start..marker.place.start);
            encoder.ids.push(marker.id);
            start = marker.place.end;
        }
        encoder.encode(start..text.len());
        encoder.ids
    }
}

/// Sixteen times the longest known list. Ids and ranks fit 32 bits with space for a value that means none.
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

fn kinds(vocab: &Vocab<'_>, roles: &Roles) -> Result<Vec<Kind>, TokenizerError> {
    let rows = (0..).zip(vocab.types.iter().zip(&vocab.tokens));
    let mut kinds = rows
        .map(|(id, (&value, text))| Kind::new(id, value, text))
        .collect::<Result<Vec<_>, _>>()?;
    // A token that ends generation is neither shown nor recognised in user text, even where the file has it so.
    for &end in &roles.ends {
        let kind = &mut kinds[end as usize];
        if *kind == Kind::UserDefined {
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
            // A space in text is written so; a token that is itself a space cannot be meant.
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
