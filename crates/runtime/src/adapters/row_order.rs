//! The order of rows in adapters. Files of `llama` have the rows of queries and keys reordered inside each head, so that adjacent elements
//! rotate together; checkpoints, and with them PEFT adapters, do not.

use std::borrow::Cow;

use rullama_adapter::{Adapter, Format};
use rullama_engine::ops::RopePairs;
use rullama_gguf::Gguf;
use rullama_models::decoder::Config;

use crate::{error::RuntimeError, model::Model};

impl Model {
    /// An adapter with its rows in the order of this model's file.
    pub fn file_order<'a>(&self, adapter: &'a Adapter) -> Cow<'a, Adapter> {
        reordered(&self.0.config, adapter, checkpoint_row)
    }

    /// An adapter whose rows are in the order of this model's file, with rows as PEFT has them.
    pub fn checkpoint_order<'a>(&self, adapter: &'a Adapter) -> Cow<'a, Adapter> {
        reordered(&self.0.config, adapter, file_row)
    }
}

/// An adapter with its rows in the order of a model's file, by the file's header.
///
/// # Errors
/// If it is no model we can run.
pub fn file_order<'a>(gguf: &Gguf, adapter: &'a Adapter) -> Result<Cow<'a, Adapter>, RuntimeError> {
    Ok(reordered(&Config::of_file(gguf)?, adapter, checkpoint_row))
}

/// The adapter with rows of queries and keys taken from where `from` says, inside heads of a width.
fn reordered<'a>(
    config: &Config,
    adapter: &'a Adapter,
    from: fn(usize, usize) -> usize,
) -> Cow<'a, Adapter> {
    let head = config.layers.first().map_or(0, |layer| layer.head);
    if config.family.pairs == RopePairs::Halves || adapter.format != Format::Peft || head == 0 {
        return Cow::Borrowed(adapter);
    }
    let mut adapter = adapter.clone();
    for pair in &mut adapter.pairs {
        let rotated =
            [".attn_q.weight", ".attn_k.weight"].iter().any(|end| pair.tensor.ends_with(end));
        if rotated && pair.rows.is_multiple_of(head) {
            *pair = pair.with_rows(|row| row / head * head + from(row % head, head));
        }
    }
    Cow::Owned(adapter)
}

/// The row of a checkpoint that row `row` of a head is in the file.
fn checkpoint_row(row: usize, head: usize) -> usize {
    row / 2 + row % 2 * (head / 2)
}

/// The row of the file that row `row` of a head is in a checkpoint.
fn file_row(row: usize, head: usize) -> usize {
    row % (head / 2) * 2 + row / (head / 2)
}

#[cfg(test)]
mod tests {
    use super::{checkpoint_row, file_row};

    #[test]
    fn halves_of_a_checkpoints_head_are_interleaved_in_the_file() {
        let rows =
            |from: fn(usize, usize) -> usize| (0..8).map(|row| from(row, 8)).collect::<Vec<_>>();
        assert_eq!(rows(checkpoint_row), [0, 4, 1, 5, 2, 6, 3, 7]);
        assert_eq!(rows(file_row), [0, 2, 4, 6, 1, 3, 5, 7]);
        for row in 0..64 {
            assert_eq!(file_row(checkpoint_row(row, 64), 64), row);
        }
    }
}
