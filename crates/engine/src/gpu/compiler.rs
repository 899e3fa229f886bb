//! Compiling kernels outside of wgpu, which in a browser compiles them one by one and blocks the page.

use std::{any::Any, fmt, pin::Pin, rc::Rc};

use super::{Bind, Dispatch};

/// A kernel in WebGPU's terms, with everything a compiler needs.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelSource {
    /// Label for debuggers.
    pub label: String,
    /// WGSL with the entry point `main`.
    pub text: String,
    /// Values of `override` constants.
    pub constants: Vec<(&'static str, f64)>,
    /// The type of each buffer binding, in order.
    pub bindings: Vec<&'static str>,
}

impl KernelSource {
    pub(super) fn new(label: String, text: String, dispatch: &Dispatch) -> Self {
        let storage = dispatch.bindings.iter().map(|bind| match bind {
            Bind::Read(_) => "read-only-storage",
            Bind::Write(_) => "storage",
        });
        let bindings = ["uniform"; 2].into_iter().chain(storage).collect();
        Self { label, text, constants: dispatch.constants.clone(), bindings }
    }
}

/// Resolves when a kernel is compiled or compilation failed; its output is kept alive until wgpu has compiled the kernel too.
pub type Compiling = Pin<Box<dyn Future<Output = Box<dyn Any>>>>;

/// Compiles kernels before wgpu does. Browsers cache kernels by content, so that wgpu then gets the compiled kernel.
#[derive(Clone)]
pub struct PipelineCompiler(Rc<dyn Fn(KernelSource) -> Compiling>);

impl PipelineCompiler {
    /// A compiler; `begin` is called once for each kernel.
    pub fn new(begin: impl Fn(KernelSource) -> Compiling + 'static) -> Self {
        Self(Rc::new(begin))
    }

    pub(super) fn begin(&self, source: KernelSource) -> Compiling {
        (self.0)(source)
    }
}

impl fmt::Debug for PipelineCompiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PipelineCompiler")
    }
}
