//! LoRA adapters of a model, attached with the scales that requests want.

use std::collections::VecDeque;

use pollster::block_on;
use rullama::{Adapter, AdapterSet};
use rullama_api::{ApiError, LoraScale, response::llamacpp::LoraAdapter};
use rullama_runtime::{
    Model,
    adapters::{Adapters, FactorType},
};

use crate::error::of_runtime;

/// Sets of scales that stay attached; each takes GPU memory.
const KEPT: usize = 4;

/// The adapters of a model.
pub(crate) struct Attached {
    model: Model,
    all: Vec<(Adapter, f32)>,
    names: Vec<String>,
    known: VecDeque<(Vec<f32>, Adapters)>,
}

impl Attached {
    pub(crate) fn new(model: &Model, set: AdapterSet, names: Vec<String>) -> Self {
        Self { model: model.clone(), all: set.0, names, known: VecDeque::new() }
    }

    /// As `/lora-adapters` lists them.
    pub(crate) fn list(&self) -> Vec<LoraAdapter> {
        let row = |(index, (_, scale)): (usize, &(Adapter, f32))| LoraAdapter {
            id: u32::try_from(index).unwrap_or(u32::MAX),
            path: self.names.get(index).cloned().unwrap_or_default(),
            scale: *scale,
        };
        self.all.iter().enumerate().map(row).collect()
    }

    /// Sets the scales of requests that set none.
    pub(crate) fn set(&mut self, scales: &[LoraScale]) -> Result<(), ApiError> {
        let scales = self.scales(Some(scales))?;
        for ((_, scale), new) in self.all.iter_mut().zip(scales) {
            *scale = new;
        }
        Ok(())
    }

    /// The adapters of a request; none where all scales are 0.
    pub(crate) fn of_request(
        &mut self,
        scales: Option<&[LoraScale]>,
    ) -> Result<Option<Adapters>, ApiError> {
        let scales = self.scales(scales)?;
        if scales.iter().all(|scale| *scale == 0.0) {
            return Ok(None);
        }
        if let Some((_, known)) = self.known.iter().find(|(known, _)| *known == scales) {
            return Ok(Some(known.clone()));
        }
        let with: Vec<(&Adapter, f32)> = self
            .all
            .iter()
            .zip(&scales)
            .filter(|(_, scale)| **scale != 0.0)
            .map(|((adapter, _), scale)| (adapter, *scale))
            .collect();
        let attached = block_on(self.model.attach(&with, FactorType::F16));
        let attached = attached.map_err(|error| of_runtime(&error))?;
        if self.known.len() >= KEPT {
            self.known.pop_front();
        }
        self.known.push_back((scales, attached.clone()));
        Ok(Some(attached))
    }

    /// A scale for each adapter; those that a request does not list are 0.
    fn scales(&self, wanted: Option<&[LoraScale]>) -> Result<Vec<f32>, ApiError> {
        let Some(wanted) = wanted else {
            return Ok(self.all.iter().map(|(_, scale)| *scale).collect());
        };
        let mut scales = vec![0.0; self.all.len()];
        for LoraScale { id, scale } in wanted {
            let place = usize::try_from(*id).ok().and_then(|id| scales.get_mut(id));
            *place.ok_or_else(|| ApiError::Invalid {
                message: format!("there is no LoRA adapter {id}; /lora-adapters lists them"),
            })? = *scale;
        }
        Ok(scales)
    }
}
