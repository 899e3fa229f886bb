//! Rows of the per-layer input table, if it is not on the GPU.

use std::collections::BTreeMap;

use super::{Inner, load::TABLE};
use crate::error::RuntimeError;

impl Inner {
    /// Concatenated rows of tokens; `None` if the model has no table or it is on the device.
    pub(crate) async fn table_rows(&self, ids: &[u32]) -> Result<Option<Vec<f32>>, RuntimeError> {
        if self.table_resident || self.config.per_layer.is_none() {
            return Ok(None);
        }
        let tensor = self.gguf.tensor(TABLE).expect("the catalogue was made from this file");
        // Request each row once, and all rows before awaiting the first: over a network each request takes a round trip.
        let mut requests = BTreeMap::new();
        for id in ids {
            let row = u64::from(*id);
            requests.entry(*id).or_insert_with(|| self.gguf.rows_f32(tensor, row..row + 1));
        }
        let mut rows = BTreeMap::new();
        for (id, row) in requests {
            rows.insert(id, row.await?);
        }
        Ok(Some(ids.iter().flat_map(|id| &rows[id]).copied().collect()))
    }
}
