//! Deletes and copies models, adds blobs, creates models.

use std::{fs, io::Read, ops::ControlFlow};

use rullama_pull::{
    Added, CreateRequest, Progress, PullError, add_blob, copy, create, delete, has_blob,
};
use rullama_store::{Digest, ModelName, StoreError};
use serde_json::{Value, json};

use crate::{
    hub::gguf,
    registry::{Registry, noise},
    setup::{Setup, names},
};

fn name(text: &str) -> ModelName {
    text.parse().unwrap()
}

/// A store with the model `base` of these layers.
fn with_base(layers: &[(&str, &[u8])]) -> Setup {
    let (registry, setup) = (Registry::start(), Setup::new());
    registry.publish("library/base", "latest", layers);
    let options = rullama_pull::PullOptions {
        endpoints: vec![("registry.ollama.ai".into(), registry.url())],
        ..crate::setup::options()
    };
    let puller = setup.puller.with_options(options);
    puller.pull(&name("base"), &mut |_| ControlFlow::Continue(())).unwrap();
    setup
}

fn run(setup: &Setup, model: &str, request: &CreateRequest) -> Result<Vec<String>, PullError> {
    let mut lines = Vec::new();
    let mut on_progress = |progress: Progress| {
        lines.extend(progress.status());
        ControlFlow::Continue(())
    };
    create(&setup.root(), &name(model), request, &mut on_progress).map(|_| lines)
}

fn from_base() -> CreateRequest {
    CreateRequest { from: Some("base".into()), ..CreateRequest::default() }
}

#[test]
fn deleting_keeps_blobs_of_other_models() {
    let (own, shared) = (noise(100, 1), noise(100, 2));
    let setup = with_base(&[("model", &shared), ("license", &own)]);
    run(&setup, "alice/other:v1", &CreateRequest { system: Some("s".into()), ..from_base() })
        .unwrap();
    // The other model's manifest names the licence, too; one of an unknown kind of ours does not.
    let other = setup.root().join("manifests/registry.ollama.ai/alice/other/v1");
    let text = fs::read_to_string(&other).unwrap();
    let strange = text.replace("application/vnd.ollama.image.license", "application/strange");
    fs::write(&other, strange).unwrap();

    let deleted = delete(&setup.root(), &name("BASE")).unwrap();
    assert_eq!(deleted.name, name("base"));
    assert_eq!(deleted.blobs.len(), 1, "only its config: {:?}", deleted.blobs);
    assert!(has_blob(&setup.root(), &Digest::of(&shared)));
    assert!(has_blob(&setup.root(), &Digest::of(&own)), "unknown kinds of layers count");
    assert_eq!(names(&setup.root().join("manifests/registry.ollama.ai")), ["alice"]);

    delete(&setup.root(), &name("alice/other:v1")).unwrap();
    assert!(setup.blobs().is_empty(), "{:?}", setup.blobs());
    assert!(names(&setup.root().join("manifests")).is_empty());
    let error = delete(&setup.root(), &name("base")).unwrap_err();
    let PullError::Store(error) = error else { panic!("{error}") };
    assert!(matches!(*error, StoreError::NotFound { .. }), "{error}");
}

#[test]
fn deleting_keeps_orphaned_blobs() {
    let setup = with_base(&[("model", b"weights")]);
    let orphan = setup.blob(b"an orphan of Ollama");
    fs::write(&orphan, b"an orphan of Ollama").unwrap();
    let foreign = setup.root().join("blobs/sha256-unfinished-partial");
    fs::write(&foreign, b"").unwrap();
    delete(&setup.root(), &name("base")).unwrap();
    assert!(orphan.exists() && foreign.exists());
    assert!(!setup.blob(b"weights").exists());
}

#[test]
fn broken_manifests_can_be_deleted() {
    let setup = with_base(&[("model", b"weights")]);
    let path = setup.root().join("manifests/registry.ollama.ai/library/base/latest");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() - 5]).unwrap();
    delete(&setup.root(), &name("base")).unwrap();
    assert!(!path.exists());
    assert!(!setup.blob(b"weights").exists());
}

#[test]
fn copies_share_everything() {
    let setup = with_base(&[("model", b"weights")]);
    let id = copy(&setup.root(), &name("Base"), &name("bob/copy:v2")).unwrap();
    let store = setup.store();
    let (base, copied) =
        (store.resolve(&name("base")).unwrap(), store.resolve(&name("bob/copy:v2")).unwrap());
    assert_eq!((&copied.id, &copied.model.path), (&base.id, &base.model.path));
    assert_eq!(id, base.id);
    copy(&setup.root(), &name("base"), &name("base")).unwrap();
    copy(&setup.root(), &name("base"), &name("bob/COPY:V2")).unwrap();
    assert_eq!(store.list().entries.len(), 2);
    assert!(copy(&setup.root(), &name("nobody"), &name("x")).is_err());
    delete(&setup.root(), &name("base")).unwrap();
    setup.assert_whole(&name("bob/copy:v2"), b"weights");
}

#[test]
fn names_cannot_escape_the_store() {
    let bad = [
        "../x",
        "a/../../x",
        "/etc/x",
        "a:../x",
        "..",
        ".hidden",
        "a/b/c/d/e",
        "x:y/z",
        "a\\..\\x",
    ];
    for text in bad {
        let parsed = text.parse::<ModelName>();
        assert!(parsed.is_err(), "{text} became {parsed:?}");
    }
}

#[test]
fn blobs_are_added_only_with_the_right_digest() {
    let setup = Setup::new();
    let (root, content) = (setup.root(), noise(600_000, 5));
    let digest = Digest::of(&content);
    assert!(!has_blob(&root, &digest));
    let wrong = Digest::of(b"something else");
    let error = add_blob(&root, &wrong, &mut &*content, u64::MAX).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("digest mismatch, expected \"{wrong}\", got \"{digest}\"")
    );
    let error = add_blob(&root, &digest, &mut &*content, 599_999).unwrap_err();
    assert!(matches!(error, PullError::BadRequest { .. }), "{error}");
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::ConnectionReset.into())
        }
    }
    assert!(add_blob(&root, &digest, &mut Broken, u64::MAX).is_err());
    assert!(setup.blobs().is_empty(), "failed uploads leave nothing: {:?}", setup.blobs());

    assert_eq!(add_blob(&root, &digest, &mut &*content, 600_000).unwrap(), Added::Created);
    assert_eq!(add_blob(&root, &digest, &mut Broken, 0).unwrap(), Added::Existing);
    assert_eq!(fs::read(setup.blob(&content)).unwrap(), content);
}

#[test]
fn uploads_of_killed_processes_are_removed() {
    let setup = Setup::new();
    let blobs = setup.root().join("blobs");
    fs::create_dir_all(&blobs).unwrap();
    let (dead, living) = (blobs.join(".rullama-upload-1-1"), blobs.join(".rullama-upload-1-2"));
    fs::write(&dead, b"half").unwrap();
    let file = fs::File::create(&living).unwrap();
    file.lock().unwrap();
    add_blob(&setup.root(), &Digest::of(b"x"), &mut &b"x"[..], 1).unwrap();
    assert!(!dead.exists() && living.exists());
}

#[test]
fn a_model_from_a_base_with_other_texts() {
    let params = br#"{"temperature":1,"top_k":64,"stop":["<turn|>"]}"#;
    let setup = with_base(&[
        ("model", b"weights"),
        ("params", params),
        ("system", b"old"),
        ("template", b"{{ .Prompt }}"),
        ("license", b"MIT"),
    ]);
    let adapter = gguf("adapter", "gemma4", 1);
    let digest = Digest::of(&adapter);
    add_blob(&setup.root(), &digest, &mut &*adapter, u64::MAX).unwrap();
    let parameters = json!({ "temperature": 0.2, "stop": "END", "num_ctx": 4096 });
    let request = CreateRequest {
        adapters: vec![("a.gguf".into(), digest.clone())],
        system: Some("new".into()),
        parameters: parameters.as_object().cloned(),
        messages: Some(vec![json!({ "role": "user", "content": "hi" })]),
        licenses: vec!["BSD".into()],
        renderer: Some("gemma4".into()),
        ..from_base()
    };
    let lines = run(&setup, "mine", &request).unwrap();
    let weights = Digest::of(b"weights");
    assert!(lines.contains(&format!("using existing layer {weights}")), "{lines:?}");
    assert!(lines.contains(&"parsing GGUF".into()));
    assert!(lines.contains(&format!("creating new layer {}", Digest::of(b"new"))));
    assert_eq!(lines[lines.len() - 2..], ["writing manifest", "success"]);

    let files = setup.store().resolve(&name("mine")).unwrap();
    assert_eq!(files.model.digest, weights);
    assert_eq!(files.adapters[0].digest, digest);
    assert_eq!(files.system.as_deref(), Some("new"));
    assert_eq!(files.template.as_deref(), Some("{{ .Prompt }}"));
    assert_eq!(files.licenses, ["MIT", "BSD"]);
    let expected = json!({ "temperature": 0.2, "top_k": 64, "stop": ["END"], "num_ctx": 4096 });
    assert_eq!(Value::Object(files.params.unwrap()), expected);
    assert_eq!(files.messages.unwrap(), [json!({ "role": "user", "content": "hi" })]);
    assert_eq!(files.config.renderer.as_deref(), Some("gemma4"));
    assert_eq!(files.config.model_family.as_deref(), Some("gemma4"), "as in the base");

    // Empty texts remove those of the base.
    let request =
        CreateRequest { system: Some(String::new()), messages: Some(vec![]), ..from_base() };
    run(&setup, "mine", &CreateRequest { from: Some("mine".into()), ..request }).unwrap();
    let files = setup.store().resolve(&name("mine")).unwrap();
    assert_eq!((files.system, files.messages), (None, None));
    assert!(!setup.blob(b"new").exists(), "no model uses it any more");
    setup.assert_whole(&name("base"), b"weights");
}

#[test]
fn a_model_from_uploaded_files() {
    let setup = Setup::new();
    let (weights, projector) = (gguf("model", "gemma4", 1), gguf("mmproj", "clip", 2));
    for file in [&weights, &projector] {
        add_blob(&setup.root(), &Digest::of(file), &mut &**file, u64::MAX).unwrap();
    }
    let files = vec![
        ("m.gguf".to_owned(), Digest::of(&weights)),
        ("mmproj.gguf".to_owned(), Digest::of(&projector)),
    ];
    run(&setup, "fresh", &CreateRequest { files, ..CreateRequest::default() }).unwrap();
    setup.assert_whole(&name("fresh"), &weights);
    let files = setup.store().resolve(&name("fresh")).unwrap();
    assert_eq!(files.projectors[0].digest, Digest::of(&projector));
    assert_eq!(json!(files.params), json!({ "stop": ["<turn|>"] }));
    assert_eq!(files.config.file_type.as_deref(), Some("Q8_0"));
    assert_eq!(files.config.model_type.as_deref(), Some("64"));
    assert_eq!(files.config.parser.as_deref(), Some("gemma4"));
}

#[test]
fn invalid_create_requests() {
    let setup = with_base(&[("model", b"weights")]);
    let text = b"not gguf";
    add_blob(&setup.root(), &Digest::of(text), &mut &text[..], 100).unwrap();
    let model = gguf("model", "gemma4", 9);
    add_blob(&setup.root(), &Digest::of(&model), &mut &*model, u64::MAX).unwrap();
    let file = |digest: Digest| vec![("f".to_owned(), digest)];
    let plain = CreateRequest::default();
    for request in [
        plain.clone(),
        CreateRequest { files: file(Digest::of(&model)), ..from_base() },
        CreateRequest { quantize: Some("q4_K_M".into()), ..from_base() },
        CreateRequest { files: file(Digest::of(text)), ..plain.clone() },
        CreateRequest { adapters: file(Digest::of(&model)), ..from_base() },
        CreateRequest {
            messages: Some(vec![json!({ "role": "nobody", "content": "" })]),
            ..from_base()
        },
        CreateRequest {
            parameters: json!({ "stop": { "a": 1 } }).as_object().cloned(),
            ..from_base()
        },
        CreateRequest { system: Some("x".repeat(9 << 20)), ..from_base() },
    ] {
        let error = run(&setup, "new", &request).unwrap_err();
        assert!(matches!(error, PullError::BadRequest { .. }), "{error}");
    }
    let missing = CreateRequest { files: file(Digest::of(b"missing")), ..plain.clone() };
    assert!(matches!(run(&setup, "new", &missing), Err(PullError::NoSuchBlob { .. })));
    let nobody = CreateRequest { from: Some("nobody".into()), ..plain.clone() };
    assert!(matches!(run(&setup, "new", &nobody), Err(PullError::Store(_))));
    let outside = CreateRequest { from: Some("../../x".into()), ..plain };
    assert!(matches!(run(&setup, "new", &outside), Err(PullError::Store(_))));
    assert_eq!(setup.store().list().entries.len(), 1);
}
