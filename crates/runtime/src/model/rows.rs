//! Rows of the table of per-layer inputs, for models that keep it off the GPU.

use super::{Inner, load::TABLE};
use crate::error::RuntimeError;

impl Inner {
    /// The rows of some tokens, one after the other; nothing if the model has no such table or it is on the device.
    pub(crate) async fn table_rows(&self, ids: &[u32]) -> Result<Option<Vec<f32>>, RuntimeError> {
        if self.table_resident || self.config.per_layer.is_none() {
            return Ok(None);
        }
        let tensor = self.gguf.tensor(TABLE).expect("the catalogue was made from this file");
        let mut rows = Vec::with_capacity(ids.len() * self.config.table_width());
        for id in ids {
            let id = u64::from(*id);
            rows.extend(self.gguf.rows_f32(tensor, id..id + 1).await?);
        }
        Ok(Some(rows))
    }
}
