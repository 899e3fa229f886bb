//! Golden files, models and adapters.

use std::{ops::ControlFlow, rc::Rc};

use pollster::block_on;
use rullama_adapter::Adapter;
use rullama_engine::{executor::Device, gpu::Gpu};
use rullama_gguf::Gguf;
use rullama_runtime::{Model, model::LoadOptions};
use rullama_source::MemorySource;
use rullama_testkit::{demo_model, golden};
use rullama_train::Example;
use safetensors::{Dtype, SafeTensors};

/// The CPU and the fastest GPU of this machine; the op suite tests gradients on every GPU.
pub(crate) fn devices() -> Vec<Device> {
    let mut gpus = block_on(Gpu::all()).expect("adapters give devices");
    assert!(!gpus.is_empty(), "no WebGPU adapter: `cargo xtask setup` installs a software one");
    gpus.sort_by_key(|gpu| gpu.name().contains("SwiftShader"));
    [Device::Cpu].into_iter().chain(gpus.into_iter().take(1).map(Device::Gpu)).collect()
}

pub(crate) fn model(name: &str, device: &Device) -> Model {
    open(name, golden(&format!("gguf/{name}.gguf")), device)
}

/// The demo model of the program.
pub(crate) fn demo(device: &Device) -> Model {
    open("demo", demo_model(), device)
}

fn open(name: &str, bytes: Vec<u8>, device: &Device) -> Model {
    let source = MemorySource::new(name, bytes);
    let gguf = block_on(Gguf::open(Rc::new(source))).expect("the file opens");
    let mut go_on = |_| ControlFlow::Continue(());
    block_on(Model::load(gguf, device.clone(), &LoadOptions::default(), &mut go_on))
        .expect("the model loads")
}

/// Reference data of training a model's adapter.
pub(crate) struct Golden {
    bytes: Vec<u8>,
}

impl Golden {
    pub(crate) fn of(model: &str) -> Self {
        Self { bytes: golden(&format!("lora/{model}-lora.safetensors")) }
    }

    fn file(&self) -> SafeTensors<'_> {
        SafeTensors::deserialize(&self.bytes).expect("a golden file")
    }

    pub(crate) fn values(&self, name: &str) -> Vec<f64> {
        let file = self.file();
        let view = file.tensor(name).unwrap_or_else(|_| panic!("no {name}"));
        let data = view.data();
        match view.dtype() {
            Dtype::F32 => data
                .chunks_exact(4)
                .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]).into())
                .collect(),
            Dtype::I32 => data
                .chunks_exact(4)
                .map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]]).into())
                .collect(),
            Dtype::F64 => data
                .chunks_exact(8)
                .map(|b| f64::from_le_bytes(b.try_into().expect("eight bytes")))
                .collect(),
            other => panic!("{name} is {other:?}"),
        }
    }

    /// Names of the tensors with this prefix, without it.
    pub(crate) fn names(&self, prefix: &str) -> Vec<String> {
        let file = self.file();
        file.names().iter().filter_map(|name| Some(name.strip_prefix(prefix)?.to_owned())).collect()
    }

    /// The training sequence.
    pub(crate) fn example(&self) -> Example {
        let ids = self.values("train.ids").into_iter().map(|id| id as u32).collect();
        Example::after_prompt(ids, self.values("train.n_prompt")[0] as usize)
    }
}

/// The golden adapter of a model family, such as `micro-e2b`.
pub(crate) fn adapter(family: &str) -> Adapter {
    let name = format!("gguf/{family}-lora-F32.gguf");
    let source = MemorySource::new(&name, golden(&name));
    block_on(Adapter::read(Rc::new(source), None)).expect("a golden adapter")
}

/// The adapter with a zero `B`.
pub(crate) fn without_b(mut adapter: Adapter) -> Adapter {
    adapter.pairs.iter_mut().for_each(|pair| pair.b.fill(0.0));
    adapter
}
