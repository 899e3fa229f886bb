//! Golden models with modified headers or tensors: what kernels do not support is refused with a typed error; tensors that converters
//! may omit are optional.

use std::{ops::ControlFlow, rc::Rc};

use pollster::block_on;
use rullama_engine::{EngineError, executor::Device};
use rullama_gguf::{DType, Gguf, Value, Writer};
use rullama_models::ModelError;
use rullama_runtime::{
    Model, RuntimeError,
    model::{CacheType, LoadOptions, MemoryUse},
    session::SessionOptions,
};
use rullama_source::MemorySource;
use rullama_testkit::golden;

use crate::golden::{Golden, devices, exact};

/// A tensor to write: name, dimensions, format and bytes.
struct Tensor {
    name: String,
    dims: Vec<u64>,
    dtype: DType,
    bytes: Vec<u8>,
}

fn open(bytes: Vec<u8>) -> Gguf {
    block_on(Gguf::open(Rc::new(MemorySource::new("changed.gguf", bytes)))).expect("it opens")
}

/// A golden model with some keys set and its tensors mapped by `change`; `None` drops a tensor.
fn changed(
    name: &str,
    keys: &[(&str, u32)],
    change: impl Fn(Tensor, &Gguf) -> Option<Tensor>,
) -> Gguf {
    let gguf = open(golden(&format!("gguf/{name}.gguf")));
    let mut file = Writer::new();
    for entry in gguf.metadata() {
        let set = keys.iter().find(|(key, _)| *key == entry.key);
        let value = set.map_or_else(|| entry.value.clone(), |(_, value)| Value::U32(*value));
        file = file.kv(entry.key.as_str(), value);
    }
    for tensor in gguf.tensors() {
        let bytes = block_on(gguf.read(tensor, 0..tensor.nbytes())).expect("its bytes").to_vec();
        let (name, dims) = (tensor.name().to_owned(), tensor.dims().to_vec());
        let tensor = Tensor { name, dims, dtype: tensor.dtype(), bytes };
        if let Some(Tensor { name, dims, dtype, bytes }) = change(tensor, &gguf) {
            file = file.tensor(name, &dims, dtype, bytes);
        }
    }
    open(file.finish().expect("a file"))
}

fn load(gguf: Gguf, device: &Device) -> Result<Model, RuntimeError> {
    let mut go_on = |_| ControlFlow::Continue(());
    block_on(Model::load(gguf, device.clone(), &LoadOptions::default(), &mut go_on))
}

fn logits(model: &Model, name: &str) -> Vec<f32> {
    let mut session = model.session(&exact()).expect("a session");
    session.extend(&Golden::of(name).ids("short.ids")).expect("they fit");
    block_on(session.logits()).expect("logits")
}

/// A tensor converted to f64, which the CPU decodes and no GPU kernel reads.
fn as_f64(tensor: Tensor, gguf: &Gguf) -> Tensor {
    let info = gguf.tensor(&tensor.name).expect("it is there");
    let values = block_on(gguf.rows_f32(info, 0..info.rows())).expect("values");
    let bytes = values.iter().flat_map(|x| f64::from(*x).to_le_bytes()).collect();
    Tensor { dtype: DType::F64, bytes, ..tensor }
}

#[test]
fn a_format_without_kernels_runs_on_the_cpu_and_is_refused_on_gpus() {
    const NAME: &str = "blk.1.ffn_down.weight";
    let file = || {
        changed("micro-dense-BF16", &[], |tensor, gguf| {
            Some(if tensor.name == NAME { as_f64(tensor, gguf) } else { tensor })
        })
    };
    for device in devices() {
        let mut read = false;
        let mut progress = |_| {
            read = true;
            ControlFlow::Continue(())
        };
        let options = LoadOptions::default();
        let loaded = block_on(Model::load(file(), device.clone(), &options, &mut progress));
        match (&device, loaded) {
            (Device::Cpu, Ok(model)) => {
                let plain = open(golden("gguf/micro-dense-BF16.gguf"));
                let plain = load(plain, &device).expect("the golden model loads");
                assert_eq!(logits(&model, "micro-dense-BF16"), logits(&plain, "micro-dense-BF16"));
            }
            (Device::Gpu(gpu), Err(error)) => {
                assert_eq!(error.code(), "unsupported_format");
                let message = error.to_string();
                for word in [NAME, "F64", "--device cpu", "quantisation"] {
                    assert!(message.to_lowercase().contains(&word.to_lowercase()), "{message}");
                }
                assert!(!read, "bytes were loaded before the error");
                assert!(gpu.pipeline_labels().is_empty(), "kernels were compiled before the error");
                assert_eq!(gpu.allocated().peak, 0, "memory was allocated before the error");
                let format =
                    matches!(error, RuntimeError::Engine(EngineError::UnsupportedFormat { .. }));
                assert!(format);
            }
            (device, other) => panic!("{}: {:?}", device.name(), other.map(|_| "loaded")),
        }
    }
}

#[test]
fn missing_expert_scales_default_to_one() {
    let name = "micro-moe-BF16";
    let scale = |tensor: &Tensor| tensor.name.ends_with("ffn_down_exps.scale");
    let ones = || {
        changed(name, &[], |tensor, _| {
            let bytes = match scale(&tensor) {
                true => 1f32.to_le_bytes().repeat(tensor.dims[0] as usize),
                false => tensor.bytes.clone(),
            };
            Some(Tensor { bytes, ..tensor })
        })
    };
    let without = || changed(name, &[], |tensor, _| (!scale(&tensor)).then_some(tensor));
    let scales =
        |gguf: &Gguf| gguf.tensors().iter().filter(|t| t.name().ends_with("exps.scale")).count();
    assert!(scales(&ones()) > 0 && scales(&without()) == 0);
    for device in devices() {
        let [ones, without] =
            [ones(), without()].map(|file| load(file, &device).expect("it loads"));
        assert_eq!(logits(&ones, name), logits(&without, name), "on {}", device.name());
    }
}

#[test]
fn missing_expert_tensors_are_named() {
    for missing in [
        "ffn_gate_up_exps.weight",
        "pre_ffw_norm_2.weight",
        "post_ffw_norm_1.weight",
        "post_ffw_norm_2.weight",
    ] {
        let file = changed("micro-moe-BF16", &[], |tensor, _| {
            (tensor.name != format!("blk.1.{missing}")).then_some(tensor)
        });
        match load(file, &Device::Cpu) {
            Err(RuntimeError::Model(ModelError::MissingTensors { names })) => {
                assert_eq!(names, [format!("blk.1.{missing}")]);
            }
            other => panic!("{missing}: {:?}", other.map(|_| "loaded")),
        }
    }
}

#[test]
fn errors_state_kernel_limits() {
    for (name, keys, says) in [
        (
            "micro-e2b-BF16",
            &[("gemma4.attention.key_length", 8), ("gemma4.attention.value_length", 8)][..],
            "a multiple of 16",
        ),
        (
            "micro-e2b-BF16",
            &[("gemma4.attention.key_length", 528), ("gemma4.attention.value_length", 528)],
            "at most 512",
        ),
        ("micro-e2b-BF16", &[("gemma4.attention.head_count", 1024)], "at most 256 heads"),
        (
            "micro-moe-BF16",
            &[("gemma4.expert_count", 32), ("gemma4.expert_used_count", 17)],
            "at most 16 experts",
        ),
        ("micro-moe-BF16", &[("gemma4.expert_count", 257)], "at most 256 experts"),
    ] {
        let error = load(changed(name, keys, |tensor, _| Some(tensor)), &Device::Cpu);
        let error = error.err().unwrap_or_else(|| panic!("{keys:?}: it loads"));
        assert_eq!(error.code(), "unsupported_model");
        assert!(error.to_string().contains(says), "{keys:?}: {error}");
    }
}

/// The golden models have a head size of 16, half a block of a q8 cache.
#[test]
fn q8_caches_need_a_fitting_head_size() {
    let file = || open(golden("gguf/micro-e2b-BF16.gguf"));
    let options = LoadOptions { cache: CacheType::Q8, ..LoadOptions::default() };
    let mut go_on = |_| ControlFlow::Continue(());
    let loaded = block_on(Model::load(file(), Device::Cpu, &options, &mut go_on)).map(|_| ());
    let estimate = MemoryUse::of_file(&file(), &options).map(|_| ());
    let session = SessionOptions { cache: CacheType::Q8, ..SessionOptions::default() };
    let session = load(file(), &Device::Cpu).expect("it loads").session(&session).map(|_| ());
    for refused in [loaded, estimate, session] {
        let error = refused.expect_err("a head size of 16");
        assert_eq!(error.code(), "bad_options");
        assert!(error.to_string().contains("use an f16 or f32 cache"), "{error}");
    }
}
