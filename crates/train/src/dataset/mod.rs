//! Training data: JSON lines as token sequences with a mask of the tokens to learn.

mod line;
mod pack;

use rullama_models::decoder::TrainPass;
use rullama_runtime::Model;
use rullama_tokenizer::Render;
use sha2::{Digest, Sha256};

pub use pack::packed;

use crate::{
    error::{LineError, TrainError},
    order::shuffled,
};

/// A token sequence and the mask of its targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The tokens.
    pub ids: Vec<u32>,
    /// Whether each token is a target, predicted from the tokens before it; the first one never is.
    pub learned: Vec<bool>,
    /// For each token the first one it attends to: the start of its own example in a packed sequence.
    pub starts: Vec<u32>,
}

/// How lines are converted into tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DataOptions {
    /// Whether prompt and completion are joined as plain text instead of rendered as chat turns.
    pub raw: bool,
    /// Maximum tokens of an example; longer ones are truncated.
    pub longest: Option<usize>,
}

/// A list of examples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dataset {
    /// The examples.
    pub examples: Vec<Example>,
    /// Number of truncated examples.
    pub cut: usize,
    /// Number of examples dropped because truncation left no target.
    pub dropped: usize,
}

impl Example {
    /// An example in which all tokens after the first `given` are targets.
    pub fn after_prompt(ids: Vec<u32>, given: usize) -> Self {
        let learned = (0..ids.len()).map(|i| i > 0 && i >= given).collect();
        Self::new(ids, learned)
    }

    /// An example of tokens and the mask of its targets.
    pub(crate) fn new(ids: Vec<u32>, mut learned: Vec<bool>) -> Self {
        learned.resize(ids.len(), false);
        if let Some(first) = learned.first_mut() {
            *first = false;
        }
        let starts = vec![0; ids.len()];
        Self { ids, learned, starts }
    }

    /// Number of targets.
    pub fn targets(&self) -> usize {
        self.learned.iter().filter(|learned| **learned).count()
    }

    /// The rows that have a target, and the targets: the row before a target predicts it.
    pub(crate) fn rows(&self) -> (Vec<u32>, Vec<u32>) {
        let learned = (1..self.ids.len()).filter(|i| self.learned[*i]);
        // Fits: a graph has fewer than 2^32 rows.
        learned.map(|i| (i as u32 - 1, self.ids[i])).unzip()
    }

    fn cut(&mut self, longest: usize) -> bool {
        let longer = self.ids.len() > longest;
        self.ids.truncate(longest);
        self.learned.truncate(longest);
        self.starts.truncate(longest);
        longer
    }
}

/// An invalid line.
#[derive(Debug)]
pub struct BadLine {
    /// The line number, from 1.
    pub line: usize,
    /// The error.
    pub why: LineError,
}

impl Dataset {
    /// Parses JSON lines; empty lines are skipped.
    ///
    /// # Errors
    /// If a line is invalid: the error has its number.
    pub fn of_lines(model: &Model, text: &str, options: DataOptions) -> Result<Self, TrainError> {
        let mut data = Self::default();
        for line in numbered(text) {
            let BadLine { line, why } = match data.add(model, line, options) {
                Ok(()) => continue,
                Err(bad) => bad,
            };
            return Err(TrainError::Line { line, why });
        }
        if data.examples.is_empty() { Err(TrainError::NoTargets) } else { Ok(data) }
    }

    /// Parses the valid lines, and returns the errors of the others.
    pub fn usable_lines(model: &Model, text: &str, options: DataOptions) -> (Self, Vec<BadLine>) {
        let mut data = Self::default();
        let bad = numbered(text).filter_map(|line| data.add(model, line, options).err()).collect();
        (data, bad)
    }

    fn add(
        &mut self,
        model: &Model,
        (line, text): (usize, &str),
        options: DataOptions,
    ) -> Result<(), BadLine> {
        let mut example =
            line::example(model, text, options).map_err(|why| BadLine { line, why })?;
        if options.longest.is_some_and(|longest| example.cut(longest)) {
            self.cut += 1;
        }
        if example.targets() == 0 {
            self.dropped += 1;
        } else {
            self.examples.push(example);
        }
        Ok(())
    }

    /// Splits off a share of the examples for evaluation, chosen by `seed`: (training, held-out).
    ///
    /// # Errors
    /// If one side would be empty.
    pub fn split(self, share: f64, seed: u64) -> Result<(Vec<Example>, Vec<Example>), TrainError> {
        let all = self.examples.len();
        if share <= 0.0 {
            return Ok((self.examples, Vec::new()));
        }
        let held_out = (all as f64 * share).round().max(1.0) as usize;
        if held_out >= all || !share.is_finite() {
            return Err(TrainError::Split { split: share, examples: all });
        }
        let mut chosen = vec![false; all];
        shuffled(all, seed, u64::MAX).into_iter().take(held_out).for_each(|i| chosen[i] = true);
        let mut sides = (Vec::new(), Vec::new());
        for (example, chosen) in self.examples.into_iter().zip(chosen) {
            if chosen { sides.1.push(example) } else { sides.0.push(example) }
        }
        Ok(sides)
    }
}

/// Non-empty lines with their numbers, from 1.
fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().map(|line| line.trim_start_matches('\u{feff}').trim());
    (1..).zip(lines).filter(|(_, line)| !line.is_empty())
}

/// Tokens of the longest example, and the most targets of an example.
pub fn largest(examples: &[Example]) -> (usize, usize) {
    let tokens = examples.iter().map(|example| example.ids.len()).max().unwrap_or(0);
    let targets = examples.iter().map(Example::targets).max().unwrap_or(0);
    (tokens, targets)
}

/// A hash of the examples.
pub(crate) fn fingerprint(examples: &[Example]) -> String {
    let mut hash = Sha256::new();
    for example in examples {
        let learned = example.learned.iter().map(|learned| u32::from(*learned));
        let all = example.ids.iter().copied().chain(learned).chain([TrainPass::NONE]);
        all.for_each(|word| hash.update(word.to_le_bytes()));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A span of an example's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextSpan {
    /// The text.
    pub text: String,
    /// Whether its tokens are targets.
    pub learned: bool,
}

/// An example as text, split into prompt and target spans.
///
/// # Errors
/// If the model's vocabulary is invalid.
pub fn preview(model: &Model, example: &Example) -> Result<Vec<TextSpan>, TrainError> {
    let tokenizer = model.tokenizer()?;
    let mut spans = Vec::new();
    let mut first = 0;
    for end in 1..=example.ids.len() {
        if end == example.ids.len() || example.learned[end] != example.learned[first] {
            let text = tokenizer.decode(&example.ids[first..end], Render::All);
            spans.push(TextSpan { text, learned: example.learned[first] });
            first = end;
        }
    }
    Ok(spans)
}
