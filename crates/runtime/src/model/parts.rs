//! Access for crates that run their own graphs over a model's weights.

use std::ops::Range;

use rullama_engine::{executor::Weights, ops::rope_table};
use rullama_models::{
    Catalog,
    decoder::{Inputs, Kind},
};

use super::{Inner, Model};
use crate::error::RuntimeError;

impl Model {
    /// Types of the model's tensors.
    pub fn catalog(&self) -> &Catalog {
        &self.0.catalog
    }

    /// The model's weights on its device.
    pub fn weights(&self) -> &Weights {
        &self.0.weights
    }

    /// Whether the per-layer input table is on the device; otherwise [`Self::table_rows`] reads its rows.
    pub fn table_resident(&self) -> bool {
        self.0.table_resident
    }

    /// Concatenated rows of the per-layer input table; `None` if the model has no table or it is on the device.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub async fn table_rows(&self, ids: &[u32]) -> Result<Option<Vec<f32>>, RuntimeError> {
        self.0.table_rows(ids).await
    }

    /// RoPE tables of positions, by input name.
    pub fn rope_tables(&self, positions: Range<u32>) -> Vec<(&'static str, Vec<f32>)> {
        self.0.rope_tables(&positions)
    }

    /// Hash that identifies the model's weights.
    pub fn fingerprint(&self) -> [u8; 32] {
        self.0.fingerprint
    }
}

impl Inner {
    pub(crate) fn rope_tables(
        &self,
        positions: &(impl IntoIterator<Item = u32> + Clone),
    ) -> Vec<(&'static str, Vec<f32>)> {
        let (config, mut tables) = (&self.config, Vec::new());
        // Queries and keys are both rotated, so each gets the square root of the scale.
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
