//! How to add a family: a description and a function that reads its keys. The toy family has GELU gates, norms before and after
//! branches, normed values and adjacent RoPE pairs.

use std::{collections::BTreeSet, rc::Rc};

use pollster::block_on;
use rullama_engine::{
    gpu::{DeviceFacts, dispatch_count},
    graph::Element,
    ops::{Activation, RopePairs},
};
use rullama_gguf::{DType, Gguf, TensorInfo, Value, Writer, quant::quantize};
use rullama_models::{
    Catalog, ModelError,
    decoder::{Pass, PassInput, PassOutput, decoder},
    family::{Family, dense},
};
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
    let sizes = [("block_count", 2u32), ("embedding_length", 32), ("feed_forward_length", 64)];
    let others = [("attention.head_count", 2), ("context_length", 128)];
    let keys = sizes.into_iter().chain(others);
    let mut writer = keys
        .fold(Writer::new().kv("general.architecture", "toy"), |file, (key, n)| {
            file.kv(format!("toy.{key}"), Value::U32(n))
        });
    writer = writer.kv("toy.attention.layer_norm_rms_epsilon", Value::F32(1e-5));
    let mut tensor = |name: String, dims: &[u64]| {
        let count = dims.iter().product::<u64>() as usize;
        let bytes = quantize(DType::F32, &vec![0.5; count]).expect("numbers");
        let file = std::mem::replace(&mut writer, Writer::new());
        writer = file.tensor(name, dims, DType::F32, bytes);
    };
    tensor("token_embd.weight".into(), &[32, 48]);
    tensor("output_norm.weight".into(), &[32]);
    for layer in 0..2 {
        for norm in ["attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"] {
            tensor(format!("blk.{layer}.{norm}.weight"), &[32]);
        }
        for matrix in ["attn_q", "attn_k", "attn_v", "attn_output"] {
            tensor(format!("blk.{layer}.{matrix}.weight"), &[32, 32]);
        }
        for matrix in ["ffn_gate", "ffn_up"] {
            tensor(format!("blk.{layer}.{matrix}.weight"), &[32, 64]);
        }
        tensor(format!("blk.{layer}.ffn_down.weight"), &[64, 32]);
    }
    extra.into_iter().for_each(|name| tensor(name.into(), &[32]));
    let bytes = writer.finish().expect("a file");
    block_on(Gguf::open(Rc::new(MemorySource::new("toy.gguf", bytes)))).expect("it opens")
}

#[test]
fn graph_of_a_family_uses_every_tensor() {
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
    let mut used = BTreeSet::new();
    for (_, info) in graph.values() {
        used.extend(info.origin.tensors(&info.ty).into_iter().map(|(name, ..)| name.to_owned()));
    }
    let all: BTreeSet<String> = gguf.tensors().iter().map(|t| t.name().to_owned()).collect();
    assert_eq!(used, all, "the graph uses every tensor");
    assert!(dispatch_count(&graph, &DeviceFacts::floor()) > 10);
}

#[test]
fn unknown_tensors_are_refused() {
    let gguf = file(Some("blk.1.attn_sinks.weight"));
    let config = (TOY.read)(&TOY, &gguf).expect("its keys");
    let refused = config.refuse_unknown(gguf.tensors().iter().map(TensorInfo::name));
    assert!(matches!(refused, Err(ModelError::UnknownTensor { name }) if name.contains("sinks")));
    let gguf = file(Some("blk.1.attn_q.bias"));
    let refused = config.refuse_unknown(gguf.tensors().iter().map(TensorInfo::name));
    assert!(matches!(refused, Err(ModelError::MissingTensors { .. })), "biases of one layer only");
    assert!(matches!(Family::of_file(&gguf), Err(ModelError::Architecture { .. })));
}
