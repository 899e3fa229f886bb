//! Finding a manifest: case, several stores, and missing names.

use std::path::PathBuf;

use rullama_store::{Outcome, Searched, StoreError, resolve};

use crate::builder::{Builder, parse};

fn with_models(names: &[&str]) -> Builder {
    let store = Builder::new();
    for name in names {
        store.model(name, &[store.blob("model", name)]);
    }
    store
}

// Other systems ignore case in file names.
#[cfg(target_os = "linux")]
#[test]
fn an_exact_name_is_preferred_to_one_in_another_case() {
    let store = with_models(&["hf.co/Org/Repo:Q4_K_M", "hf.co/org/repo:q4_k_m"]);
    for name in ["hf.co/Org/Repo:Q4_K_M", "hf.co/org/repo:q4_k_m"] {
        assert_eq!(store.resolve(name).unwrap().name.to_string(), name);
    }
}

#[test]
fn case_is_ignored_without_an_exact_match() {
    let store = with_models(&["hf.co/Org/Repo:Q4_K_M", "gemma4:e2b"]);
    for (name, stored) in [
        ("HF.co/org/repo:q4_k_m", "hf.co/Org/Repo:Q4_K_M"),
        ("hf.co/ORG/Repo:Q4_K_M", "hf.co/Org/Repo:Q4_K_M"),
        ("Gemma4:E2B", "gemma4:e2b"),
    ] {
        let files = store.resolve(name).unwrap();
        assert_eq!(files.name.to_string(), stored);
        assert_eq!(std::fs::read_to_string(files.model.path).unwrap(), stored);
    }
    assert!(matches!(store.resolve("hf.co/org/repo:q4_k"), Err(StoreError::NotFound { .. })));
}

#[test]
fn the_scheme_is_ignored() {
    let store = with_models(&["gemma4:e2b"]);
    assert!(store.resolve("http://registry.ollama.ai/library/gemma4:e2b").is_ok());
}

#[test]
fn a_missing_name_reports_similar_names_and_the_stores_searched() {
    let store = with_models(&["gemma4:e2b", "gemma4:e4b", "gemma3:4b", "mistral"]);
    let error = store.resolve("gemma4:e2c").unwrap_err();
    let StoreError::NotFound { name, searched, similar } = &error else { panic!("{error}") };
    assert_eq!(name, "gemma4:e2c");
    assert_eq!(similar, &["gemma4:e2b", "gemma4:e4b", "gemma3:4b"]);
    let here = Searched { root: store.root().into(), outcome: Outcome::Read };
    assert_eq!(searched, &[here]);
    let message = error.to_string();
    for part in
        ["gemma4:e2c", "did you mean gemma4:e2b, gemma4:e4b", store.root().to_str().unwrap()]
    {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn several_stores_are_searched_in_order() {
    let first = with_models(&["shared", "gemma3:4b"]);
    let second = with_models(&["shared", "gemma4:e2b"]);
    let missing = first.root().join("nowhere");
    let roots: Vec<PathBuf> =
        [missing.as_path(), first.root(), second.root()].map(Into::into).into();

    let shared = resolve(&roots, &parse("shared")).unwrap();
    assert!(shared.model.path.starts_with(first.root()));
    let only_second = resolve(&roots, &parse("gemma4:e2b")).unwrap();
    assert!(only_second.model.path.starts_with(second.root()));

    let error = resolve(&roots, &parse("gemma4:e9b")).unwrap_err();
    let StoreError::NotFound { searched, similar, .. } = &error else { panic!("{error}") };
    let outcomes: Vec<Outcome> = searched.iter().map(|s| s.outcome).collect();
    assert_eq!(outcomes, [Outcome::NoFolder, Outcome::Read, Outcome::Read]);
    assert_eq!(similar, &["gemma4:e2b", "gemma3:4b"], "from both stores");
    assert!(error.to_string().contains("nowhere (no such folder)"), "{error}");

    let error = resolve(&[], &parse("m")).unwrap_err();
    assert!(error.to_string().contains("OLLAMA_MODELS"), "{error}");
}

#[cfg(unix)]
#[test]
fn an_unreadable_store_is_reported() {
    use std::os::unix::fs::symlink;
    // A link to itself cannot be followed by any user, not even root.
    let store = Builder::new();
    let looped = store.root().join("manifests");
    symlink(&looped, &looped).unwrap();
    let error = store.resolve("m").unwrap_err();
    assert!(
        matches!(&error, StoreError::NotFound { searched, .. }
            if searched[0].outcome == Outcome::Unreadable),
        "{error}"
    );
    assert_eq!(store.store().list().unreadable.len(), 1);
}

#[test]
fn no_store_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for root in [folder.path().join("missing"), file.clone(), file.join("below")] {
        let error = rullama_store::Store::open(&root).unwrap_err();
        assert!(matches!(&error, StoreError::NoStore { root: r } if *r == root), "{error}");
    }
}
