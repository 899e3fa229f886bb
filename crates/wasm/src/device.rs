//! The browser's GPU.

use rullama_engine::gpu::{DeviceFacts, Gpu, OpenOptions};
use serde::Deserialize;
use serde_json::json;
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};

use crate::{error::Failure, options::parse};

/// A device of the browser; a model's own.
#[wasm_bindgen]
pub struct Device {
    pub(crate) gpu: Gpu,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    low_power: bool,
    name: String,
    software: bool,
    /// Widths, where the page asked for them.
    subgroups: Option<(u32, u32)>,
    /// Whether kernels may use halves, if the device has them.
    f16: bool,
}

#[wasm_bindgen]
impl Device {
    /// Opens a device. The page says what wgpu does not ask browsers for:
    /// `{ lowPower, name, software, subgroups: [min, max] | null, f16 }`.
    pub async fn open(request: String) -> Result<Self, JsValue> {
        let Request { low_power, name, software, subgroups, f16 } = parse(&request)?;
        let wishes = OpenOptions { low_power, subgroups, name: Some(name), software };
        let gpu = Gpu::open_with(wishes).await.map_err(Failure::from)?;
        let facts = gpu.facts().clone();
        Ok(Self { gpu: gpu.playing(DeviceFacts { f16: facts.f16 && f16, ..facts }) })
    }

    /// `{ name, facts }`: what kernels are chosen by.
    pub fn describe(&self) -> String {
        json!({ "name": self.gpu.name(), "facts": format!("{:?}", self.gpu.facts()) }).to_string()
    }

    /// Labels of the pipelines made so far, as JSON: which variants ran.
    pub fn pipelines(&self) -> String {
        json!(self.gpu.pipeline_labels()).to_string()
    }

    /// Gives everything on the device back, at once.
    pub fn destroy(&self) {
        self.gpu.destroy();
    }
}
