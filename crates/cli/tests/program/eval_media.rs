//! `eval` with images and audio against the references: soft tokens and logits.

use rullama_testkit::golden;
use safetensors::SafeTensors;
use tempfile::TempDir;

use crate::{
    eval::{assert_close, f32s, ids},
    models::{FileInFolder, golden_arg},
    program::{Program, has, rullama},
};

/// `eval` of golden ids with a medium.
struct Case {
    model: &'static str,
    /// Prefix of the tensors in the golden file.
    prefix: &'static str,
    flags: Vec<String>,
}

impl Case {
    fn image(model: &'static str, prefix: &'static str, budget: &str) -> Self {
        let image = golden_arg(&format!("media/{model}-image.png"));
        let flags = ["--image", &image, "--image-budget", budget].map(String::from);
        Self { model, prefix, flags: flags.to_vec() }
    }

    fn audio() -> Self {
        let audio = golden_arg("media/micro-e2b-audio.wav");
        let flags = ["--audio", &audio, "--audio-reach", "11"].map(String::from);
        Self { model: "micro-e2b", prefix: "audio", flags: flags.to_vec() }
    }

    fn reference(&self) -> Vec<u8> {
        let kind = if self.prefix == "audio" { "audio" } else { "vision" };
        golden(&format!("media/{}-{kind}.safetensors", self.model))
    }

    fn program(&self, ids: &[u32], device: &str) -> (Program, FileInFolder, TempDir) {
        let file = FileInFolder::new("ids.json", format!("{ids:?}"));
        let folder = TempDir::new().unwrap();
        let out = folder.path().join("x.safetensors");
        let model = golden_arg(&format!("gguf/{}-BF16.gguf", self.model));
        let mmproj = golden_arg(&format!("gguf/{}-mmproj-F16.gguf", self.model));
        let program = rullama(["eval", &model, "--mmproj", &mmproj, "--ids-file", file.arg()])
            .and(["--out", out.to_str().unwrap(), "--device", device])
            .and(&self.flags);
        (program, file, folder)
    }

    fn check(&self, device: &str) {
        let reference = self.reference();
        let reference = SafeTensors::deserialize(&reference).unwrap();
        let expected = |name: &str| f32s(&reference, &format!("{}.{name}", self.prefix));
        let prompt = ids(&reference, &format!("{}.ids", self.prefix));
        let (program, _file, folder) = self.program(&prompt, device);
        let output = program.and(["--greedy", "8", "--json"]).json();
        let found = std::fs::read(folder.path().join("x.safetensors")).unwrap();
        let found = SafeTensors::deserialize(&found).unwrap();
        let what = format!("{} {} on {device}", self.model, self.prefix);
        assert_eq!(
            found.tensor("embeddings").unwrap().shape(),
            [output["soft_tokens"].as_u64().unwrap() as usize, 64]
        );
        assert_eq!(found.tensor("logits").unwrap().shape(), [prompt.len(), 640]);
        assert_close(&f32s(&found, "embeddings"), &expected("embeddings"), &what);
        let (logits, tail) = (f32s(&found, "logits"), expected("logits_tail"));
        assert_close(&logits[logits.len() - tail.len()..], &tail, &what);
        if let Ok(greedy) = reference.tensor(&format!("{}.greedy", self.prefix)) {
            assert!(greedy.shape()[0] >= 8);
            assert_eq!(
                ids(&found, "greedy"),
                ids(&reference, &format!("{}.greedy", self.prefix))[..8]
            );
        }
    }
}

#[test]
fn images_equal_the_references() {
    Case::image("micro-e2b", "image.native", "native").check("cpu");
    Case::image("micro-moe", "image.native", "native").check("cpu");
    Case::image("micro-e2b", "image.resized70", "70").check("cpu");
    Case::image("micro-moe", "image.resized70", "70").check("gpu");
}

#[test]
fn audio_equal_the_references() {
    Case::audio().check("cpu");
}

#[test]
fn placeholders_must_match_the_soft_tokens() {
    let case = Case::audio();
    let reference = case.reference();
    let prompt = ids(&SafeTensors::deserialize(&reference).unwrap(), "audio.ids");
    let index = prompt.iter().position(|id| *id == prompt[prompt.len() / 2]).unwrap();
    let (mut fewer, mut more) = (prompt.clone(), prompt.clone());
    fewer.remove(index);
    more.insert(index, prompt[index]);
    for (ids, found) in [(fewer, "74"), (more, "76")] {
        let (program, _file, folder) = case.program(&ids, "cpu");
        has(&program.fails(1), &[found, "75", "placeholders"]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn unusable_media_are_named() {
    let check = |flags: [&str; 2], code: i32, parts: &[&str]| {
        let flags = flags.map(String::from).to_vec();
        let case = Case { model: "micro-moe", prefix: "", flags };
        let (program, _file, _folder) = case.program(&[2], "cpu");
        has(&program.fails(code), parts);
    };
    check(
        ["--audio", &golden_arg("media/micro-e2b-audio.wav")],
        1,
        &["cannot read audio", "mmproj"],
    );
    check(["--image", "no/such.png"], 3, &["no/such.png"]);
    check(["--image", &golden_arg("README.md")], 1, &["README.md", "PNG, JPEG, WebP or GIF"]);
    check(["--image-budget", "71"], 2, &["71", "280"]);
}
