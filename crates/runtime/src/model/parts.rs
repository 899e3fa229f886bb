//! What a crate needs that runs graphs of its own over a model's weights.

use std::ops::Range;

use rullama_engine::{executor::Weights, ops::rope_table};
use rullama_models::{
    Catalog,
    gemma4::{Inputs, Kind},
};

use super::{Inner, Model};
use crate::error::RuntimeError;

impl Model {
    /// Its tensors.
    pub fn catalog(&self) -> &Catalog {
        &self.0.catalog
    }

    /// Its weights, where it runs.
    pub fn weights(&self) -> &Weights {
        &self.0.weights
    }

    /// Whether the table of per-layer inputs is among the weights; else [`Self::table_rows`] has its rows.
    pub fn table_resident(&self) -> bool {
        self.0.table_resident
    }

    /// Rows of the table of per-layer inputs, one after the other; nothing if the model has none or it is among the weights.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub async fn table_rows(&self, ids: &[u32]) -> Result<Option<Vec<f32>>, RuntimeError> {
        self.0.table_rows(ids).await
    }

    /// Cosines and sines of some positions, by the name of the input that takes them.
    pub fn rope_tables(&self, positions: Range<u32>) -> Vec<(&'static str, Vec<f32>)> {
        self.0.rope_tables(positions)
    }

    /// Tells its weights from others'.
    pub fn fingerprint(&self) -> [u8; 32] {
        self.0.fingerprint
    }
}

impl Inner {
    pub(crate) fn rope_tables(
        &self,
        positions: impl IntoIterator<Item = u32> + Clone,
    ) -> Vec<(&'static str, Vec<f32>)> {
        let (config, mut tables) = (&self.config, Vec::new());
        // Queries and keys are both rotated, so that scores get the whole scale.
        let scale = f64::from(config.attention_scale).sqrt() as f32;
        let mut add = |input: &'static str, base: f32, head: usize, factors: Option<&[f32]>| {
            let mut table = rope_table(positions.clone(), base.into(), head, factors);
            if scale != 1.0 {
                table.iter_mut().for_each(|x| *x *= scale);
            }
            tables.push((input, table));
        };
        if let Some(head) = config.head(Kind::Sliding) {
            add(Inputs::ROPE_SLIDING, config.rope.sliding, head, None);
        }
        if let Some(head) = config.head(Kind::Global) {
            add(Inputs::ROPE_GLOBAL, config.rope.global, head, Some(&self.rope_factors));
        }
        tables
    }
}
