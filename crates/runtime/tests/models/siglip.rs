//! Gemma 3's vision encoder and images in its prompts against golden values.

use std::rc::Rc;

use pollster::block_on;
use rullama_chat::{Content, Conversation, Message, Part};
use rullama_engine::executor::Device;
use rullama_gguf::{Gguf, Value, Writer};
use rullama_media::image::{Filter, Image, Size};
use rullama_models::siglip::SiglipConfig;
use rullama_runtime::{
    MediaEncoders, SoftTokens,
    generate::{ChatOptions, prompt_with},
    media::{EncodedMedia, ImageSize, MediaKind, Medium, Piece, VisionEncoder},
    model::{Capability, capabilities_of},
    session::{DeviceSampling, Media},
};
use rullama_source::MemorySource;
use rullama_testkit::golden;
use rullama_tokenizer::Render;
use safetensors::SafeTensors;

use super::golden::{devices, exact, model};

const TOWER: &str = "gguf/micro-g3p-mmproj-F16.gguf";
/// Pixels of the encoder's images along each axis.
const SIDE: u32 = 72;
/// Values of the encoder reach 12: a thousandth of a percent of them.
const CLOSE: f32 = 1e-4;
/// The token before an image's soft tokens.
const OPENING: u32 = 35;
/// Logits, as in the goldens of text.
const LOGITS: f32 = 1e-3;

fn stored<T>(name: &str, read: fn([u8; 4]) -> T) -> Vec<T> {
    let bytes = golden("media/micro-g3p-vision.safetensors");
    let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let data = tensors.tensor(name).expect("the tensor is there").data();
    data.as_chunks().0.iter().map(|four| read(*four)).collect()
}

fn open(name: &str, bytes: Vec<u8>) -> Rc<Gguf> {
    let source = Rc::new(MemorySource::new(name, bytes));
    Rc::new(block_on(Gguf::open(source)).expect("the file opens"))
}

fn load(gguf: &Rc<Gguf>, device: &Device) -> VisionEncoder {
    let encoder = block_on(VisionEncoder::load(gguf.clone(), device.clone(), 64));
    encoder.expect("it loads").expect("there is an encoder")
}

/// The pixels that the reference encodes.
fn pixels() -> Vec<u8> {
    let bytes = golden("media/micro-g3p-vision.safetensors");
    let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    tensors.tensor("image.pixels").expect("the pixels").data().to_vec()
}

fn resized() -> Image {
    Image::from_rgb(SIDE, SIDE, pixels()).expect("an image")
}

fn original() -> Image {
    Image::decode(&golden("media/micro-g3p-image.png")).expect("a PNG file")
}

#[test]
fn images_are_resized_as_by_the_reference() {
    let size = Size { width: SIDE, height: SIDE };
    let ours = original().resize(size, Filter::Bilinear);
    // The reference's weights have more bits: a value may be rounded the other way.
    let off = ours.rgb().iter().zip(pixels()).map(|(a, b)| a.abs_diff(b)).max();
    assert!(off.expect("pixels") <= 1, "{off:?}");
    let cubic = original().resize(size, Filter::Bicubic);
    assert!(cubic.rgb().iter().zip(pixels()).any(|(a, b)| a.abs_diff(b) > 5), "another filter");
}

#[test]
fn every_golden_value() {
    let file = open(TOWER, golden(TOWER));
    for device in devices() {
        let taps = block_on(load(&file, &device).trace(&resized(), ImageSize::default()));
        let taps = taps.expect("it runs");
        let names: Vec<&str> = taps.iter().map(|tap| tap.name.as_str()).collect();
        let wanted = ["patch_embed", "layer.0.out", "layer.1.out", "pooled", "embeddings"];
        assert_eq!(names, wanted);
        for tap in &taps {
            let wanted = stored(&format!("image.{}", tap.name), f32::from_le_bytes);
            assert_eq!(tap.values.len(), wanted.len(), "{}", tap.name);
            let off = tap.values.iter().zip(&wanted).map(|(a, b)| (a - b).abs());
            let off = off.fold(0.0, f32::max);
            assert!(off < CLOSE, "{} on {}: {off}", tap.name, device.name());
        }
    }
}

#[test]
fn prompts_with_one_and_two_images() {
    let file = open(TOWER, golden(TOWER));
    for device in devices() {
        let rows = block_on(load(&file, &device).encode(&resized(), ImageSize::default()));
        let rows = Rc::new(rows.expect("it runs"));
        let model = model("micro-g3p-BF16", &device);
        for (name, images) in [("one", 1), ("two", 2)] {
            let what = format!("{name} on {}", device.name());
            let ids = |part: &str| stored(&format!("{name}.{part}"), u32::from_le_bytes);
            let mut session = model.session(&exact()).expect("a session");
            let media = vec![Media { placeholder: 0, rows: rows.clone(), whole: true }; images];
            let tokens = session.soften(&ids("ids"), &media).expect("as many placeholders as rows");
            session.set_tokens(&tokens).expect("it fits");
            let mut logits: Vec<f32> = Vec::new();
            block_on(session.all_logits(&mut |some| logits.extend(some))).expect("it runs");
            // The first image starts after its opening marker.
            let opened = ids("ids").iter().position(|id| *id == OPENING).expect("an image");
            let last = logits.len() / 640 - 4;
            for (part, first) in [("logits_image", opened + 1), ("logits_tail", last)] {
                let wanted = stored(&format!("{name}.{part}"), f32::from_le_bytes);
                let found = &logits[first * 640..][..wanted.len()];
                let off = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(off < LOGITS, "{what}, {part}: {off}");
            }
            let best = |row: &[f32]| (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b]));
            let argmax = logits.chunks_exact(640).map(|row| best(row).expect("logits") as u32);
            assert!(argmax.eq(ids("argmax")), "{what}: the most likely tokens of all positions");
            session.set_tokens(&tokens).expect("it fits");
            let next = |_| block_on(session.next(DeviceSampling::Greedy)).expect("it runs");
            let greedy: Vec<Option<u32>> = (0..16).map(next).collect();
            assert!(greedy.into_iter().eq(ids("greedy").into_iter().map(Some)), "{what}");
        }
    }
}

#[test]
fn images_in_a_conversation() {
    let model = model("micro-g3p-BF16", &Device::Cpu);
    let part = |kind: &str, text: Option<&str>| Part {
        kind: kind.into(),
        text: text.map(Into::into),
        ..Part::default()
    };
    let parts = vec![part("image", None), part("text", Some("a <start_of_image>"))];
    let message =
        Message { role: "user".into(), content: Content::Parts(parts), ..Message::default() };
    let conversation = Conversation { messages: vec![message], ..Conversation::default() };
    let rows = Rc::new(SoftTokens { count: 3, values: vec![0.5; 3 * 64] });
    let seen = EncodedMedia { kind: MediaKind::Image, pieces: vec![Piece { seconds: None, rows }] };
    let prompt = prompt_with(&model, &conversation, &[seen], ChatOptions::default());
    let prompt = prompt.expect("it fits");
    let tokenizer = model.tokenizer().expect("a vocabulary");
    assert_eq!(
        tokenizer.decode(&prompt.tokens, Render::All),
        "<bos><start_of_turn>user\n\n\n<start_of_image><pad><pad><pad><end_of_image>\n\na <start_of_image><end_of_turn>\n\
         <start_of_turn>model\n"
    );
    let opened =
        prompt.tokens.iter().filter(|id| Some(**id) == tokenizer.id_of("<start_of_image>"));
    assert_eq!(opened.count(), 1, "a typed marker is text");
    assert_eq!(
        prompt.media.iter().map(|m| (m.rows.count, m.whole)).collect::<Vec<_>>(),
        [(3, true)]
    );
}

/// Names in projector files, and in Ollama's files, which hold decoder and encoder.
const NAMES: [(&str, &str); 9] = [
    ("v.patch_embd.", "v.patch_embedding."),
    ("v.position_embd.", "v.position_embedding."),
    ("v.post_ln.", "v.post_layernorm."),
    (".ln1.", ".layer_norm1."),
    (".ln2.", ".layer_norm2."),
    (".attn_out.", ".attn_output."),
    (".ffn_up.", ".mlp.fc1."),
    (".ffn_down.", ".mlp.fc2."),
    ("mm.", "mm.mm_"),
];

/// Copies the tensors of a file under other names.
fn copied(mut writer: Writer, gguf: &Gguf, rename: impl Fn(&str) -> String) -> Writer {
    for tensor in gguf.tensors() {
        let bytes = block_on(gguf.read(tensor, 0..tensor.nbytes())).expect("its bytes");
        writer = writer.tensor(rename(tensor.name()), tensor.dims(), tensor.dtype(), bytes);
    }
    writer
}

#[test]
fn an_encoder_inside_the_model_equals_that_of_a_projector_file() {
    let (text, tower) = ("gguf/micro-g3p-BF16.gguf", open(TOWER, golden(TOWER)));
    let text = open(text, golden(text));
    let mut writer = Writer::new();
    for entry in text.metadata() {
        writer = writer.kv(entry.key.as_str(), entry.value.clone());
    }
    for entry in tower.metadata() {
        // Ollama writes no mean and deviation.
        if let Some(key) =
            entry.key.strip_prefix("clip.vision.").filter(|key| !key.contains("image_"))
        {
            writer = writer.kv(format!("gemma3.vision.{key}"), entry.value.clone());
        }
    }
    writer = writer.kv("gemma3.vision.image_size", Value::U32(SIDE));
    writer = writer.kv("gemma3.mm.tokens_per_image", Value::U32(9));
    writer = copied(writer, &text, str::to_owned);
    writer = copied(writer, &tower, |name| {
        NAMES.iter().fold(name.to_owned(), |name, (theirs, inside)| name.replace(theirs, inside))
    });
    let single = open("single.gguf", writer.finish().expect("a file"));
    let sees = |can: Vec<Capability>| can.contains(&Capability::Images);
    assert!(sees(capabilities_of(&single, [])) && sees(capabilities_of(&text, [&*tower])));
    assert!(!sees(capabilities_of(&text, [])));

    let beside = model("micro-g3p-BF16", &Device::Cpu);
    let projector = Rc::new(MemorySource::new(TOWER, golden(TOWER)));
    let mut encoders = MediaEncoders::new(&beside, vec![projector]);
    let medium = Medium::Image(original(), ImageSize::default());
    let beside = block_on(encoders.encode(&medium)).expect("it is encoded");
    let inside = block_on(load(&single, &Device::Cpu).encode(&original(), ImageSize::default()));
    assert_eq!(*beside.pieces[0].rows, inside.expect("it runs"));
    assert_eq!((beside.kind, beside.tokens()), (MediaKind::Image, 9));
    assert!(VisionEncoder::memory_of_file(&single).expect("a size") > 100_000);
}

#[test]
fn swapped_feed_forward_names_of_early_files() {
    let tower = open(TOWER, golden(TOWER));
    let mut writer = Writer::new();
    for entry in tower.metadata() {
        writer = writer.kv(entry.key.as_str(), entry.value.clone());
    }
    writer = copied(writer, &tower, |name| match name {
        name if name.contains("ffn_up") => name.replace("ffn_up", "ffn_down"),
        name => name.replace("ffn_down", "ffn_up"),
    });
    let early = open("early.gguf", writer.finish().expect("a file"));
    let [early, tower] = [early, tower].map(|file| {
        let encoder = load(&file, &Device::Cpu);
        block_on(encoder.encode(&resized(), ImageSize::default())).expect("it runs")
    });
    assert_eq!(early, tower);
}

#[test]
fn impossible_encoders_are_refused() {
    let tower = open(TOWER, golden(TOWER));
    for (key, value, complaint) in [
        ("clip.vision.patch_size", Value::U32(5), "patch_size"),
        ("clip.vision.image_size", Value::U32(60), "image_size"),
        ("clip.vision.attention.head_count", Value::U32(5), "head_count"),
        ("clip.vision.projector.scale_factor", Value::U32(17), "scale_factor"),
        ("clip.vision.image_mean", Value::U32(1), ""),
    ] {
        let mut writer = Writer::new();
        for entry in tower.metadata().iter().filter(|entry| entry.key != key) {
            writer = writer.kv(entry.key.as_str(), entry.value.clone());
        }
        let writer = copied(writer.kv(key, value), &tower, str::to_owned);
        let file = open("changed.gguf", writer.finish().expect("a file"));
        match (SiglipConfig::of_file(&file), complaint) {
            (Ok(config), "") => assert!(config.is_some(), "{key} is not needed"),
            (Err(error), complaint) if !complaint.is_empty() => {
                assert!(error.to_string().contains(complaint), "{error}");
            }
            (found, _) => panic!("{key}: {found:?}"),
        }
    }
}
