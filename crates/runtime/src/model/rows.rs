//! Rows of the table of per-layer inputs, for models that keep it off the GPU.

use std::collections::BTreeMap;

use super::{Inner, load::TABLE};
use crate::error::RuntimeError;

impl Inner {
    /// The rows of some tokens, one after the other; nothing if the model has no such table or it is on the device.
    pub(crate) async fn table_rows(&self, ids: &[u32]) -> Result<Option<Vec<f32>>, RuntimeError> {
        if self.table_resident || self.config.per_layer.is_none() {
            return Ok(None);
        }
        let tensor = self.gguf.tensor(TABLE).expect("the catalogue was made from this file");
        // Each row is requested once, and all of them before the first is waited for: over a network each takes a round trip.
        let mut asked = BTreeMap::new();
        for id in ids {
            let row = u64::from(*id);
            asked.entry(*id).or_insert_with(|| self.gguf.rows_f32(tensor, row..row + 1));
        }
        let mut rows = BTreeMap::new();
        for (id, row) in asked {
            rows.insert(id, row.await?);
        }
        Ok(Some(ids.iter().flat_map(|id| &rows[id]).copied().collect()))
    }
}
