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

/// Largest accepted size: far above any model, far below overflow. Damaged files hold arbitrary values.
const LARGEST: usize = 1 << 24;
/// Largest accepted number of layers.
const MAX_LAYERS: usize = 1024;

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

    /// `a · b`, the width of tensors and activations; `name` is the key of `a`.
    pub(crate) fn product(&self, name: &str, a: usize, b: usize) -> Result<usize, ModelError> {
        let product = a.checked_mul(b).filter(|product| *product <= LARGEST);
        product.ok_or_else(|| self.bad(name, &a, "rows would be too wide, the file is damaged"))
    }

    /// Checks head count and head size against the limits of attention kernels. `name` is the key of the head size.
    pub(crate) fn check_heads(
        &self,
        heads: usize,
        (name, head): (&str, usize),
        step: usize,
    ) -> Result<(), ModelError> {
        if heads > Attention::MAX_HEADS {
            let why = "attention kernels support at most 256 heads";
            return Err(self.bad("attention.head_count", &heads, why));
        }
        if head > 0 && head.is_multiple_of(step) && head <= Attention::MAX_HEAD {
            return Ok(());
        }
        let why = match step {
            Attention::HEAD_STEP => "the head size must be a multiple of 16, at most 512",
            _ => "the head size must be a multiple of 8, at most 512",
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

    /// One value per layer: an array, or one value for all layers.
    pub(crate) fn per_layer(&self, name: &str, layers: usize) -> Result<Vec<usize>, ModelError> {
        let values = self.gguf.integers(&self.key(name))?;
        let values = if values.len() == 1 { vec![values[0]; layers] } else { values };
        if values.len() != layers {
            return Err(self.bad(
                name,
                &format!("{} values", values.len()),
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

    /// Number of layers.
    pub(crate) fn layer_count(&self) -> Result<usize, ModelError> {
        let layers = self.positive("block_count")?;
        if layers > MAX_LAYERS {
            return Err(self.bad("block_count", &layers, "out of range, the file is damaged"));
        }
        Ok(layers)
    }

    /// Rows of the token embedding table; 0 without one.
    pub(crate) fn vocabulary(&self) -> usize {
        let rows = self.gguf.tensor("token_embd.weight").map_or(0, |tensor| tensor.rows());
        usize::try_from(rows).unwrap_or(0)
    }

    /// Checks that a length, if the file gives one, equals `length`.
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
