//! The keys of a model file, checked before use.

use std::fmt;

use rullama_engine::ops::Attention;
use rullama_gguf::{Gguf, Optional};

use crate::error::ModelError;

/// The keys of one architecture.
pub(crate) struct Keys<'a> {
    pub(crate) gguf: &'a Gguf,
    pub(crate) prefix: &'a str,
}

/// Far above any model, far below what would overflow: files lie.
const LARGEST: usize = 1 << 24;
/// Deeper models than this are lies.
const MOST_LAYERS: usize = 1024;

impl Keys<'_> {
    pub(crate) fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.prefix)
    }

    pub(crate) fn bad(
        &self,
        name: &str,
        value: &dyn fmt::Display,
        why: &'static str,
    ) -> ModelError {
        ModelError::BadKey { key: self.key(name), value: value.to_string(), why }
    }

    pub(crate) fn size(&self, name: &str, value: i64) -> Result<usize, ModelError> {
        let size = usize::try_from(value).ok().filter(|size| *size <= LARGEST);
        size.ok_or_else(|| self.bad(name, &value, "out of range, the file is damaged"))
    }

    /// A product of two sizes, which tensors and activations have as their width; `name` is the key of the first.
    pub(crate) fn product(&self, name: &str, a: usize, b: usize) -> Result<usize, ModelError> {
        let product = a.checked_mul(b).filter(|product| *product <= LARGEST);
        product.ok_or_else(|| self.bad(name, &a, "rows would be too wide, the file is damaged"))
    }

    /// Checks heads against what attention kernels take: how many, and how wide they are. `name` is the key of their width.
    pub(crate) fn check_heads(
        &self,
        heads: usize,
        (name, head): (&str, usize),
        step: usize,
    ) -> Result<(), ModelError> {
        if heads > Attention::MOST_HEADS {
            let why = "attention kernels take at most 256 heads";
            return Err(self.bad("attention.head_count", &heads, why));
        }
        if head > 0 && head.is_multiple_of(step) && head <= Attention::MOST_HEAD {
            return Ok(());
        }
        let why = match step {
            Attention::HEAD_STEP => "heads must have a multiple of 16 numbers, at most 512",
            _ => "heads must have a multiple of 8 numbers, at most 512",
        };
        Err(self.bad(name, &head, why))
    }

    pub(crate) fn optional(&self, name: &str) -> Result<Option<usize>, ModelError> {
        let value = self.gguf.u32(&self.key(name)).optional()?;
        value.map(|value| self.size(name, value.into())).transpose()
    }

    pub(crate) fn positive(&self, name: &str) -> Result<usize, ModelError> {
        let value = self.size(name, self.gguf.u32(&self.key(name))?.into())?;
        if value == 0 { Err(self.bad(name, &0, "it must be at least 1")) } else { Ok(value) }
    }

    pub(crate) fn float(&self, name: &str, default: Option<f32>) -> Result<f32, ModelError> {
        let value = self.gguf.f32(&self.key(name));
        let value = match default {
            None => value?,
            Some(default) => value.optional()?.unwrap_or(default),
        };
        let good = value.is_finite() && value > 0.0;
        if good { Ok(value) } else { Err(self.bad(name, &value, "it must be a positive number")) }
    }

    /// One number per layer: an array of them, or one for all.
    pub(crate) fn per_layer(&self, name: &str, layers: usize) -> Result<Vec<usize>, ModelError> {
        let values = self.gguf.integers(&self.key(name))?;
        let values = if values.len() == 1 { vec![values[0]; layers] } else { values };
        if values.len() != layers {
            return Err(self.bad(
                name,
                &format!("{} numbers", values.len()),
                "there must be one per layer",
            ));
        }
        values
            .into_iter()
            .map(|value| match self.size(name, value)? {
                0 => Err(self.bad(name, &0, "it must be at least 1")),
                size => Ok(size),
            })
            .collect()
    }

    /// How many layers there are.
    pub(crate) fn layer_count(&self) -> Result<usize, ModelError> {
        let layers = self.positive("block_count")?;
        if layers > MOST_LAYERS {
            return Err(self.bad("block_count", &layers, "out of range, the file is damaged"));
        }
        Ok(layers)
    }

    /// Rows of the table of tokens; none without a table.
    pub(crate) fn vocabulary(&self) -> usize {
        let rows = self.gguf.tensor("token_embd.weight").map_or(0, |tensor| tensor.rows());
        usize::try_from(rows).unwrap_or(0)
    }

    /// Refuses a length that the file gives and that is not this one.
    pub(crate) fn same_length(
        &self,
        name: &str,
        length: usize,
        why: &'static str,
    ) -> Result<(), ModelError> {
        match self.optional(name)? {
            Some(other) if other != length => Err(self.bad(name, &other, why)),
            _ => Ok(()),
        }
    }

    /// Refuses a mixture of experts.
    pub(crate) fn refuse_experts(&self) -> Result<(), ModelError> {
        match self.optional("expert_count")?.unwrap_or(0) {
            0 => Ok(()),
            count => Err(self.bad("expert_count", &count, "only Gemma 4's experts are supported")),
        }
    }
}
