//! Images and audio: flags, the store's projector, dropped paths, invalid files.

use std::path::Path;

use rullama_testkit::golden;
use serde_json::json;
use tempfile::TempDir;

use crate::{
    models::golden_arg,
    program::{Program, has, rullama},
    store::Store,
};

const MODEL: &str = "gguf/micro-e2b-BF16.gguf";
const TOWERS: &str = "gguf/micro-e2b-mmproj-F16.gguf";
const FIXED: [&str; 8] = ["--device", "cpu", "-n", "8", "--ctx", "1024", "--seed", "3"];

fn run(flags: &[&str]) -> Program {
    let mmproj = golden_arg(TOWERS);
    rullama(["run", &golden_arg(MODEL), "--mmproj", &mmproj]).and(FIXED).and(flags)
}

fn image() -> String {
    golden_arg("media/micro-e2b-image.png")
}

fn audio() -> String {
    golden_arg("media/micro-e2b-audio.wav")
}

/// Prompt tokens of one reply.
fn prompt_tokens(flags: &[&str]) -> u64 {
    run(flags).and(["--json"]).json()["prompt_tokens"].as_u64().expect("a number")
}

#[test]
fn media_are_part_of_the_prompt() {
    let (image, audio) = (image(), audio());
    let bare = prompt_tokens(&["What?"]);
    // 30 and 75 soft tokens, each between two markers.
    let seen = prompt_tokens(&["--image", &image, "--image-budget", "native", "What?"]);
    let both = ["--image", &image, "--image-budget", "native", "--audio", &audio, "What?"];
    assert_eq!((seen - bare, prompt_tokens(&both) - seen), (soft_tokens() + 2, 77));
    let twice = ["--audio", &audio, "--audio", &audio, "What?"];
    assert_eq!(prompt_tokens(&twice) - bare, 2 * 77);
    assert_ne!(run(&["What?"]).stdout(), run(&both).stdout());
    let other_order = ["--audio", &audio, "--image", &image, "--image-budget", "native", "What?"];
    assert_ne!(run(&both).stdout(), run(&other_order).stdout(), "the order matters");
    run(&["--image", &image, "--image-budget", "70"]).stdout();
    has(&run(&["--verbose", "--audio", &audio, "What?"]).run().stderr, &["media duration"]);
}

/// Soft tokens of the golden image.
fn soft_tokens() -> u64 {
    let bytes = golden("media/micro-e2b-vision.safetensors");
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    file.tensor("image.native.embeddings").unwrap().shape()[0] as u64
}

#[test]
fn the_projector_of_the_store() {
    let store = Store::empty();
    let layers = [store.blob("model", golden(MODEL)), store.blob("projector", golden(TOWERS))];
    let config = store.blob("config", r#"{"model_format":"gguf"}"#);
    store.manifest("seeing", &json!({ "config": config, "layers": layers }));
    store.manifest("blind", &json!({ "config": config, "layers": [layers[0]] }));
    let flags = ["--audio", &audio(), "What?"];
    let reply = store.rullama(&["run", "seeing"]).and(FIXED).and(flags).stdout();
    assert_eq!(reply, run(&flags).stdout());
    let error = store.rullama(&["run", "blind"]).and(FIXED).and(flags).fails(1);
    has(&error, &["cannot read audio", "mmproj"]);
    let missing = rullama(["run", &golden_arg(MODEL), "--mmproj", "./none.gguf", "Hi"]).fails(3);
    has(&missing, &["none.gguf"]);
}

/// Runs a chat with these lines; returns standard output and standard error.
fn chat(folder: &Path, lines: &[&str]) -> (String, String) {
    let outcome = run(&["--chat", "--image-budget", "70"])
        .folder(folder)
        .stdin(lines.join("\n") + "\n")
        .run();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    (outcome.stdout, outcome.stderr)
}

#[test]
fn paths_dropped_into_a_chat() {
    let folder = TempDir::new().unwrap();
    for (name, from) in [("a picture.png", image()), ("sound.wav", audio())] {
        std::fs::copy(from, folder.path().join(name)).unwrap();
    }
    let used = |lines: &[&str]| {
        let (shown, notes) = chat(folder.path(), &[lines, &["/show info"]].concat());
        assert_eq!(notes, "");
        let line = shown.lines().find(|line| line.starts_with("context")).unwrap().to_owned();
        let words: Vec<&str> = line.split_whitespace().collect();
        words[3].parse::<usize>().unwrap()
    };
    let bare = used(&["What?"]);
    assert!(used(&["What? ./sound.wav"]) > bare + 70);
    assert!(used(&["'./a picture.png' What?"]) > bare + 40);
    assert!(used(&["./a\\ picture.png What?", "and ./sound.wav"]) > bare + 110);
    let absolute = format!("{}/sound.wav What?", folder.path().display());
    assert!(used(&[&absolute]) > bare + 70, "a path is not a command");
    let (_, notes) = chat(folder.path(), &["What is ./none.png?"]);
    has(&notes, &["no file ./none.png"]);
}

#[test]
fn invalid_files_leave_the_conversation_unchanged() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let png = golden("media/micro-e2b-image.png");
    write("empty.png", b"");
    write("cut.png", &png[..png.len() / 2]);
    write("text.jpg", b"no image");
    write("short.wav", &golden("media/micro-e2b-audio.wav")[..46]);
    // A header that claims 60,000 × 60,000 pixels.
    let mut huge = png.clone();
    huge[16..24].copy_from_slice(&[0, 0, 0xea, 0x60, 0, 0, 0xea, 0x60]);
    write("huge.png", &huge);
    write("noise.mp3", &png[..400]);
    let lines = [
        "Hello",
        "./empty.png What?",
        "./cut.png What?",
        "./text.jpg What?",
        "./short.wav What?",
        "./huge.png What?",
        "./noise.mp3 What?",
        "/show info",
    ];
    let (shown, notes) = chat(folder.path(), &lines);
    for name in ["empty.png", "cut.png", "text.jpg", "short.wav", "huge.png", "noise.mp3"] {
        let count = notes.lines().filter(|line| line.contains(name)).count();
        assert_eq!(count, 1, "{name}:\n{notes}");
    }
    has(&shown, &["messages       2"]);
}

#[test]
fn a_conversation_with_images_is_saved_and_loaded() {
    let folder = TempDir::new().unwrap();
    std::fs::copy(image(), folder.path().join("a.png")).unwrap();
    let cold = ["/set parameter temperature 0", "./a.png What?", "And?"];
    let (whole, _) = chat(folder.path(), &cold);
    let (first, _) = chat(folder.path(), &[cold[0], cold[1], "/save talk"]);
    let (second, notes) = chat(folder.path(), &[cold[0], "/load talk", "And?"]);
    assert_eq!(notes, "");
    let last = |text: &str| text.lines().last().unwrap().to_owned();
    assert_eq!(last(&second), last(&whole), "{first}\n{second}");
}

#[test]
fn a_folder_of_images_is_a_video() {
    let folder = TempDir::new().unwrap();
    for name in ["frame-0s.png", "frame-65.5s.png", "notes.txt"] {
        std::fs::copy(image(), folder.path().join(name)).unwrap();
    }
    let path = folder.path().to_str().unwrap();
    let bare = prompt_tokens(&["What?"]);
    assert!(prompt_tokens(&["--video", path, "What?"]) > bare + 80);
    let empty = TempDir::new().unwrap();
    let error = run(&["--video", empty.path().to_str().unwrap(), "What?"]).fails(1);
    has(&error, &["no images in this folder"]);
}
