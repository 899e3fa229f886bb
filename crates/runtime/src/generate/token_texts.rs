//! The vocabulary as constraints need it: the bytes that each token adds to a reply.

use rullama_chat::{CallSyntax, Output};
use rullama_tokenizer::{Render, Tokenizer};

/// Longer tokens are never allowed; known vocabularies have far shorter ones.
const LONGEST_TOKEN: usize = 256;
/// The first byte of control tokens, which no text contains.
const MARKER: u8 = 0xff;

/// The bytes of all tokens, and the tokens that end a reply. Tokens that may not be part of one are empty; control tokens and the markers
/// of calls are their names after the byte `0xff`, so that grammars can name them and texts never contain them.
pub fn token_texts(tokenizer: &Tokenizer, output: Output) -> (Vec<Vec<u8>>, Vec<u32>) {
    let mut texts: Vec<Vec<u8>> =
        (0..tokenizer.token_count()).map(|id| text(tokenizer, id)).collect();
    for id in tokenizer.unwanted() {
        texts[id as usize].clear();
    }
    for name in markers(output) {
        if let Some(id) = tokenizer.id_of(name) {
            texts[id as usize] = [&[MARKER], name.as_bytes()].concat();
        }
    }
    (texts, tokenizer.eot().into_iter().chain(tokenizer.eos()).collect())
}

/// The markers of calls.
fn markers(output: Output) -> Vec<&'static str> {
    let markers = match output.call_syntax() {
        None => vec![],
        Some(CallSyntax::Pairs { markers: [open, close], quote }) => vec![open, close, quote],
        Some(CallSyntax::Json { markers, .. }) => markers.to_vec(),
    };
    markers.into_iter().filter(|marker| !marker.is_empty()).collect()
}

fn text(tokenizer: &Tokenizer, id: u32) -> Vec<u8> {
    let text = tokenizer.piece(id, Render::Plain);
    if text.contains(&MARKER) || text.len() > LONGEST_TOKEN {
        Vec::new()
    } else if is_marker(&text) {
        [&[MARKER], &text[..]].concat()
    } else if text.is_empty() {
        let name = tokenizer.piece(id, Render::All);
        if name.is_empty() { Vec::new() } else { [&[MARKER], &name[..]].concat() }
    } else {
        text.into_owned()
    }
}

/// Whether a token is a chat marker, which some files list as text: `<|turn>`, `<turn|>`, `<|think|>`. In a reply the same characters
/// are spelled by smaller tokens.
fn is_marker(text: &[u8]) -> bool {
    (text.starts_with(b"<|") && text.ends_with(b">"))
        || (text.starts_with(b"<") && text.ends_with(b"|>"))
}
