//! Kernel + parts → WGSL text: `//#use` lines are replaced, `enable` and `diagnostic` lines move to the top. Nothing else.

use super::{Kernel, Part};

/// Whose compiler will read the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// naga has subgroup functions without being asked, and refuses the line that asks.
    Naga,
    /// Browsers want `enable subgroups;`.
    Browser,
}

impl Dialect {
    /// The dialect of the platform this is compiled for.
    pub fn of_this_build() -> Self {
        if cfg!(target_arch = "wasm32") { Self::Browser } else { Self::Naga }
    }
}

/// The whole text of a kernel.
///
/// # Panics
/// If a `//#use` line names a kind that no part has, or a part is never used: the dispatch is wrong then.
pub fn compose(kernel: &Kernel, parts: &[&Part], dialect: Dialect) -> String {
    let mut directives = Vec::new();
    let mut body = String::from(include_str!("../wgsl/prelude.wgsl"));
    let mut used = vec![false; parts.len()];
    expand(kernel.name, kernel.source, parts, &mut used, &mut directives, &mut body);
    for (part, used) in parts.iter().zip(used) {
        assert!(used, "{}: nothing uses part {}/{}", kernel.name, part.kind, part.name);
    }
    if dialect == Dialect::Browser && body.contains("subgroup") {
        directives.push("enable subgroups;");
    }
    directives.sort_unstable();
    directives.dedup();
    let mut text: String = directives.iter().flat_map(|line| [line, "\n"]).collect();
    text.push_str(&body);
    text
}

fn expand<'a>(
    name: &str,
    source: &'a str,
    parts: &[&'a Part],
    used: &mut [bool],
    directives: &mut Vec<&'a str>,
    body: &mut String,
) {
    for line in source.lines() {
        if let Some(kind) = line.strip_prefix("//#use ") {
            let index = parts.iter().position(|part| part.kind == kind.trim());
            let index = index.unwrap_or_else(|| panic!("{name}: no part of kind `{kind}`"));
            // A part that two others need is written once.
            if !std::mem::replace(&mut used[index], true) {
                expand(parts[index].name, parts[index].source, parts, used, directives, body);
            }
        } else if line.starts_with("enable ") || line.starts_with("diagnostic(") {
            directives.push(line);
        } else {
            body.push_str(line);
            body.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Dialect, Kernel, Part, compose};

    const KERNEL: Kernel =
        Kernel { name: "test/kernel", source: "// y = x\n//#use number\n//#use sum\nfn main() {}" };
    const HALF: Part =
        Part { kind: "number", name: "f16", source: "enable f16;\nalias number = f16;" };
    const SUM: Part = Part {
        kind: "sum",
        name: "subgroup",
        source: "diagnostic(off, sums);\n//#use number\nfn sum(x: number) -> number { return subgroupAdd(x); }",
    };

    #[test]
    fn parts_fill_their_lines_once_and_directives_go_first() {
        let text = compose(&KERNEL, &[&HALF, &SUM], Dialect::Browser);
        let directives = "diagnostic(off, sums);\nenable f16;\nenable subgroups;\n";
        assert!(text.starts_with(directives), "{text}");
        let body = "// y = x\nalias number = f16;\n\
                    fn sum(x: number) -> number { return subgroupAdd(x); }\nfn main() {}\n";
        assert!(text.ends_with(body), "{text}");
        assert!(!compose(&KERNEL, &[&HALF, &SUM], Dialect::Naga).contains("enable subgroups"));
    }

    #[test]
    #[should_panic(expected = "no part of kind `number`")]
    fn a_missing_part_is_a_bug() {
        compose(&KERNEL, &[&SUM], Dialect::Naga);
    }
}
