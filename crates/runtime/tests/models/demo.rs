//! The embedded demo model, split into model and projector files: the replies are the same.

use std::{ops::ControlFlow, rc::Rc};

use pollster::block_on;
use rullama_engine::executor::Device;
use rullama_gguf::{Gguf, Value, Writer};
use rullama_runtime::{
    MediaEncoders, Model,
    audio::Audio,
    generate::{ChatOptions, Event, Generation, prompt_with},
    image::{Budget, Image},
    media::ImageSize,
    media::{EncodedMedia, Medium},
    model::{LoadOptions, hinted_options},
    session::SessionOptions,
};
use rullama_source::{ByteSource, MemorySource};
use rullama_testkit::{DemoAnswer, DemoCase, FileKind, demo_fixtures, demo_model};

/// Tensor names in the single file and in a projector file, where they differ; the first match counts.
const NAMES: [(&str, &str); 6] = [
    ("a.pre_encode.out.", "a.input_projection."),
    ("mm.a.fc.", "a.pre_encode.out."),
    (".ln1.", ".attn_pre_norm."),
    (".ln2.", ".attn_post_norm."),
    (".layer_pre_norm.", ".ln2."),
    (".linear_pos.", ".attn_k_rel."),
];

fn open(name: &str, bytes: Vec<u8>) -> (Rc<dyn ByteSource>, Gguf) {
    let source: Rc<dyn ByteSource> = Rc::new(MemorySource::new(name, bytes));
    let gguf = block_on(Gguf::open(source.clone())).expect("a GGUF file");
    (source, gguf)
}

fn load(gguf: Gguf) -> Model {
    let mut go_on = |_| ControlFlow::Continue(());
    let loaded = block_on(Model::load(gguf, Device::Cpu, &LoadOptions::default(), &mut go_on));
    loaded.expect("the model loads")
}

fn projector_name(name: &str) -> String {
    if !name.starts_with("a.") && !name.starts_with("mm.a.") {
        return name.into();
    }
    let renamed = NAMES.iter().find(|(here, _)| name.contains(here));
    renamed.map_or_else(|| name.into(), |(here, there)| name.replacen(here, there, 1))
}

/// The keys of a projector file: those of the towers, and others that llama.cpp requires.
fn projector_keys(one: &Gguf) -> Writer {
    let mut file = Writer::new()
        .kv("general.architecture", "clip")
        .kv("general.type", "mmproj")
        .kv("clip.vision.patch_size", 16u32)
        .kv("clip.audio.num_mel_bins", 128u32);
    let width = one.get("gemma4.embedding_length").and_then(Value::integer).expect("a width");
    for (tower, kind) in [("vision", "gemma4v"), ("audio", "gemma4a")] {
        file = file
            .kv(format!("clip.has_{tower}_encoder"), true)
            .kv(format!("clip.{tower}.projector_type"), kind)
            .kv(format!("clip.{tower}.attention.layer_norm_epsilon"), 1e-6f32)
            .kv(format!("clip.{tower}.projection_dim"), u32::try_from(width).expect("a width"));
        for name in
            ["block_count", "embedding_length", "feed_forward_length", "attention.head_count"]
        {
            let value = one.get(&format!("gemma4.{tower}.{name}")).expect("a key of the tower");
            file = file.kv(format!("clip.{tower}.{name}"), value.clone());
        }
    }
    file
}

/// Model and projector.
fn split(one: &Gguf) -> [Vec<u8>; 2] {
    let (mut text, mut towers) = (Writer::new(), projector_keys(one));
    for entry in one.metadata() {
        if !entry.key.starts_with("gemma4.vision.") && !entry.key.starts_with("gemma4.audio.") {
            text = text.kv(entry.key.as_str(), entry.value.clone());
        }
    }
    for tensor in one.tensors() {
        let bytes = block_on(one.read(tensor, 0..tensor.nbytes())).expect("its bytes");
        let (name, dims, dtype) = (tensor.name(), tensor.dims(), tensor.dtype());
        if ["v.", "a.", "mm."].iter().any(|start| name.starts_with(start)) {
            towers = towers.tensor(projector_name(name), dims, dtype, bytes);
        } else {
            text = text.tensor(name, dims, dtype, bytes);
        }
    }
    [text, towers].map(|file| file.finish().expect("a file"))
}

fn encode(encoders: &mut MediaEncoders, case: &DemoCase) -> EncodedMedia {
    let (kind, bytes) = case.file.as_ref().expect("a file");
    let medium = match kind {
        FileKind::Image => {
            Medium::Image(Image::decode(bytes).expect("an image"), ImageSize::Fill(Budget::Tiny))
        }
        FileKind::Audio => Medium::Audio(Audio::decode(bytes).expect("a clip")),
    };
    block_on(encoders.encode(&medium)).expect("it is encoded")
}

fn answer(model: &Model, case: &DemoCase, encoded: &EncodedMedia) -> DemoAnswer {
    let media = std::slice::from_ref(encoded);
    let prompt = prompt_with(model, &case.conversation, media, ChatOptions::default());
    let options = SessionOptions { context: Some(512), ..SessionOptions::default() };
    let mut session = model.session(&options).expect("a session");
    let (options, _) = hinted_options(model.gguf());
    let prompt = prompt.expect("a prompt");
    let generation = Generation::new(&mut session, model, &prompt, &options, 0);
    let mut generation = generation.expect("it fits");
    let mut answer = DemoAnswer::default();
    while let Some(event) = block_on(generation.next()).expect("it runs") {
        if let Event::Text(text) = event {
            answer.text += &text;
        }
    }
    answer
}

#[test]
fn split_files_give_the_same_replies() {
    let (_, one) = open("demo", demo_model());
    let [text, towers] = split(&one);
    let (towers, _) = open("projector", towers);
    let (_, text) = open("text", text);
    let (one, two) = (load(one), load(text));
    let mut inside = MediaEncoders::new(&one, Vec::new());
    let mut separate = MediaEncoders::new(&two, vec![towers]);
    let fixtures = demo_fixtures();
    for kind in [FileKind::Image, FileKind::Audio] {
        let of_kind = |case: &&DemoCase| case.file.as_ref().is_some_and(|(is, _)| *is == kind);
        let case = fixtures.iter().find(of_kind).expect("there is one of each");
        let encoded = encode(&mut separate, case);
        assert!(encoded == encode(&mut inside, case), "{kind:?}: the same soft tokens");
        let reply = answer(&two, case, &encoded);
        assert!(case.right(&reply), "{kind:?}: {reply:?}");
    }
}
