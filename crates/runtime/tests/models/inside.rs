//! Towers inside the model's file, with the names and keys of such files: the same soft tokens as from a projector file.

use std::{collections::HashMap, ops::ControlFlow, rc::Rc};

use pollster::block_on;
use rullama_engine::executor::Device;
use rullama_gguf::{DType, Gguf, Writer, quant::quantize};
use rullama_runtime::{
    MediaEncoders, Model,
    audio::Audio,
    image::Image,
    media::ImageSize,
    media::{EncodedMedia, Medium},
    model::LoadOptions,
};
use rullama_source::{ByteSource, MemorySource};
use rullama_testkit::golden;

/// Tensor names of projector files and of model files with towers, where they differ. The order matters: one name is on both sides.
const NAMES: [(&str, &str); 6] = [
    ("a.pre_encode.out.", "mm.a.fc."),
    ("a.input_projection.", "a.pre_encode.out."),
    (".ln2.", ".layer_pre_norm."),
    (".attn_pre_norm.", ".ln1."),
    (".attn_post_norm.", ".ln2."),
    (".attn_k_rel.", ".linear_pos."),
];
const LINEARS: [&str; 7] =
    ["attn_q", "attn_k", "attn_v", "attn_out", "ffn_gate", "ffn_up", "ffn_down"];

fn source(name: &str) -> Rc<dyn ByteSource> {
    let name = format!("gguf/{name}.gguf");
    Rc::new(MemorySource::new(&name, golden(&name)))
}

fn open(source: Rc<dyn ByteSource>) -> Gguf {
    block_on(Gguf::open(source)).expect("the file opens")
}

fn inside_name(name: &str) -> String {
    if !name.starts_with("a.") {
        return name.into();
    }
    let renamed = NAMES.iter().find(|(theirs, _)| name.contains(theirs));
    renamed.map_or_else(|| name.into(), |(theirs, ours)| name.replace(theirs, ours))
}

/// The model with its towers; vision clamps are scalar tensors or one packed tensor.
fn single_file(packed: bool) -> Gguf {
    let (text, towers) = (open(source("micro-e2b-BF16")), open(source("micro-e2b-mmproj-F16")));
    let mut file = Writer::new();
    for entry in text.metadata() {
        file = file.kv(entry.key.as_str(), entry.value.clone());
    }
    for entry in towers.metadata() {
        if let Some(rest) = entry.key.strip_prefix("clip.").filter(|rest| rest.contains('.')) {
            file = file.kv(format!("gemma4.{rest}"), entry.value.clone());
        }
    }
    let mut limits = HashMap::new();
    for (gguf, tensor) in text
        .tensors()
        .iter()
        .map(|tensor| (&text, tensor))
        .chain(towers.tensors().iter().map(|tensor| (&towers, tensor)))
    {
        let bytes = block_on(gguf.read(tensor, 0..tensor.nbytes())).expect("its bytes");
        let limit = tensor.name().ends_with("_min") || tensor.name().ends_with("_max");
        if packed && limit && tensor.name().starts_with("v.") {
            let number = block_on(gguf.rows_f32(tensor, 0..1)).expect("a number")[0];
            limits.insert(tensor.name().to_owned(), number);
        } else {
            file = file.tensor(inside_name(tensor.name()), tensor.dims(), tensor.dtype(), bytes);
        }
    }
    if packed {
        let layers =
            (0..).take_while(|l| limits.contains_key(&format!("v.blk.{l}.attn_q.input_min")));
        let mut all: Vec<f32> = layers
            .flat_map(|layer| LINEARS.map(|linear| format!("v.blk.{layer}.{linear}")))
            .flat_map(|name| {
                ["input_min", "input_max", "output_min", "output_max"]
                    .map(|end| limits[&format!("{name}.{end}")])
            })
            .collect();
        assert!(all.len() >= 28, "the tower has limits");
        // The projector has no limits.
        all.extend([0.0; 4]);
        let bytes = quantize(DType::F32, &all).expect("numbers");
        file = file.tensor("v.clamp_data", &[all.len() as u64], DType::F32, bytes);
    }
    let bytes = file.finish().expect("a file");
    open(Rc::new(MemorySource::new("single", bytes)))
}

fn load(gguf: Gguf) -> Model {
    let mut go_on = |_| ControlFlow::Continue(());
    let loaded = block_on(Model::load(gguf, Device::Cpu, &LoadOptions::default(), &mut go_on));
    loaded.expect("the model loads")
}

fn encoded(mut encoders: MediaEncoders) -> [EncodedMedia; 2] {
    let image = Image::decode(&golden("media/micro-e2b-image.png")).expect("a PNG file");
    let audio = Audio::decode(&golden("media/micro-e2b-audio.wav")).expect("a WAV file");
    [Medium::Image(image, ImageSize::Native), Medium::Audio(audio)]
        .map(|medium| block_on(encoders.encode(&medium)).expect("it is encoded"))
}

#[test]
fn towers_inside_equal_those_of_a_projector_file() {
    let beside = load(open(source("micro-e2b-BF16")));
    let beside = encoded(MediaEncoders::new(&beside, vec![source("micro-e2b-mmproj-F16")]));
    for packed in [false, true] {
        let inside = load(single_file(packed));
        assert!(
            encoded(MediaEncoders::new(&inside, Vec::new())) == beside,
            "packed limits: {packed}"
        );
    }
}
