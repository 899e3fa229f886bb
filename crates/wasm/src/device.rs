//! The browser's GPU.

use std::any::Any;

use js_sys::{Function, Promise};
use rullama_engine::gpu::{
    DeviceFacts, Gpu, KernelSource, MatrixInt8, MatrixUnits, OpenOptions, PipelineCompiler,
};
use serde::Deserialize;
use serde_json::{Map, json};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};
use wasm_bindgen_futures::JsFuture;

use crate::{error::Failure, options::parse};

/// A WebGPU device; each model has its own.
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
    /// Minimum and maximum subgroup size, if the page requested the feature.
    subgroups: Option<(u32, u32)>,
    /// Whether the page requested f16 matrix units and got them.
    matrix: bool,
    /// Whether the page requested int8 matrix units and got them.
    matrix_int8: bool,
    /// Whether kernels may use f16, if the device supports it.
    f16: bool,
    /// Whether packed 4x8-bit dot products are single instructions.
    packed_dot: bool,
}

#[wasm_bindgen]
impl Device {
    /// Opens a device. The page passes what wgpu does not query in browsers:
    /// `{ lowPower, name, software, subgroups: [min, max] | null, matrix, matrixBytes, f16, packedDot }`. `compile` is called with
    /// a kernel, `{ label, text, constants: { name: value }, bindings: [type] }`; it starts to compile it on the same device and
    /// returns a promise.
    pub async fn open(request: String, compile: Function) -> Result<Self, JsValue> {
        let Request { low_power, name, software, subgroups, matrix, matrix_int8, f16, packed_dot } =
            parse(&request)?;
        let matrix = matrix.then_some(MatrixUnits::Chromium16);
        let matrix_int8 = matrix_int8.then_some(MatrixInt8::Chromium);
        let name = Some(name);
        let request =
            OpenOptions { low_power, subgroups, packed_dot, matrix, matrix_int8, name, software };
        let gpu = Gpu::open_with(request).await.map_err(Failure::from)?;
        gpu.set_compiler(PipelineCompiler::new(move |source| {
            let started = compile.call1(&JsValue::NULL, &kernel(source).into());
            let done = started.map(|promise| JsFuture::from(Promise::resolve(&promise)));
            Box::pin(async move {
                // If this fails, wgpu reports the reason when it creates the pipeline.
                let compiled = match done {
                    Ok(done) => done.await,
                    Err(error) => Err(error),
                };
                Box::new(compiled) as Box<dyn Any>
            })
        }));
        let facts = gpu.facts().clone();
        Ok(Self { gpu: gpu.playing(DeviceFacts { f16: facts.f16 && f16, ..facts }) })
    }

    /// `{ name, facts }` as JSON: the input of kernel selection.
    pub fn describe(&self) -> String {
        json!({ "name": self.gpu.name(), "facts": format!("{:?}", self.gpu.facts()) }).to_string()
    }

    /// Labels of the pipelines created so far, as JSON.
    pub fn pipelines(&self) -> String {
        json!(self.gpu.pipeline_labels()).to_string()
    }

    /// Destroys the device and frees all its memory at once.
    pub fn destroy(&self) {
        self.gpu.destroy();
    }
}

/// A kernel as JSON for the page.
fn kernel(source: KernelSource) -> String {
    let KernelSource { label, text, constants, bindings } = source;
    let constants: Map<_, _> =
        constants.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    json!({ "label": label, "text": text, "constants": constants, "bindings": bindings })
        .to_string()
}
