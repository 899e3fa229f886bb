//! Media encoders: loading on demand, markers in prompts, conversations with media.

use std::rc::Rc;

use pollster::block_on;
use rullama_chat::{Content, Conversation, Message, Part};
use rullama_engine::executor::Device;
use rullama_gguf::Gguf;
use rullama_runtime::{
    MediaEncoders, Model, RuntimeError, SoftTokens,
    audio::Audio,
    generate::{ChatOptions, Event, Generation, Prompt, prompt_of, prompt_with},
    image::{Budget, Image},
    media::ImageSize,
    media::{EncodedMedia, Frame, MediaKind, Medium, Piece},
    options::SamplingOptions,
    session::SessionOptions,
};
use rullama_source::{ByteSource, MemorySource};
use rullama_testkit::golden;

use super::golden::{Counted, devices, exact, file, model};

fn towers(model: &str) -> Rc<Counted> {
    file(&format!("{model}-mmproj-F16"))
}

fn image(model: &str) -> Medium {
    let image = Image::decode(&golden(&format!("media/{model}-image.png"))).expect("a PNG");
    Medium::Image(image, ImageSize::Native)
}

fn audio() -> Medium {
    Medium::Audio(Audio::decode(&golden("media/micro-e2b-audio.wav")).expect("a WAV file"))
}

#[test]
fn encoders_load_on_demand_and_can_be_unloaded() {
    for device in devices() {
        let (model, source) = (model("micro-e2b-BF16", &device), towers("micro-e2b"));
        let mut encoders = MediaEncoders::new(&model, vec![source.clone()]);
        let mut session = model.session(&exact()).expect("a session");
        session.extend(&[2, 435]).expect("they fit");
        block_on(session.logits()).expect("it runs");
        assert_eq!((source.read.get(), encoders.gpu_bytes()), (0, 0), "text needs no encoder");
        let first = block_on(encoders.encode(&image("micro-e2b"))).expect("it is encoded");
        let vision = source.read.get();
        assert!(vision > 0 && vision < source.len(), "the audio encoder is not read: {vision}");
        let on_gpu = matches!(device, Device::Gpu(_));
        assert_eq!(encoders.gpu_bytes() > 0, on_gpu);
        block_on(encoders.encode(&image("micro-e2b"))).expect("it is encoded");
        assert!(source.read.get() < vision + vision / 2, "weights are read once");
        encoders.unload();
        assert_eq!(encoders.gpu_bytes(), 0);
        let again = block_on(encoders.encode(&image("micro-e2b"))).expect("it is encoded again");
        assert_eq!(again, first);
        let heard = block_on(encoders.encode(&audio())).expect("it is encoded");
        assert_eq!((heard.kind, heard.tokens()), (MediaKind::Audio, 75));
    }
}

#[test]
fn memory_estimates_match_the_encoders() {
    let source = towers("micro-e2b");
    let gguf = block_on(Gguf::open(source.clone())).expect("a file");
    let told = MediaEncoders::memory_of_file(&gguf).expect("towers") as f64;
    assert!(source.read.get() < source.len() / 2, "only the header is read");
    for device in devices().into_iter().filter(|device| matches!(device, Device::Gpu(_))) {
        let mut encoders =
            MediaEncoders::new(&model("micro-e2b-BF16", &device), vec![towers("micro-e2b")]);
        let usual = Image::from_rgb(960, 672, vec![99; 960 * 672 * 3]).expect("an image");
        let usual = Medium::Image(usual, ImageSize::default());
        assert_eq!(block_on(encoders.encode(&usual)).expect("it is encoded").tokens(), 280);
        let half_a_minute = Audio::new(&vec![0.1; 480_000], 1, 16_000).expect("an audio clip");
        block_on(encoders.encode(&Medium::Audio(half_a_minute))).expect("it is encoded");
        let takes = encoders.gpu_bytes() as f64;
        assert!((takes / told - 1.0).abs() < 0.05, "{told} estimated, {takes} used");
    }
}

#[test]
fn missing_encoders_are_reported() {
    let model = model("micro-moe-BF16", &Device::Cpu);
    let mut blind = MediaEncoders::new(&model, Vec::new());
    let error = block_on(blind.encode(&image("micro-moe"))).expect_err("no tower");
    assert!(matches!(error, RuntimeError::NoTower { verb: "read images" }), "{error}");
    let mut deaf = MediaEncoders::new(&model, vec![towers("micro-moe")]);
    let error = block_on(deaf.encode(&audio())).expect_err("no tower");
    assert_eq!(error.code(), "no_tower");
    let mut broken =
        MediaEncoders::new(&model, vec![Rc::new(MemorySource::new("x", b"not a file".to_vec()))]);
    assert!(matches!(block_on(broken.encode(&image("micro-moe"))), Err(RuntimeError::File(_))));
}

fn part(kind: &str, text: Option<&str>) -> Part {
    Part { kind: kind.into(), text: text.map(Into::into), ..Part::default() }
}

fn said(parts: Vec<Part>) -> Conversation {
    let message =
        Message { role: "user".into(), content: Content::Parts(parts), ..Message::default() };
    Conversation { messages: vec![message], ..Conversation::default() }
}

fn rows(count: usize) -> Rc<SoftTokens> {
    Rc::new(SoftTokens { count, values: vec![0.25; count * 64] })
}

fn seen(kind: MediaKind, pieces: &[(Option<u64>, usize)]) -> EncodedMedia {
    let piece =
        |(seconds, count): &(Option<u64>, usize)| Piece { seconds: *seconds, rows: rows(*count) };
    EncodedMedia { kind, pieces: pieces.iter().map(piece).collect() }
}

/// The prompt as text, with markers.
fn text(model: &Model, prompt: &Prompt) -> String {
    let tokenizer = model.tokenizer().expect("a vocabulary");
    tokenizer.decode(&prompt.tokens, rullama_tokenizer::Render::All)
}

#[test]
fn markers_are_repeated_per_soft_token() {
    let model = model("micro-e2b-BF16", &Device::Cpu);
    let conversation = said(vec![
        part("text", Some("Look at <|image|>")),
        part("image", None),
        part("audio", None),
        part("image", None),
        part("text", Some("now")),
    ]);
    let media = [
        seen(MediaKind::Image, &[(None, 2)]),
        seen(MediaKind::Image, &[(None, 1)]),
        seen(MediaKind::Audio, &[(None, 3)]),
    ];
    let prompt =
        prompt_with(&model, &conversation, &media, ChatOptions::default()).expect("it fits");
    assert_eq!(
        text(&model, &prompt),
        "<bos><|turn>user\nLook at <|image|><|image><|image|><|image|><image|><|audio><|audio|><|audio|><|audio|><audio|><|image><|image|><image|>now<turn|>\n<|turn>model\n"
    );
    let id = |marker| model.tokenizer().expect("a vocabulary").id_of(marker).expect("a marker");
    let count = |marker| prompt.tokens.iter().filter(|token| **token == id(marker)).count();
    assert_eq!((count("<|image|>"), count("<|audio|>")), (3, 3), "typed markers are text");
    let order: Vec<_> = prompt.media.iter().map(|m| (m.rows.count, m.whole)).collect();
    assert_eq!(order, [(2, true), (3, false), (1, true)]);
}

#[test]
fn video_frames_have_timestamps() {
    let model = model("micro-e2b-BF16", &Device::Cpu);
    let media = [seen(MediaKind::Video, &[(Some(0), 1), (Some(75), 2)])];
    let prompt =
        prompt_with(&model, &said(vec![part("video", None)]), &media, ChatOptions::default());
    let prompt = prompt.expect("it fits");
    assert_eq!(
        text(&model, &prompt),
        "<bos><|turn>user\n00:00 <|image><|video|><image|> 01:15 <|image><|video|><|video|><image|><turn|>\n<|turn>model\n"
    );
    let frame = |seconds| {
        let image = Image::from_rgb(60, 20, vec![90; 3600]).expect("an image");
        Frame { seconds, image }
    };
    let mut encoders = MediaEncoders::new(&model, vec![towers("micro-e2b")]);
    let video = Medium::Video(vec![frame(0.0), frame(1.9), frame(f64::NAN)]);
    let seen = block_on(encoders.encode(&video)).expect("it is encoded");
    assert_eq!(
        seen.pieces.iter().map(|piece| piece.seconds).collect::<Vec<_>>(),
        [Some(0), Some(1), Some(0)]
    );
    assert!(seen.longest() <= Budget::Tiny.tokens() as usize);
}

#[test]
fn missing_media_are_reported() {
    let model = model("micro-e2b-BF16", &Device::Cpu);
    let two = said(vec![part("image", None), part("image", None)]);
    let one = [seen(MediaKind::Image, &[(None, 2)])];
    let options = ChatOptions::default();
    for wrong in [
        prompt_with(&model, &two, &one, options),
        prompt_of(&model, &two, options),
        prompt_with(&model, &said(vec![part("text", Some("Hi"))]), &one, options),
    ] {
        assert!(matches!(wrong, Err(RuntimeError::NotGiven { what: "images", .. })), "{wrong:?}");
    }
}

/// The reply to a prompt, and the number of cached prompt tokens.
fn answer(
    model: &Model,
    session: &mut rullama_runtime::Session,
    prompt: &Prompt,
) -> (String, usize) {
    let options =
        SamplingOptions { temperature: 0.0, num_predict: 6, ..SamplingOptions::default() };
    let mut generation = Generation::new(session, model, prompt, &options, 1).expect("it fits");
    let mut said = String::new();
    while let Some(event) = block_on(generation.next()).expect("it runs") {
        match event {
            Event::Text(piece) => said += &piece,
            Event::Done(done) => return (said, done.cached_tokens),
            _ => {}
        }
    }
    panic!("every reply ends")
}

#[test]
fn a_conversation_reuses_cached_media() {
    for device in devices() {
        let model = model("micro-moe-BF16", &device);
        let mut encoders = MediaEncoders::new(&model, vec![towers("micro-moe")]);
        let media = [block_on(encoders.encode(&image("micro-moe"))).expect("it is encoded")];
        let mut conversation = said(vec![part("image", None), part("text", Some("What?"))]);
        let mut session = model.session(&exact()).expect("a session");
        let make = |conversation: &Conversation| {
            prompt_with(&model, conversation, &media, ChatOptions::default()).expect("it fits")
        };
        let first = make(&conversation);
        let (text, cached) = answer(&model, &mut session, &first);
        assert_eq!(cached, 0);
        conversation.messages.push(Message::new("assistant", text));
        conversation.messages.push(Message::new("user", "And?"));
        let second = make(&conversation);
        let saved = block_on(session.save()).expect("it is saved");
        let mut restored = block_on(model.restore(&saved)).expect("it is restored");
        assert_eq!(restored.tokens(), session.tokens());
        let [here, there] = [&mut session, &mut restored].map(|s| answer(&model, s, &second));
        assert_eq!(here, there);
        // The second prompt differs after the question.
        let last = first.tokens.iter().rposition(|id| *id == first.media[0].placeholder);
        assert!(here.1 > last.expect("an image"), "{} of {}", here.1, first.tokens.len());
        let mut cold = model.session(&exact()).expect("a session");
        assert_eq!(answer(&model, &mut cold, &second).0, here.0);
        for length in [saved.len() / 2, 200, 60, 9] {
            assert!(block_on(model.restore(&saved[..length])).is_err(), "cut to {length} bytes");
        }
    }
}

#[test]
fn long_images_take_one_pass_if_they_fit() {
    let model = model("micro-moe-BF16", &Device::Cpu);
    let media = [seen(MediaKind::Image, &[(None, 40)])];
    let conversation = said(vec![part("image", None), part("text", Some("What?"))]);
    let prompt = prompt_with(&model, &conversation, &media, ChatOptions::default());
    let prompt = prompt.expect("it fits");
    let logits = |chunk, block| {
        let options = SessionOptions { chunk, block, ..exact() };
        let mut session = model.session(&options).expect("a session");
        let tokens = session.soften(&prompt.tokens, &prompt.media).expect("places");
        session.set_tokens(&tokens).expect("it fits");
        block_on(session.logits())
    };
    assert!(matches!(logits(8, 0), Err(RuntimeError::BlockTooLong { tokens: 40, .. })));
    let (whole, cut) = (logits(512, 0).expect("it runs"), logits(8, 40).expect("it runs"));
    let worst = whole.iter().zip(&cut).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < 1e-4, "{worst}");
}

#[test]
fn soft_tokens_out_of_order_are_refused() {
    let model = model("micro-moe-BF16", &Device::Cpu);
    let media = [seen(MediaKind::Image, &[(None, 4)])];
    let conversation = said(vec![part("image", None), part("text", Some("What?"))]);
    let prompt = prompt_with(&model, &conversation, &media, ChatOptions::default());
    let prompt = prompt.expect("it fits");
    let mut session = model.session(&exact()).expect("a session");
    let tokens = session.soften(&prompt.tokens, &prompt.media).expect("places");
    let first = tokens.iter().position(|id| id >> 31 == 1).expect("an image");
    let soft = &tokens[first..first + 4];
    let text = tokens[0];
    for (order, at) in [
        (vec![soft[1], soft[2], soft[3], text], 0),
        (vec![text, soft[1], soft[0], soft[2], soft[3], text], 1),
        (vec![soft[0], soft[2], soft[1], soft[3], text], 1),
        (vec![soft[0], soft[1], text], 2),
        (vec![soft[0], soft[0], text], 1),
    ] {
        let refused = session.set_tokens(&order);
        let found =
            matches!(refused, Err(RuntimeError::SoftTokenOrder { position }) if position == at);
        assert!(found, "{order:?}: {refused:?}");
    }
    // A session may be truncated inside an image, but must continue with the rest of it.
    session.set_tokens(&tokens).expect("in order");
    let wanted = block_on(session.logits()).expect("it runs");
    session.rewind(first + 2);
    assert_eq!(block_on(session.logits()).expect("it runs").len(), wanted.len());
    assert!(matches!(session.extend(&[text]), Err(RuntimeError::SoftTokenOrder { .. })));
    session.extend(&tokens[first + 2..]).expect("the rest of it");
    assert_eq!(block_on(session.logits()).expect("it runs").len(), wanted.len());

    // In a new session, a truncated image cannot be told from a complete one.
    let mut cold = model.session(&exact()).expect("a session");
    cold.soften(&prompt.tokens, &prompt.media).expect("places");
    cold.set_tokens(&tokens[..first + 2]).expect("in order");
    let ended = block_on(cold.logits());
    assert!(matches!(ended, Err(RuntimeError::NotWithMedia { .. })), "{:?}", ended.err());

    // Saved tokens are checked too: here the first two of an image are swapped.
    session.set_tokens(&tokens).expect("in order");
    let saved = block_on(session.save()).expect("bytes");
    assert!(block_on(model.restore(&saved)).is_ok());
    let place = 8 + 32 + 1 + 6 * 8 + 8 + first * 4;
    let mut swapped = saved.clone();
    swapped[place..place + 4].copy_from_slice(&soft[1].to_le_bytes());
    swapped[place + 4..place + 8].copy_from_slice(&soft[0].to_le_bytes());
    let refused = block_on(model.restore(&swapped));
    assert!(matches!(refused, Err(RuntimeError::SoftTokenOrder { .. })), "{:?}", refused.err());
}

#[test]
fn rows_of_another_width_are_refused() {
    let model = model("micro-moe-BF16", &Device::Cpu);
    let mut media = seen(MediaKind::Image, &[(None, 4)]);
    let conversation = said(vec![part("image", None), part("text", Some("What?"))]);
    for values in [vec![], vec![0.0; 4], vec![0.0; 4 * 65]] {
        media.pieces[0].rows = Rc::new(SoftTokens { count: 4, values });
        let media = [media.clone()];
        let prompt = prompt_with(&model, &conversation, &media, ChatOptions::default());
        let prompt = prompt.expect("it fits");
        let mut session = model.session(&exact()).expect("a session");
        let refused = session.soften(&prompt.tokens, &prompt.media);
        assert!(matches!(refused, Err(RuntimeError::OtherTower { .. })), "{refused:?}");
    }
}
