use std::path::PathBuf;

use proptest::prelude::*;

use super::{ModelName, NamePart, NameRule};
use crate::StoreError;

fn check(text: &str, path: &str, short: &str) {
    let name: ModelName = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    assert_eq!(name.manifest_path(), path.split('/').collect::<PathBuf>(), "{text}");
    assert_eq!(name.to_string(), short, "{text}");
    let again: ModelName = short.parse().unwrap();
    assert_eq!(again.parts(), name.parts(), "{text}: the short form means the same");
}

#[test]
fn every_form() {
    let library = "registry.ollama.ai/library";
    check("gemma4", &format!("{library}/gemma4/latest"), "gemma4:latest");
    check("gemma4:e2b", &format!("{library}/gemma4/e2b"), "gemma4:e2b");
    check("library/gemma4:e2b", &format!("{library}/gemma4/e2b"), "gemma4:e2b");
    check("alice/tuned:v1", "registry.ollama.ai/alice/tuned/v1", "alice/tuned:v1");
    check("hf.co/org/repo:Q4_K_M", "hf.co/org/repo/Q4_K_M", "hf.co/org/repo:Q4_K_M");
    check("registry.ollama.ai/alice/m", "registry.ollama.ai/alice/m/latest", "alice/m:latest");
    check("other/library/m", "other/library/m/latest", "other/library/m:latest");
    check("localhost:5000/ns/m", "localhost:5000/ns/m/latest", "localhost:5000/ns/m:latest");
    check("localhost:5000/ns/m:t", "localhost:5000/ns/m/t", "localhost:5000/ns/m:t");
    check("_a/_b:_c", "registry.ollama.ai/_a/_b/_c", "_a/_b:_c");
    check("m.n-o_p:1.0-x_y", &format!("{library}/m.n-o_p/1.0-x_y"), "m.n-o_p:1.0-x_y");
    check("Gemma4:E2B", &format!("{library}/Gemma4/E2B"), "Gemma4:E2B");
}

#[test]
fn schemes() {
    let name: ModelName = "http://localhost:5000/ns/m:t".parse().unwrap();
    assert_eq!(name.scheme(), Some("http"));
    assert_eq!((name.host(), name.namespace()), ("localhost:5000", "ns"));
    assert_eq!((name.model(), name.tag()), ("m", "t"));
    assert_eq!(name.full(), "http://localhost:5000/ns/m:t");
    let name: ModelName = "gemma4".parse().unwrap();
    assert_eq!(name.scheme(), None);
    assert_eq!(name.full(), "registry.ollama.ai/library/gemma4:latest");
}

#[test]
fn broken_names_say_which_part_and_why() {
    use NamePart::{Host, Model, Namespace, Scheme, Tag};
    use NameRule::{Character, Empty, Start};
    for (text, part, rule) in [
        ("", Model, Empty),
        (":tag", Model, Empty),
        ("m:", Tag, Empty),
        ("/", Namespace, Empty),
        ("/m", Namespace, Empty),
        ("ns/", Model, Empty),
        ("/ns/m", Host, Empty),
        ("h//m", Namespace, Empty),
        ("://h/ns/m", Scheme, Empty),
        ("http:///ns/m", Host, Empty),
        ("-m", Model, Start('-')),
        (".m", Model, Start('.')),
        ("..", Model, Start('.')),
        ("../m", Namespace, Start('.')),
        ("../../m", Host, Start('.')),
        ("h/../m", Namespace, Start('.')),
        ("m:..", Tag, Start('.')),
        ("m:-", Tag, Start('-')),
        (" m", Model, Start(' ')),
        ("m n", Model, Character(' ')),
        ("m:a:b", Model, Character(':')),
        ("a/b/c/d", Host, Character('/')),
        ("../../../etc/m", Host, Start('.')),
        ("http://h/m", Host, Character('/')),
        ("a.b/m", Namespace, Character('.')),
        ("n:s/m", Namespace, Character(':')),
        ("m\\..", Model, Character('\\')),
        ("h\\/ns/m", Host, Character('\\')),
        ("m\0", Model, Character('\0')),
        ("modèle", Model, Character('è')),
        ("m@sha256", Model, Character('@')),
    ] {
        match text.parse::<ModelName>() {
            Err(StoreError::BadName { name, part: p, rule: r }) => {
                assert_eq!((name.as_str(), p, r), (text, part, rule), "{text:?}");
            }
            other => panic!("{text:?}: {other:?}"),
        }
    }
}

#[test]
fn lengths() {
    let long = |n| "x".repeat(n);
    for (fine, broken, part, max) in [
        (long(80), long(81), NamePart::Model, 80),
        (format!("m:{}", long(80)), format!("m:{}", long(81)), NamePart::Tag, 80),
        (format!("{}/m", long(80)), format!("{}/m", long(81)), NamePart::Namespace, 80),
        (format!("{}/n/m", long(350)), format!("{}/n/m", long(351)), NamePart::Host, 350),
    ] {
        fine.parse::<ModelName>().unwrap();
        let error = broken.parse::<ModelName>().unwrap_err();
        let rule = NameRule::TooLong { len: max + 1, max };
        assert!(
            matches!(&error, StoreError::BadName { part: p, rule: r, .. } if *p == part && *r == rule),
            "{error}"
        );
    }
}

proptest! {
    #[test]
    fn valid_names_stay_below_the_manifests_and_survive_printing(
        text in "([a-z]{0,4}://)?([a-zA-Z_.:-]{0,6}/)?([a-zA-Z_.-]{0,5}/)?[a-zA-Z0-9_.-]{0,5}(:[a-z0-9.]{0,4})?|.*",
    ) {
        let Ok(name) = text.parse::<ModelName>() else { return Ok(()) };
        let path = name.manifest_path();
        prop_assert_eq!(path.components().count(), 4);
        let plain = |c| matches!(c, std::path::Component::Normal(_));
        prop_assert!(path.components().all(plain), "{path:?}");
        prop_assert_eq!(&name.full().parse::<ModelName>().unwrap(), &name);
        let short: ModelName = name.to_string().parse().unwrap();
        prop_assert!(short.parts().iter().zip(name.parts()).all(|(a, b)| a.eq_ignore_ascii_case(b)));
    }
}
