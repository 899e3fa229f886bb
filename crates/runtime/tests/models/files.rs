//! Packaging of models: towers in the same file, split models.

use std::{ops::ControlFlow, rc::Rc};

use pollster::block_on;
use rullama_engine::executor::Device;
use rullama_gguf::{DType, Gguf, TensorInfo, Writer};
use rullama_runtime::{
    Model,
    model::{LoadOptions, MemoryUse, ModelKind, Summary},
};
use rullama_source::MemorySource;
use rullama_testkit::golden;

use crate::golden::{Golden, devices, exact};

const MODEL: &str = "micro-e2b-Q8_0";

fn open(name: &str, bytes: Vec<u8>) -> Gguf {
    block_on(Gguf::open(Rc::new(MemorySource::new(name, bytes)))).expect("the file opens")
}

fn plain() -> Gguf {
    open(MODEL, golden(&format!("gguf/{MODEL}.gguf")))
}

/// The metadata of a file.
fn keys(gguf: &Gguf) -> Writer {
    gguf.metadata()
        .iter()
        .fold(Writer::new(), |file, entry| file.kv(entry.key.as_str(), entry.value.clone()))
}

/// A file with some tensors of another.
fn with_tensors(file: Writer, gguf: &Gguf, tensors: &[TensorInfo]) -> Writer {
    tensors.iter().fold(file, |file, tensor| {
        let bytes = block_on(gguf.read(tensor, 0..tensor.nbytes())).expect("its bytes");
        file.tensor(tensor.name(), tensor.dims(), tensor.dtype(), bytes)
    })
}

fn load(gguf: Gguf, device: &Device) -> Model {
    let mut go_on = |_| ControlFlow::Continue(());
    block_on(Model::load(gguf, device.clone(), &LoadOptions::default(), &mut go_on))
        .expect("the model loads")
}

fn logits(model: &Model) -> Vec<f32> {
    let mut session = model.session(&exact()).expect("a session");
    session.extend(&Golden::of(MODEL).ids("short.ids")).expect("they fit");
    block_on(session.logits()).expect("logits")
}

/// Checks that a file gives the same logits and GPU bytes as the plain one.
fn check_same(file: impl Fn() -> Gguf) {
    for device in devices() {
        let (model, plain) = (load(file(), &device), load(plain(), &device));
        assert_eq!(logits(&model), logits(&plain), "on {}", device.name());
        assert_eq!(model.gpu_bytes(), plain.gpu_bytes(), "on {}", device.name());
    }
}

#[test]
fn towers_in_the_same_file_are_not_loaded() {
    let file = || {
        let gguf = plain();
        let halves = |elements: u64| vec![0u8; usize::try_from(elements).expect("small") * 2];
        let numbers = |elements: u64| vec![0u8; usize::try_from(elements).expect("small") * 4];
        let mut file = keys(&gguf)
            .kv("gemma4.vision.block_count", 1u32)
            .kv("gemma4.vision.embedding_length", 16u32)
            .kv("gemma4.vision.feed_forward_length", 32u32)
            .kv("gemma4.vision.attention.head_count", 2u32)
            .kv("gemma4.vision.attention.layer_norm_epsilon", 1e-6f32)
            .kv("gemma4.vision.patch_size", 16u32)
            .kv("gemma4.vision.num_channels", 3u32)
            .kv("gemma4.vision.projector.scale_factor", 3u32)
            .kv("gemma4.audio.block_count", 1u32);
        // Sorted by name, as in such files: tower tensors before and after the model's.
        for (name, dims) in
            [("a.blk.0.attn_q.weight", &[16, 16][..]), ("a.pre_encode.out.weight", &[16, 24])]
        {
            file = file.tensor(name, dims, DType::F16, halves(dims.iter().product()));
        }
        file = with_tensors(file, &gguf, gguf.tensors());
        for (name, dims) in [
            ("mm.a.input_projection.weight", &[24, 64][..]),
            ("mm.input_projection.weight", &[16, 64]),
            ("v.blk.0.attn_q.weight", &[16, 16]),
            ("v.blk.0.ffn_down.weight", &[32, 16]),
            ("v.patch_embd.weight", &[16, 16, 3, 16]),
        ] {
            file = file.tensor(name, dims, DType::F16, halves(dims.iter().product()));
        }
        for (name, dims) in [
            ("v.blk.0.ln1.weight", &[16][..]),
            ("v.blk.0.attn_q.input_max", &[1]),
            ("v.clamp_data", &[32]),
            ("v.position_embd.weight", &[16, 64, 2]),
        ] {
            file = file.tensor(name, dims, DType::F32, numbers(dims.iter().product()));
        }
        open("single.gguf", file.finish().expect("a file"))
    };
    check_same(file);
}

#[test]
fn a_split_model_equals_the_whole() {
    let file = || {
        let gguf = plain();
        let count = gguf.tensors().len();
        let parts =
            gguf.tensors().chunks(count.div_ceil(3)).zip(0u16..).map(|(tensors, number)| {
                // All metadata is in the first part.
                let file = if number == 0 { keys(&gguf) } else { Writer::new() };
                let count = i32::try_from(count).expect("few");
                let file = file.kv("split.no", number).kv("split.count", 3u16);
                let file = with_tensors(file.kv("split.tensors.count", count), &gguf, tensors);
                open("part", file.finish().expect("a file"))
            });
        let mut parts: Vec<Gguf> = parts.collect();
        let first = parts.remove(0);
        first.join(parts).expect("parts of one model")
    };
    check_same(file);
}

#[test]
fn kind_and_memory_are_known_before_loading() {
    for (file, kind, context) in [
        ("gguf/micro-e2b-Q8_0.gguf", ModelKind::Decoder, true),
        ("embedding/first-BF16.gguf", ModelKind::Embedding, true),
        ("embedding/second-BF16.gguf", ModelKind::Embedding, true),
        ("diffusion/micro-diffusion-BF16.gguf", ModelKind::Diffusion, true),
        // A drafter has its target model's context.
        ("assistant/micro-assistant-BF16.gguf", ModelKind::Drafter, false),
    ] {
        let gguf = open(file, golden(file));
        let summary = Summary::of(&gguf).expect("a summary");
        assert_eq!((ModelKind::of(&gguf), summary.kind), (kind, kind), "{file}");
        assert!(summary.layers > 1 && summary.vocabulary == 640, "{file}: {summary:?}");
        assert!(summary.trained_context > 0 || !context, "{file}: {summary:?}");
        assert_eq!(summary.thinking, kind.chats(), "{file}");
        let options = LoadOptions { gpu_budget: Some(1000), ..LoadOptions::default() };
        let memory = MemoryUse::of_file(&gguf, &options).expect("an estimate");
        assert!(memory.weights > 50_000 && memory.gpu(false) >= memory.weights, "{file}");
        assert_eq!(memory.caches > 0, kind.chats(), "{file}");
        assert!(memory.check_budget(&options).is_err(), "{file} does not fit into a kilobyte");
    }
}
