//! Pre-tokenizers of byte-level BPE: they split text into pieces; no merge crosses a boundary.
//!
//! The files name a regular expression; the matchers here are equivalent in one pass, without lookahead and without the
//! tables of a regex engine.

use crate::{
    TokenizerError,
    classes::{is_letter, is_number, is_punctuation},
};

/// How text is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PreTokenizer {
    pattern: Pattern,
    /// Whether a piece that is a token as a whole is taken without merging.
    pub(crate) whole_pieces: bool,
    /// Whether a prompt starts with the beginning-of-sequence token where the file does not say.
    pub(crate) adds_bos: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    /// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
    Gpt2,
    /// `\p{N}`, and GPT-2's pattern between its matches.
    Gpt2SingleDigits,
    /// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
    /// with this maximum number of digits.
    Llama3 { digits: usize },
    /// `[\p{P}\$\+<=>\^~\|]+`, GPT-2's pattern between its matches, then `\p{N}+`, then `[0-9]{3}`.
    Default,
}

impl PreTokenizer {
    /// The pre-tokenizer that a file names `name`.
    pub(crate) fn by_name(name: &str) -> Result<Self, TokenizerError> {
        let (pattern, whole_pieces) = match name {
            "llama3" | "llama-v3" | "llama-bpe" | "falcon3" | "falcon-h1" | "pixtral"
            | "midm-2.0" | "lfm2" | "jina-v5-nano" => (Pattern::Llama3 { digits: 3 }, true),
            "dbrx" | "smaug-bpe" => (Pattern::Llama3 { digits: 3 }, false),
            "qwen2" | "deepseek-r1-qwen" | "megrez" | "stablelm2" => {
                (Pattern::Llama3 { digits: 1 }, false)
            }
            "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" | "exaone"
            | "minerva-7b" => (Pattern::Gpt2SingleDigits, false),
            "gpt-2" | "phi-2" | "mpt" | "olmo" | "jais" | "exaone4" => (Pattern::Gpt2, false),
            "default" => (Pattern::Default, false),
            _ => return Err(TokenizerError::unknown_pre_tokenizer(name)),
        };
        Ok(Self { pattern, whole_pieces, adds_bos: whole_pieces })
    }

    /// The length in bytes of the first piece of `text`, which must not be empty.
    #[inline(never)]
    pub(crate) fn piece(self, text: &str) -> usize {
        let mut chars = text.chars();
        let (first, second) = (chars.next().unwrap_or_default(), chars.next());
        let len = match self.pattern {
            Pattern::Llama3 { digits } => llama3(text, first, second, digits),
            Pattern::Gpt2 => gpt2(text, first, second, |_| false),
            Pattern::Gpt2SingleDigits if is_number(first) => first.len_utf8(),
            Pattern::Gpt2SingleDigits => gpt2(text, first, second, is_number),
            Pattern::Default if is_mark(first) => run(text, is_mark),
            Pattern::Default if is_number(first) => digit_groups(text),
            Pattern::Default if first == ' ' && second.is_some_and(is_number) => 1,
            Pattern::Default => gpt2(text, first, second, is_mark),
        };
        debug_assert!(len > 0, "every character is part of a piece");
        len
    }
}

/// Characters that `Default` splits off first.
fn is_mark(c: char) -> bool {
    matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '~' | '|') || is_punctuation(c)
}

fn is_other(c: char) -> bool {
    !c.is_whitespace() && !is_letter(c) && !is_number(c)
}

fn is_newline(c: char) -> bool {
    matches!(c, '\r' | '\n')
}

/// The length in bytes of the leading characters that satisfy `of`.
fn run(text: &str, of: fn(char) -> bool) -> usize {
    text.find(|c| !of(c)).unwrap_or(text.len())
}

/// A piece by GPT-2's pattern, in a text that ends before the first character that satisfies `ends`.
fn gpt2(text: &str, first: char, second: Option<char>, ends: fn(char) -> bool) -> usize {
    if let Some(len) = contraction(text, false) {
        return len;
    }
    let (space, c) = match (first, second) {
        (' ', Some(c)) if !ends(c) => (1, c),
        _ => (0, first),
    };
    let rest = &text[space..];
    if is_letter(c) {
        space + run(rest, is_letter)
    } else if is_number(c) {
        space + run(rest, is_number)
    } else if !c.is_whitespace() {
        let end = space + run(rest, is_other);
        text[space..end].find(ends).map_or(end, |at| space + at)
    } else {
        blanks(text, ends)
    }
}

/// A piece by Llama 3's pattern.
fn llama3(text: &str, first: char, second: Option<char>, digits: usize) -> usize {
    if let Some(len) = contraction(text, true) {
        return len;
    }
    if is_letter(first) {
        return run(text, is_letter);
    }
    if is_number(first) {
        let numbers = text.char_indices().take_while(|(_, c)| is_number(*c)).take(digits);
        return numbers.last().map_or(0, |(at, c)| at + c.len_utf8());
    }
    if second.is_some_and(is_letter) && !is_newline(first) {
        return first.len_utf8() + run(&text[first.len_utf8()..], is_letter);
    }
    let space = usize::from(first == ' ' && second.is_some_and(is_other));
    if space == 1 || is_other(first) {
        let end = space + run(&text[space..], is_other);
        return end + run(&text[end..], is_newline);
    }
    let run = &text[..run(text, char::is_whitespace)];
    run.rfind(is_newline).map_or_else(|| blanks(text, |_| false), |last| last + 1)
}

/// The length of `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll` or `'d`.
fn contraction(text: &str, any_case: bool) -> Option<usize> {
    let letters = text.strip_prefix('\'')?.as_bytes();
    let is = |i: usize, want: u8| {
        letters.get(i).is_some_and(|c| *c == want || (any_case && c.to_ascii_lowercase() == want))
    };
    let pair = |first, second| is(0, first) && is(1, second);
    if is(0, b's') || is(0, b't') || is(0, b'm') || is(0, b'd') {
        Some(2)
    } else {
        (pair(b'r', b'e') || pair(b'v', b'e') || pair(b'l', b'l')).then_some(3)
    }
}

/// Whitespace without its last character, which may belong to the next piece; all of it at the end of the text.
fn blanks(text: &str, ends: fn(char) -> bool) -> usize {
    let end = run(text, char::is_whitespace);
    let last = text[..end].chars().next_back().map_or(0, char::len_utf8);
    let nothing_follows = text[end..].chars().next().is_none_or(ends);
    if nothing_follows || end == last { end } else { end - last }
}

/// The first group of a number: three digits, or the digits before the first whole group.
fn digit_groups(text: &str) -> usize {
    let number = &text[..run(text, is_number)];
    let is_group = |at: &usize| {
        number.as_bytes()[*at..]
            .first_chunk::<3>()
            .is_some_and(|g| g.iter().all(u8::is_ascii_digit))
    };
    match (0..number.len()).find(is_group) {
        Some(0) => 3,
        Some(at) => at,
        None => number.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces of a text, joined by `·`.
    fn check(name: &str, text: &str, pieces: &str) {
        let splitter = PreTokenizer::by_name(name).expect("known");
        let mut rest = text;
        let mut found = Vec::new();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(splitter.piece(rest));
            found.push(piece);
            rest = after;
        }
        assert_eq!(found.join("·"), pieces, "{name}");
    }

    #[test]
    fn worked_examples() {
        for (text, pieces) in [
            ("Hello world", "Hello· world"),
            ("hello  world   again    end", "hello· · world·  · again·   · end"),
            ("in 2026  12 monkeys", "in· ·2·0·2·6·  ·1·2· monkeys"),
            ("line two\n\nline three", "line· two·\n·\n·line· three"),
            ("\n\n", "\n\n"),
            (" \n \n  \n\tmixed \t blank", " \n \n  \n·\t·mixed· \t· blank"),
            ("don’t I'LL it's", "don·’·t· I·'·LL· it·'s"),
        ] {
            check("smollm", text, pieces);
        }
        check("gpt-2", "in 2026  12", "in· 2026· · 12");
        check(
            "llama-bpe",
            "I'LL pay 12345!\n\n  \n x\ty.z",
            "I·'LL· pay· ·123·45·!\n\n·  \n· x·\ty·.z",
        );
        check("qwen2", "pay 123 \r\n (x)", "pay· ·1·2·3· \r\n· (·x·)");
        check("default", "a+b 12345,6  x's", "a·+·b· ·123·45·,·6· · x·'·s");
        check("default", "12३4567 <", "12३·456·7· ·<");
    }
}
