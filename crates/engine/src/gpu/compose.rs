//! Kernel + parts → WGSL text: `//#use` lines are replaced, `@binding(auto)` gets the number of the buffer that is bound under the
//! variable's name, `enable` and `diagnostic` lines move to the top. A line after `//#batch` is kept in kernels of batched passes only
//! (those with the part `sequence/batch`), one after `//#single` in all others, one after `//#slots` in kernels with a part `slot_lora`.
//! Nothing else.

use super::{Dispatch, Part};

/// The binding of the first storage buffer, after parameters and step.
const FIRST_STORAGE: usize = 2;

/// The compiler that will read the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// naga has subgroup functions without `enable subgroups;` and rejects that line.
    Naga,
    /// Browsers require `enable subgroups;`.
    Browser,
}

impl Dialect {
    /// The dialect of the platform this is compiled for.
    pub fn of_this_build() -> Self {
        if cfg!(target_arch = "wasm32") { Self::Browser } else { Self::Naga }
    }
}

/// How a pass of one sequence knows its step; kernels of batched passes have another part of this kind.
static SINGLE: Part = Part {
    kind: "sequence",
    name: "sequence/single",
    source: include_str!("../wgsl/sequence/single.wgsl"),
};

/// The kind of part that adds the LoRA of adapter slots.
const SLOTS: &str = "slot_lora";

/// The whole text of a dispatch's kernel.
///
/// # Panics
/// If a `//#use` line names a kind without a part, a part is unused, or a binding has no number: all are bugs in the dispatch.
pub fn compose(dispatch: &Dispatch, dialect: Dialect) -> String {
    let kernel = dispatch.kernel;
    let is_batch = dispatch.parts.iter().any(|part| part.kind == SINGLE.kind);
    let has_slots = dispatch.parts.iter().any(|part| part.kind == SLOTS);
    let single = (!is_batch).then_some(&SINGLE);
    let parts: Vec<&Part> = dispatch.parts.iter().copied().chain(single).collect();
    let mut text = Text {
        dispatch,
        is_batch,
        has_slots,
        used: vec![false; parts.len()],
        parts,
        directives: Vec::new(),
        body: String::new(),
    };
    text.expand("prelude", include_str!("../wgsl/prelude.wgsl"));
    text.expand(kernel.name, kernel.source);
    let Text { parts, used, mut directives, body, .. } = text;
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

/// A kernel's text while it is composed.
struct Text<'a> {
    dispatch: &'a Dispatch,
    parts: Vec<&'static Part>,
    used: Vec<bool>,
    /// Whether it is for a batched pass.
    is_batch: bool,
    /// Whether it adds the LoRA of adapter slots.
    has_slots: bool,
    directives: Vec<&'static str>,
    body: String,
}

impl Text<'_> {
    fn expand(&mut self, name: &str, source: &'static str) {
        for line in source.lines() {
            self.line(name, line);
        }
    }

    fn line(&mut self, name: &str, line: &'static str) {
        let code = line.trim_start();
        let kept = [
            ("//#batch ", self.is_batch),
            ("//#single ", !self.is_batch),
            ("//#slots ", self.has_slots),
        ];
        for (prefix, is_kept) in kept {
            if let Some(code) = code.strip_prefix(prefix) {
                if is_kept {
                    self.body.push_str(&line[..line.len() - line.trim_start().len()]);
                    self.line(name, code);
                }
                return;
            }
        }
        if let Some(kind) = line.strip_prefix("//#use ") {
            let index = self.parts.iter().position(|part| part.kind == kind.trim());
            let index = index.unwrap_or_else(|| panic!("{name}: no part of kind `{kind}`"));
            let part = self.parts[index];
            // A part that two others need is written once.
            if !std::mem::replace(&mut self.used[index], true) {
                self.expand(part.name, part.source);
            }
        } else if line.starts_with("enable ") || line.starts_with("diagnostic(") {
            self.directives.push(line);
        } else {
            match line.strip_prefix("@group(0) @binding(auto) ") {
                Some(variable) => self.numbered(name, variable),
                None => self.body.push_str(line),
            }
            self.body.push('\n');
        }
    }

    /// Writes a declaration with the number of its binding.
    fn numbered(&mut self, name: &str, variable: &str) {
        let declared = variable.split(['>', ':']).nth(1).unwrap_or_default().trim();
        let binding = self.dispatch.named.iter().find(|(name, _)| *name == declared);
        let (_, binding) =
            binding.unwrap_or_else(|| panic!("{name}: nothing is bound as `{declared}`"));
        self.body.push_str(&format!("@group(0) @binding({}) {variable}", FIRST_STORAGE + binding));
    }
}

#[cfg(test)]
mod tests {
    use super::{Dialect, compose};
    use crate::gpu::{BufferRef, Dispatch, Kernel, Part};

    static KERNEL: Kernel =
        Kernel { name: "test/kernel", source: "// y = x\n//#use number\n//#use sum\nfn main() {}" };
    static HALF: Part =
        Part { kind: "number", name: "f16", source: "enable f16;\nalias number = f16;" };
    static SUM: Part = Part {
        kind: "sum",
        name: "subgroup",
        source: "diagnostic(off, sums);\n//#use number\nfn sum(x: number) -> number { return subgroupAdd(x); }",
    };

    #[test]
    fn parts_fill_their_lines_once_and_directives_go_first() {
        let dispatch = Dispatch::new(&KERNEL).part(&HALF).part(&SUM);
        let text = compose(&dispatch, Dialect::Browser);
        let directives = "diagnostic(off, sums);\nenable f16;\nenable subgroups;\n";
        assert!(text.starts_with(directives), "{text}");
        let body = "// y = x\nalias number = f16;\n\
                    fn sum(x: number) -> number { return subgroupAdd(x); }\nfn main() {}\n";
        assert!(text.ends_with(body), "{text}");
        assert!(!compose(&dispatch, Dialect::Naga).contains("enable subgroups"));
    }

    #[test]
    fn bindings_are_numbered_by_name() {
        static NAMED: Kernel = Kernel {
            name: "test/named",
            source: "@group(0) @binding(auto) var<storage, read> b: array<f32>;\n\
                     @group(0) @binding(auto) var<storage, read_write> c: array<f32>;",
        };
        let dispatch = Dispatch::new(&NAMED)
            .read(BufferRef::Input(0))
            .write_as("c", BufferRef::Output(0))
            .read_as("b", BufferRef::Input(1));
        let text = compose(&dispatch, Dialect::Naga);
        assert!(
            text.contains("@group(0) @binding(4) var<storage, read> b: array<f32>;\n"),
            "{text}"
        );
        assert!(text.contains("@group(0) @binding(3) var<storage, read_write> c"), "{text}");
    }

    #[test]
    fn lines_for_batched_passes_are_kept_in_those_alone() {
        static ROWS: Kernel = Kernel {
            name: "test/rows",
            source: "fn main() {\n    //#single a();\n    //#batch b();\n}\n//#batch //#use rows",
        };
        static BATCH: Part =
            Part { kind: "sequence", name: "sequence/batch", source: "struct Step {}" };
        static ROW: Part = Part { kind: "rows", name: "rows", source: "fn b() {}" };
        let single = compose(&Dispatch::new(&ROWS), Dialect::Naga);
        assert!(single.ends_with("fn main() {\n    a();\n}\n"), "{single}");
        let batch = compose(&Dispatch::new(&ROWS).part(&BATCH).part(&ROW), Dialect::Naga);
        assert!(batch.starts_with("struct Step {}\n"), "{batch}");
        assert!(batch.ends_with("fn main() {\n    b();\n}\nfn b() {}\n"), "{batch}");
    }

    #[test]
    #[should_panic(expected = "no part of kind `number`")]
    fn a_missing_part_is_a_bug() {
        compose(&Dispatch::new(&KERNEL).part(&SUM), Dialect::Naga);
    }

    #[test]
    #[should_panic(expected = "nothing is bound as `b`")]
    fn a_missing_binding_is_a_bug() {
        static NAMED: Kernel = Kernel {
            name: "test/named",
            source: "@group(0) @binding(auto) var<storage, read> b: array<f32>;",
        };
        compose(&Dispatch::new(&NAMED).read(BufferRef::Input(0)), Dialect::Naga);
    }
}
