//! Golden files and loaded models.

use std::{
    cell::Cell,
    ops::{ControlFlow, Range},
    rc::Rc,
};

use pollster::block_on;
use rullama_engine::{executor::Device, gpu::Gpu};
use rullama_gguf::Gguf;
use rullama_runtime::{
    Model,
    model::{CacheType, LoadOptions, TablePlace},
    session::SessionOptions,
};
use rullama_source::{ByteSource, Bytes, Local, MemorySource, SourceError};
use rullama_testkit::golden;
use safetensors::SafeTensors;

/// The three prompts.
pub(crate) const PROMPTS: [&str; 3] = ["short", "medium", "long"];

/// All text models.
pub(crate) const MODELS: [&str; 17] = [
    "micro-e2b-BF16",
    "micro-e2b-Q8_0",
    "micro-e2b-Q4_0",
    "micro-dense-BF16",
    "micro-moe-BF16",
    "micro-moe-Q8_0",
    "tiny-e2b-Q4_K_M",
    "tiny-moe-Q4_K_M",
    "micro-g3-BF16",
    "micro-g3-Q4_0",
    "micro-g3p-BF16",
    "micro-g3p-Q4_0",
    "deep-g3-BF16",
    "micro-llama-Q4_1",
    "micro-llama3-Q8_0",
    "micro-qwen2-Q8_0",
    "micro-qwen3-Q8_0",
];

/// The CPU and the first GPU of this machine. Operations are tested on all GPUs; most model tests run on these two.
pub(crate) fn devices() -> Vec<Device> {
    let mut devices = all_devices();
    devices.truncate(2);
    devices
}

/// The CPU and every GPU of this machine, the slowest last.
pub(crate) fn all_devices() -> Vec<Device> {
    let mut gpus = block_on(Gpu::all()).expect("adapters give devices");
    gpus.sort_by_key(|gpu| gpu.name().contains("SwiftShader"));
    [Device::Cpu].into_iter().chain(gpus.into_iter().map(Device::Gpu)).collect()
}

pub(crate) fn model(name: &str, device: &Device) -> Model {
    model_with(name, device, TablePlace::Auto)
}

pub(crate) fn model_with(name: &str, device: &Device, table: TablePlace) -> Model {
    model_of(file(name), device, table)
}

pub(crate) fn model_of(source: Rc<Counted>, device: &Device, table: TablePlace) -> Model {
    let gguf = block_on(Gguf::open(source)).expect("the file opens");
    let options = LoadOptions { table, ..LoadOptions::default() };
    let mut go_on = |_| ControlFlow::Continue(());
    block_on(Model::load(gguf, device.clone(), &options, &mut go_on)).expect("the model loads")
}

/// A file in memory that counts the bytes read.
pub(crate) struct Counted {
    inner: MemorySource,
    pub(crate) read: Cell<u64>,
}

/// A golden GGUF file.
pub(crate) fn file(name: &str) -> Rc<Counted> {
    let inner = MemorySource::new(name, golden(&format!("gguf/{name}.gguf")));
    Rc::new(Counted { inner, read: Cell::new(0) })
}

impl ByteSource for Counted {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read(&self, range: Range<u64>) -> Local<'_, Result<Bytes, SourceError>> {
        self.read.set(self.read.get() + range.end - range.start);
        self.inner.read(range)
    }

    fn name(&self) -> &str {
        self.inner.name()
    }
}

/// Options with exact (f32) KV caches.
pub(crate) fn exact() -> SessionOptions {
    SessionOptions { cache: CacheType::F32, context: Some(512), ..SessionOptions::default() }
}

/// Reference outputs of a model.
pub(crate) struct Golden(Vec<u8>);

impl Golden {
    pub(crate) fn of(model: &str) -> Self {
        Self(golden(&format!("text/{model}.safetensors")))
    }

    /// Reference outputs with the model's adapter.
    pub(crate) fn lora(model: &str) -> Self {
        Self(golden(&format!("lora/{model}-lora.safetensors")))
    }

    /// A file by its path.
    pub(crate) fn at(path: &str) -> Self {
        Self(golden(path))
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.file().names().into_iter().map(String::from).collect()
    }

    pub(crate) fn f32(&self, name: &str) -> Vec<f32> {
        let bytes = self.bytes(name);
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    }

    pub(crate) fn ids(&self, name: &str) -> Vec<u32> {
        let bytes = self.bytes(name);
        bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    }

    fn file(&self) -> SafeTensors<'_> {
        SafeTensors::deserialize(&self.0).expect("a safetensors file")
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        let file = self.file();
        file.tensor(name).unwrap_or_else(|e| panic!("{name}: {e}")).data().to_vec()
    }
}
