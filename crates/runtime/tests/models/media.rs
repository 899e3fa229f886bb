//! Images and audio in prompts: logits and greedy tokens against golden values.

use std::rc::Rc;

use pollster::block_on;
use rullama_engine::executor::Device;
use rullama_gguf::Gguf;
use rullama_media::{
    audio::Audio,
    image::{Budget, Image},
};
use rullama_runtime::{
    RuntimeError, Session, SoftTokens,
    media::AudioEncoder,
    media::{ImageSize, VisionEncoder},
    session::{DeviceSampling, Media, SessionOptions},
};
use rullama_source::MemorySource;
use rullama_testkit::golden;
use safetensors::SafeTensors;

use super::golden::{devices, exact, model};

const CLOSE: f32 = 1e-3;

fn numbers<T>(file: &str, name: &str, read: fn([u8; 4]) -> T) -> Vec<T> {
    let bytes = golden(&format!("media/{file}.safetensors"));
    let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let data = tensors.tensor(name).expect("the tensor is there").data();
    data.as_chunks().0.iter().map(|four| read(*four)).collect()
}

fn ids(file: &str, name: &str) -> Vec<u32> {
    numbers(file, name, u32::from_le_bytes)
}

fn towers(model: &str) -> Rc<Gguf> {
    let name = format!("gguf/{model}-mmproj-F16.gguf");
    let source = Rc::new(MemorySource::new(&name, golden(&name)));
    Rc::new(block_on(Gguf::open(source)).expect("the file opens"))
}

fn seen(model: &str, device: &Device, sight: ImageSize) -> SoftTokens {
    let encoder =
        block_on(VisionEncoder::load(towers(model), device.clone(), 64)).expect("it loads");
    let image = Image::decode(&golden(&format!("media/{model}-image.png"))).expect("a PNG");
    block_on(encoder.expect("there is a tower").encode(&image, sight)).expect("it runs")
}

/// The placeholder: the most frequent id.
fn placeholder(ids: &[u32]) -> u32 {
    *ids.iter().max_by_key(|id| ids.iter().filter(|other| other == id).count()).expect("some ids")
}

fn check(model_name: &str, file: &str, prefix: &str, media: SoftTokens, device: &Device) {
    let model = model(model_name, device);
    let mut session = model.session(&exact()).expect("a session");
    let prompt = ids(file, &format!("{prefix}.ids"));
    // Audio clips use causal attention.
    let whole = file.ends_with("vision");
    let media = Media { placeholder: placeholder(&prompt), rows: Rc::new(media), whole };
    let tokens = session.soften(&prompt, &[media]).expect("as many placeholders as rows");
    session.set_tokens(&tokens).expect("it fits");
    let mut rows: Vec<f32> = Vec::new();
    block_on(session.all_logits(&mut |some| rows.extend(some))).expect("it runs");
    let tail = numbers(file, &format!("{prefix}.logits_tail"), f32::from_le_bytes);
    let last = &rows[rows.len() - tail.len()..];
    let worst = last.iter().zip(&tail).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < CLOSE, "{model_name} {prefix} on {}: {worst}", device.name());
    let best =
        |row: &[f32]| (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b])).expect("logits");
    let argmax: Vec<u32> = rows.chunks_exact(640).map(|row| best(row) as u32).collect();
    assert_eq!(argmax, ids(file, &format!("{prefix}.argmax")), "{model_name} {prefix}");
    if prefix != "image.resized70" {
        assert_eq!(greedy(&mut session, &tokens), ids(file, &format!("{prefix}.greedy")));
    }
}

fn greedy(session: &mut Session, prompt: &[u32]) -> Vec<u32> {
    session.set_tokens(prompt).expect("it fits");
    let step = |_| {
        block_on(session.next(DeviceSampling::Greedy)).expect("it runs").expect("there is room")
    };
    (0..16).map(step).collect()
}

#[test]
fn images() {
    for device in devices() {
        for model in ["micro-e2b", "micro-moe"] {
            for (form, sight) in
                [("native", ImageSize::Native), ("resized70", ImageSize::Fill(Budget::Tiny))]
            {
                let (name, file) = (format!("{model}-BF16"), format!("{model}-vision"));
                let soft = seen(model, &device, sight);
                check(&name, &file, &format!("image.{form}"), soft, &device);
            }
        }
    }
}

#[test]
fn audio() {
    for device in devices() {
        let encoder = block_on(AudioEncoder::load(towers("micro-e2b"), device.clone(), 64));
        let audio = Audio::decode(&golden("media/micro-e2b-audio.wav")).expect("a WAV file");
        let encoder = encoder.expect("it loads").expect("there is a tower");
        let soft = block_on(encoder.encode(&audio, 11)).expect("it runs");
        check("micro-e2b-BF16", "micro-e2b-audio", "audio", soft, &device);
    }
}

#[test]
fn prefixes_match_only_with_the_same_image() {
    let model = model("micro-moe-BF16", &Device::Cpu);
    let mut session = model.session(&exact()).expect("a session");
    let prompt = ids("micro-moe-vision", "image.native.ids");
    let rows = seen("micro-moe", &Device::Cpu, ImageSize::Native);
    let mut other = rows.clone();
    other.values[7] += 1.0;
    let placeholder = placeholder(&prompt);
    let tokens = |rows: &SoftTokens, session: &mut Session| {
        let media = Media { placeholder, rows: Rc::new(rows.clone()), whole: true };
        session.soften(&prompt, &[media]).expect("as many placeholders as rows")
    };
    let (same, again) = (tokens(&rows, &mut session), tokens(&rows, &mut session));
    let changed = tokens(&other, &mut session);
    assert_eq!(same, again);
    assert_ne!(same, changed);
    session.set_tokens(&same).expect("it fits");
    block_on(session.prefill(&mut |_| true)).expect("it runs");
    assert_eq!(session.set_tokens(&again).expect("it fits"), prompt.len() - 1);
    let kept = session.set_tokens(&changed).expect("it fits");
    assert!(kept < prompt.iter().position(|id| *id == placeholder).expect("it is there") + 1);
    let values = vec![0.0; 99 * (rows.values.len() / rows.count)];
    let short = Media { placeholder, rows: Rc::new(SoftTokens { count: 99, values }), whole: true };
    let wrong = session.soften(&prompt, &[short]);
    assert!(
        matches!(wrong, Err(RuntimeError::Placeholders { found: 20, wanted: 99 })),
        "{wrong:?}"
    );
}

/// A session with the golden prompt and its image.
fn with_image(context: usize) -> (Session, Vec<u32>) {
    let model = model("micro-moe-BF16", &Device::Cpu);
    let options = SessionOptions { context: Some(context), ..exact() };
    let mut session = model.session(&options).expect("a session");
    let prompt = ids("micro-moe-vision", "image.native.ids");
    let rows = Rc::new(seen("micro-moe", &Device::Cpu, ImageSize::Native));
    let media = Media { placeholder: placeholder(&prompt), rows, whole: true };
    let tokens = session.soften(&prompt, &[media]).expect("as many placeholders as rows");
    session.set_tokens(&tokens).expect("it fits");
    (session, tokens)
}

#[test]
fn short_contexts_need_no_ring_buffer() {
    // Shorter than window plus pass: the caches hold the whole context instead of a ring buffer.
    let [short, long] = [48, 512].map(|context| block_on(with_image(context).0.logits()));
    assert_eq!(short.expect("it runs"), long.expect("it runs"));
}

#[test]
fn unsupported_operations_with_images_are_refused() {
    let (mut session, tokens) = with_image(512);
    let refused = |error: RuntimeError| assert_eq!(error.code(), "bad_prompt", "{error}");
    refused(block_on(session.trace()).expect_err("a trace takes tokens"));
    let last = tokens.iter().rposition(|id| *id >= 640).expect("there is an image");
    session.rewind(last + 1);
    refused(block_on(session.next(DeviceSampling::Greedy)).expect_err("text must follow"));
}
