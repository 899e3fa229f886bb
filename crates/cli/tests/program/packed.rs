//! Models in several files: with a projector file, or split into parts.

use std::path::{Path, PathBuf};

use pollster::block_on;
use rullama_gguf::{Gguf, Writer};
use rullama_source::MemorySource;
use rullama_testkit::golden;
use serde_json::json;
use tempfile::TempDir;

use crate::{
    models::{MICRO, golden_arg},
    program::{Program, has, rullama},
    server::{Manner, Server},
    store::Store,
};

/// The golden model in three parts, under the names such parts have.
struct Parts {
    folder: TempDir,
}

impl Parts {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let source = MemorySource::new("whole", golden(MICRO));
        let gguf = block_on(Gguf::open(std::rc::Rc::new(source))).unwrap();
        let all = gguf.tensors().len();
        for (number, tensors) in (0u16..).zip(gguf.tensors().chunks(all.div_ceil(3))) {
            let mut file = Writer::new();
            if number == 0 {
                for entry in gguf.metadata() {
                    file = file.kv(entry.key.as_str(), entry.value.clone());
                }
            }
            file = file.kv("split.no", number).kv("split.count", 3u16);
            file = file.kv("split.tensors.count", i32::try_from(all).unwrap());
            for tensor in tensors {
                let bytes = block_on(gguf.read(tensor, 0..tensor.nbytes())).unwrap();
                file = file.tensor(tensor.name(), tensor.dims(), tensor.dtype(), bytes);
            }
            std::fs::write(path(folder.path(), number + 1), file.finish().unwrap()).unwrap();
        }
        Self { folder }
    }

    fn path(&self, number: u16) -> PathBuf {
        path(self.folder.path(), number)
    }

    fn arg(&self, number: u16) -> String {
        self.path(number).into_os_string().into_string().unwrap()
    }
}

fn path(folder: &Path, number: u16) -> PathBuf {
    folder.join(format!("m-{number:05}-of-00003.gguf"))
}

fn reply(model: &str) -> Program {
    rullama(["run", model, "--device", "cpu", "-n", "8", "--ctx", "128", "--seed", "3", "Hi"])
}

#[test]
fn a_split_model_is_opened_by_its_first_part() {
    let parts = Parts::new();
    let first = parts.arg(1);
    assert_eq!(reply(&first).stdout(), reply(&golden_arg(MICRO)).stdout());
    let shown = rullama(["show", &first, "--json", "--tensors"]).json();
    let whole = rullama(["show", &golden_arg(MICRO), "--json", "--tensors"]).json();
    assert_eq!((&shown["gguf"]["files"], &whole["gguf"]["files"]), (&json!(3), &json!(null)));
    assert_eq!(
        (&shown["tensors"][98]["file"], &whole["tensors"][98]["file"]),
        (&json!(2), &json!(null))
    );
    assert_eq!(shown["memory"], whole["memory"]);
    assert_eq!(
        shown["tensors"].as_array().unwrap().len(),
        whole["tensors"].as_array().unwrap().len()
    );
    has(&rullama(["show", &first]).stdout(), &["3, this is the first"]);
    has(&rullama(["verify", &first]).stdout(), &["structure", "99 tensors", "all finite"]);
    let bench = rullama(["bench", &first, "--device", "cpu", "-p", "4", "-n", "2", "-r", "1"]);
    has(&bench.stdout(), &["pp4", "tg2"]);
}

#[test]
fn incomplete_or_mismatched_parts_are_refused() {
    let parts = Parts::new();
    has(&rullama(["show", &parts.arg(2)]).fails(4), &["part 2 of 3", "first part"]);
    std::fs::copy(parts.path(2), parts.path(3)).unwrap();
    has(&reply(&parts.arg(1)).fails(4), &["should be part 3 of 3", "part 2 of 3"]);
    std::fs::remove_file(parts.path(3)).unwrap();
    let error = reply(&parts.arg(1)).fails(3);
    has(&error, &["m-00003-of-00003.gguf", "3 parts"]);
    let renamed = parts.folder.path().join("model.gguf");
    std::fs::rename(parts.path(1), &renamed).unwrap();
    let error = rullama(["show", renamed.to_str().unwrap()]).fails(4);
    has(&error, &["part 1 of 3", "-00001-of-00003.gguf"]);
}

#[test]
fn a_split_model_at_a_url() {
    let parts = Parts::new();
    let files = (1..=3).map(|number| {
        (format!("/m-{number:05}-of-00003.gguf"), std::fs::read(parts.path(number)).unwrap())
    });
    let server = Server::with_files(Manner::Ranges, files.collect());
    let url = server.url_of("/m-00001-of-00003.gguf");
    assert_eq!(reply(&url).stdout(), reply(&golden_arg(MICRO)).stdout());
    has(&rullama(["show", &url]).stdout(), &["3, this is the first"]);
}

#[test]
fn an_unused_projector_is_not_loaded() {
    let store = Store::empty();
    let projector = Writer::new()
        .kv("general.architecture", "clip")
        .kv("general.type", "mmproj")
        .kv("clip.has_vision_encoder", true)
        .kv("clip.vision.projector_type", "gemma4v")
        .finish()
        .unwrap();
    let layers = [store.blob("model", golden(MICRO)), store.blob("projector", projector)];
    let config = store.blob("config", r#"{"model_format":"gguf"}"#);
    store.manifest("seeing", &json!({ "config": config, "layers": layers }));
    let run = ["run", "seeing", "--device", "cpu", "-n", "8", "--ctx", "128", "--seed", "3", "Hi"];
    assert_eq!(store.rullama(&run).stdout(), reply(&golden_arg(MICRO)).stdout());
}
