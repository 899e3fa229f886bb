//! `rullama tokenize` and `detokenize`.

use std::io::Read;

use anyhow::{Context, Result, bail};
use rullama_runtime::vocabulary::tokenizer;
use rullama_tokenizer::{Render, Special, Tokenizer};
use serde_json::json;

use crate::{
    args::{DetokenizeArgs, TokenizeArgs},
    locate::Stores,
    output::{print, print_json, safe, table},
};

pub(crate) fn tokenize(stores: &Stores, args: &TokenizeArgs) -> Result<()> {
    let tokenizer = open(stores, &args.model)?;
    let text = match &args.text {
        Some(text) => text.clone(),
        None => stdin_text()?,
    };
    let special = if args.special { Special::Parse } else { Special::UserDefined };
    let mut ids = tokenizer.encode(&text, special);
    if args.bos {
        let bos = tokenizer.bos().context("the vocabulary has no beginning-of-sequence token")?;
        if ids.first() != Some(&bos) {
            ids.insert(0, bos);
        }
    }
    let pieces = raw_pieces(&tokenizer, &ids);
    if args.json {
        return print_json(&json!({ "ids": ids, "pieces": pieces }));
    }
    let rows: Vec<Vec<String>> =
        ids.iter().zip(&pieces).map(|(id, piece)| vec![id.to_string(), safe(piece)]).collect();
    print(&table(&rows))
}

pub(crate) fn detokenize(stores: &Stores, args: &DetokenizeArgs) -> Result<()> {
    let tokenizer = open(stores, &args.model)?;
    let text = if args.ids.is_empty() { stdin_text()? } else { args.ids.join(" ") };
    let ids = parse_ids(&text)?;
    if let Some(id) = ids.iter().find(|id| **id >= tokenizer.token_count()) {
        bail!("no token {id}: the highest id is {}", tokenizer.token_count().saturating_sub(1));
    }
    let render = if args.special { Render::All } else { Render::Plain };
    let text = tokenizer.decode(&ids, render);
    if args.json {
        return print_json(&json!({ "text": text, "pieces": raw_pieces(&tokenizer, &ids) }));
    }
    print(&(text + "\n"))
}

fn open(stores: &Stores, model: &str) -> Result<Tokenizer> {
    let (_, gguf) = stores.open(model)?;
    Ok(tokenizer(&gguf)?)
}

/// The tokens' own texts, as they stand in the vocabulary.
fn raw_pieces<'t>(tokenizer: &'t Tokenizer, ids: &[u32]) -> Vec<&'t str> {
    ids.iter().map(|id| tokenizer.token_text(*id).unwrap_or_default()).collect()
}

/// Standard input to its end; bytes that are not UTF-8 become U+FFFD.
fn stdin_text() -> Result<String> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// Ids separated by blanks or commas; a JSON list works too.
fn parse_ids(text: &str) -> Result<Vec<u32>> {
    let words = text.split([' ', ',', '\n', '\r', '\t', '[', ']']).filter(|word| !word.is_empty());
    words
        .map(|word| {
            word.parse()
                .with_context(|| format!("`{word}` is not a token id; ids are whole numbers"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::parse_ids;

    #[test]
    fn ids_in_all_spellings() {
        for text in ["1 2 3", "1,2,3", "[1, 2, 3]\n", " 1\t2\r\n3 "] {
            assert_eq!(parse_ids(text).unwrap(), [1, 2, 3], "{text}");
        }
        assert!(parse_ids("").unwrap().is_empty());
        for bad in ["x", "-1", "1.5", "4294967296"] {
            assert!(parse_ids(bad).is_err(), "{bad}");
        }
    }
}
