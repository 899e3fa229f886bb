//! Rules for the engine's operations: a WGSL part is in a folder named like its kind, and the modules of an operation
//! have no import cycles.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::{Context, Result};

use crate::command::{output, root};

const OPS: &str = "crates/engine/src/ops/";

pub(super) fn check(problems: &mut Vec<String>) -> Result<()> {
    let mut modules: BTreeMap<String, Uses> = BTreeMap::new();
    for name in output("git", &["ls-files", OPS])?.lines() {
        let path = root().join(name);
        if !name.ends_with(".rs") || !path.is_file() {
            continue;
        }
        let text = std::fs::read_to_string(&path).with_context(|| name.to_owned())?;
        let inside = name.strip_prefix(OPS).unwrap_or(name);
        check_kinds(name, &text, problems);
        if let Some((op, file)) = inside.split_once('/') {
            let (module, uses) = module_uses(op, file, &text);
            let known = modules.entry(op.to_owned()).or_default();
            known.entry(module).or_default().extend(uses);
        }
    }
    for (op, uses) in &modules {
        problems.extend(
            cycle(uses).map(|cycle| format!("{OPS}{op}: import cycle: {}", cycle.join(" → "))),
        );
    }
    Ok(())
}

/// Modules of an operation, each with those it imports.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Every `Part { kind: "…", …, source: include_str!("…/folder/file.wgsl") }` has the name of its folder as its kind; a kind with a single
/// part may be a file of its name instead.
fn check_kinds(name: &str, text: &str, problems: &mut Vec<String>) {
    for literal in text.split("kind: \"").skip(1) {
        let kind = literal.split('"').next().unwrap_or_default();
        let Some(file) = literal.split("include_str!(\"").nth(1) else { continue };
        let file = Path::new(file.split('"').next().unwrap_or_default());
        let path = Path::new(name).with_file_name("").join(file);
        let folder = path.parent().and_then(Path::file_name);
        if folder != Some(kind.as_ref()) && path.file_stem() != Some(kind.as_ref()) {
            let file = file.display();
            problems.push(format!("{name}: the part {file} of kind `{kind}` is in another folder"));
        }
    }
}

/// The module of an operation that a file belongs to, and the modules of the same operation that it imports outside its tests.
fn module_uses(op: &str, file: &str, text: &str) -> (String, BTreeSet<String>) {
    let mut module_path: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
    if module_path.last() == Some(&"mod") {
        module_path.pop();
    }
    let module = module_path.first().copied().unwrap_or_default().to_owned();
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut uses = BTreeSet::new();
    for import in code.split("\nuse ").skip(1) {
        let import = import.split(';').next().unwrap_or_default();
        for path in paths(&import.split_whitespace().collect::<String>()) {
            let mut here: Vec<&str> =
                ["crate", "ops", op].into_iter().chain(module_path.clone()).collect();
            let mut path = path.split("::").peekable();
            match path.peek() {
                Some(&"crate") => here.clear(),
                Some(&"self") => drop(path.next()),
                Some(&"super") => {
                    while path.next_if_eq(&"super").is_some() {
                        here.pop();
                    }
                }
                _ => continue,
            }
            here.extend(path);
            if let ["crate", "ops", other, used, ..] = here.as_slice()
                && *other == op
                && *used != module
                && !module.is_empty()
            {
                uses.insert((*used).to_owned());
            }
        }
    }
    (module, uses)
}

/// `a::{b, c::d}` as `a::b` and `a::c::d`.
fn paths(import: &str) -> Vec<String> {
    let Some((head, rest)) = import.split_once('{') else { return vec![import.to_owned()] };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.flat_map(paths).map(|path| format!("{head}{path}")).collect()
}

/// An import cycle, if there is one.
fn cycle(uses: &Uses) -> Option<Vec<String>> {
    fn walk(at: &str, uses: &Uses, path: &mut Vec<String>, done: &mut BTreeSet<String>) -> bool {
        if let Some(first) = path.iter().position(|one| one == at) {
            path.drain(..first);
            path.push(at.to_owned());
            return true;
        }
        if done.contains(at) || !uses.contains_key(at) {
            return false;
        }
        path.push(at.to_owned());
        if uses[at].iter().any(|next| walk(next, uses, path, done)) {
            return true;
        }
        path.pop();
        done.insert(at.to_owned());
        false
    }
    let (mut path, mut done) = (Vec::new(), BTreeSet::new());
    uses.keys().any(|start| walk(start, uses, &mut path, &mut done)).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::{BTreeSet, Uses, check_kinds, cycle, module_uses, paths};

    #[test]
    fn imports_in_all_forms_are_found() {
        assert_eq!(paths("super::{a,b::{c,d}}"), ["super::a", "super::b::c", "super::b::d"]);
        let text = "\nuse super::{\n    gemm::Tile,\n    Top,\n};\nuse crate::ops::{matmul::lora, parts};\n\
                    #[cfg(test)]\nmod tests {\n    use super::super::select;\n}";
        let (module, uses) = module_uses("matmul", "gemv/mod.rs", text);
        assert_eq!(module, "gemv");
        assert_eq!(uses, BTreeSet::from(["Top", "gemm", "lora"].map(String::from)));
        let (_, uses) = module_uses("matmul", "gemv/tiling.rs", "\nuse super::super::select;");
        assert_eq!(uses, BTreeSet::from(["select".to_owned()]));
    }

    #[test]
    fn cycles_and_wrong_folders_are_reported() {
        let uses = |pairs: &[(&str, &[&str])]| -> Uses {
            let set = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
            pairs.iter().map(|(module, used)| ((*module).to_owned(), set(used))).collect()
        };
        assert_eq!(cycle(&uses(&[("a", &["b"]), ("b", &["c"]), ("c", &[])])), None);
        let found = cycle(&uses(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"])]));
        assert_eq!(found, Some(["b", "c", "b"].map(String::from).to_vec()));
        let mut problems = Vec::new();
        let part = |folder: &str| {
            format!(
                "Part {{ kind: \"team\", name: \"t\", source: include_str!(\"{folder}/t.wgsl\") }}"
            )
        };
        check_kinds("a.rs", &part("../wgsl/team"), &mut problems);
        assert!(problems.is_empty());
        check_kinds("a.rs", &part("../wgsl/other"), &mut problems);
        assert_eq!(problems.len(), 1);
    }
}
