//! How to add a family: a description and a function that reads its keys. The toy family has GELU gates, norms before and after
//! branches, normed values and adjacent RoPE pairs.

use std::{collections::BTreeSet, rc::Rc};

use pollster::block_on;
use rullama_engine::gpu::{DeviceFacts, dispatch_count};
use rullama_engine::{graph::Element, ops::Activation, ops::RopePairs};
use rullama_gguf::{DType, Gguf, TensorInfo, Value, Writer};
use rullama_models::decoder::{Pass, PassInput, PassOutput, decoder};
use rullama_models::{Catalog, ModelError, family::Family, family::dense};
use rullama_source::MemorySource;

static TOY: Family = Family {
    architecture: "toy",
    post_norms: true,
    qk_norm: false,
    v_norm: true,
    pairs: RopePairs::Adjacent,
    activation: Activation::Gelu,
    scaled_embeddings: true,
    global_image_blocks: false,
    skips_tensors: false,
    read: dense,
};

/// A two-layer file of the family, with an optional extra tensor.
fn file(extra: Option<&str>) -> Gguf {
    let mut writer = Writer::new().kv("general.architecture", "toy");
    let keys =
        "block_count embedding_length feed_forward_length attention.head_count context_length";
    for (key, size) in keys.split(' ').zip([2, 32, 64, 2, 128]) {
        writer = writer.kv(format!("toy.{key}"), Value::U32(size));
    }
    writer = writer.kv("toy.attention.layer_norm_rms_epsilon", Value::F32(1e-5));
    let mut tensors = vec![("token_embd.weight".to_owned(), vec![32, 48])];
    tensors.extend(extra.map(|name| (name.to_owned(), vec![32])));
    tensors.push(("output_norm.weight".into(), vec![32]));
    for (names, dims) in [
        ("attn_norm post_attention_norm ffn_norm post_ffw_norm", vec![32]),
        ("attn_q attn_k attn_v attn_output", vec![32, 32]),
        ("ffn_gate ffn_up", vec![32, 64]),
        ("ffn_down", vec![64, 32]),
    ] {
        let layers = |name| [0, 1].map(|i| format!("blk.{i}.{name}.weight"));
        tensors.extend(names.split(' ').flat_map(layers).map(|name| (name, dims.clone())));
    }
    for (name, dims) in tensors {
        let bytes = vec![0.5f32.to_le_bytes(); dims.iter().product::<u64>() as usize].concat();
        writer = writer.tensor(name, &dims, DType::F32, bytes);
    }
    let source = MemorySource::new("toy.gguf", writer.finish().expect("a file"));
    block_on(Gguf::open(Rc::new(source))).expect("it opens")
}

#[test]
fn graph_of_a_family_uses_every_tensor() {
    assert!(include_str!("toy_family.rs").lines().count() < 100, "a family takes little");
    let gguf = file(None);
    let config = (TOY.read)(&TOY, &gguf).expect("its keys");
    let catalog = Catalog::of_file(&gguf, &config.expected()).expect("its tensors");
    config.refuse_unknown(gguf.tensors().iter().map(TensorInfo::name)).expect("no others");
    let pass = Pass {
        tokens: 1,
        input: PassInput::Token,
        table: false,
        output: PassOutput::Greedy,
        context: 128,
        ring: 1,
        cache: Element::F16,
        suppressed: 0,
        traced: false,
        host_experts: 0,
        blocks: false,
        hidden: false,
        short_context: None,
        pool: None,
    };
    let graph = decoder(&config, &catalog, &pass).segments.remove(0).graph;
    let tensors = graph.values().flat_map(|(_, info)| info.origin.tensors(&info.ty));
    let used: BTreeSet<String> = tensors.map(|(name, ..)| name.to_owned()).collect();
    let all: BTreeSet<String> = gguf.tensors().iter().map(|t| t.name().to_owned()).collect();
    assert_eq!(used, all, "the graph uses every tensor");
    assert!(dispatch_count(&graph, &DeviceFacts::floor()) > 10);
}

#[test]
fn unknown_tensors_are_refused() {
    let config = (TOY.read)(&TOY, &file(None)).expect("its keys");
    let check = |extra| {
        config.refuse_unknown(file(Some(extra)).tensors().iter().map(TensorInfo::name)).unwrap_err()
    };
    let error = check("blk.1.attn_sinks.weight");
    assert!(matches!(error, ModelError::UnknownTensor { name } if name.contains("sinks")));
    let error = check("blk.1.attn_q.bias");
    assert!(matches!(error, ModelError::MissingTensors { .. }), "biases of one layer only");
    assert!(matches!(Family::of_file(&file(None)), Err(ModelError::Architecture { .. })));
}
