//! The browser's GPU, or its CPU.

use std::any::Any;

use js_sys::{Function, Promise};
use rullama_engine::{
    executor,
    gpu::{DeviceFacts, Gpu, KernelSource, MatrixInt8, MatrixUnits, OpenOptions, PipelineCompiler},
};
use serde::Deserialize;
use serde_json::{Map, json};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};
use wasm_bindgen_futures::JsFuture;

use crate::{error::Failure, options::parse, turns::Turns};

/// A WebGPU device, or the CPU; each model has its own.
#[wasm_bindgen]
pub struct Device {
    pub(crate) executor: executor::Device,
    pub(crate) turns: Turns,
}

impl Device {
    /// The GPU, for what needs one.
    pub(crate) fn gpu(&self, what: &'static str) -> Result<&Gpu, Failure> {
        match &self.executor {
            executor::Device::Gpu(gpu) => Ok(gpu),
            executor::Device::Cpu => Err(Failure::NeedsGpu(what)),
        }
    }

    /// Whether it is the CPU.
    pub(crate) fn is_cpu(&self) -> bool {
        matches!(self.executor, executor::Device::Cpu)
    }
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
        let request = OpenOptions {
            low_power,
            subgroups,
            packed_dot,
            matrix,
            matrix_int8,
            name,
            software,
            pipelines: None,
        };
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
        let gpu = gpu.emulating(DeviceFacts { f16: facts.f16 && f16, ..facts });
        Ok(Self { executor: executor::Device::Gpu(gpu), turns: Turns::default() })
    }

    /// The CPU. Between two tokens and two parts of a prompt `pause` is called; its promise settles when messages had their turn.
    pub fn cpu(pause: Function) -> Self {
        Self { executor: executor::Device::Cpu, turns: Turns::by(pause) }
    }

    /// `{ name, facts }` as JSON: the input of kernel selection.
    pub fn describe(&self) -> String {
        let facts = match &self.executor {
            executor::Device::Gpu(gpu) => format!("{:?}", gpu.facts()),
            executor::Device::Cpu => String::new(),
        };
        json!({ "name": self.executor.name(), "facts": facts }).to_string()
    }

    /// Labels of the pipelines created so far, as JSON.
    pub fn pipelines(&self) -> String {
        match &self.executor {
            executor::Device::Gpu(gpu) => json!(gpu.pipeline_labels()),
            executor::Device::Cpu => json!([]),
        }
        .to_string()
    }

    /// Destroys the device and frees all its memory at once.
    pub fn destroy(&self) {
        if let executor::Device::Gpu(gpu) = &self.executor {
            gpu.destroy();
        }
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
