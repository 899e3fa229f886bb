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
    /// Widths, where the page requested them.
    subgroups: Option<(u32, u32)>,
    /// Whether the page requested matrix units, and got them.
    matrix: bool,
    /// The same for matrix units of bytes.
    matrix_int8: bool,
    /// Whether kernels may use halves, if the device has them.
    f16: bool,
    /// Whether products of packed bytes are single instructions.
    packed_dot: bool,
}

#[wasm_bindgen]
impl Device {
    /// Opens a device. The page says what wgpu does not ask browsers for:
    /// `{ lowPower, name, software, subgroups: [min, max] | null, matrix, matrixBytes, f16, packedDot }`. It also begins to compile kernels on the
    /// same device when `compile` is called with one, `{ label, text, constants: { name: value }, bindings: [type] }`, and gives a
    /// promise.
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
            let begun = compile.call1(&JsValue::NULL, &kernel(source).into());
            let done = begun.map(|promise| JsFuture::from(Promise::resolve(&promise)));
            Box::pin(async move {
                // Should it have failed, wgpu is going to say why.
                let made = match done {
                    Ok(done) => done.await,
                    Err(error) => Err(error),
                };
                Box::new(made) as Box<dyn Any>
            })
        }));
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

/// A kernel as the page wants it.
fn kernel(source: KernelSource) -> String {
    let KernelSource { label, text, constants, bindings } = source;
    let constants: Map<_, _> =
        constants.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    json!({ "label": label, "text": text, "constants": constants, "bindings": bindings })
        .to_string()
}
