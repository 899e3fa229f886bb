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
        if let Some(head) = config.head(Kind::Sliding) {
            let table = rope_table(positions.clone(), config.rope.sliding.into(), head, None);
            tables.push((Inputs::ROPE_SLIDING, table));
        }
        if let Some(head) = config.head(Kind::Global) {
            let factors = Some(self.rope_factors.as_slice());
            let table = rope_table(positions, config.rope.global.into(), head, factors);
            tables.push((Inputs::ROPE_GLOBAL, table));
        }
        tables
    }
}
