//! Kernel + parts → WGSL text: `//#use` lines are replaced by parts, `@binding(auto)` gets the number of the buffer bound under the
//! variable's name, `enable` and `diagnostic` lines move to the top. Nothing else.

use super::Dispatch;

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

/// The complete WGSL of a dispatch's kernel.
///
/// # Panics
/// If a `//#use` line names a kind without a part, a part is unused, or a binding has no number: all are bugs in the dispatch.
pub fn compose(dispatch: &Dispatch, dialect: Dialect) -> String {
    let kernel = dispatch.kernel;
    let mut text = Text {
        dispatch,
        used: vec![false; dispatch.parts.len()],
        directives: Vec::new(),
        body: String::from(include_str!("../wgsl/prelude.wgsl")),
    };
    text.expand(kernel.name, kernel.source);
    let Text { used, mut directives, body, .. } = text;
    for (part, used) in dispatch.parts.iter().zip(used) {
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
    used: Vec<bool>,
    directives: Vec<&'static str>,
    body: String,
}

impl Text<'_> {
    fn expand(&mut self, name: &str, source: &'static str) {
        for line in source.lines() {
            if let Some(kind) = line.strip_prefix("//#use ") {
                let parts = &self.dispatch.parts;
                let index = parts.iter().position(|part| part.kind == kind.trim());
                let index = index.unwrap_or_else(|| panic!("{name}: no part of kind `{kind}`"));
                let part = parts[index];
                // A part that two others use is inserted once.
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
