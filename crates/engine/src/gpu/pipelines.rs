//! The compiled pipelines of a device, by kernel, parts, constants and bindings. Pipelines are compiled in parallel on threads or by a compiler
//! outside of wgpu.

use std::{borrow::Cow, cell::RefCell, fmt, pin::Pin, rc::Rc};

use async_channel::Receiver;
use rustc_hash::FxHashMap;

use super::{
    Bind, Dialect, Dispatch, Gpu, GpuCall, check_formats,
    compiler::{Compiling, KernelSource, PipelineCompiler},
    compose,
    instrument::{Instrument, Rewriter},
    pipeline_cache::PipelineCache,
};
use crate::{error::EngineError, graph::Graph, threads::JobQueue};

/// A compiled kernel.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) label: String,
    pub(crate) compute: wgpu::ComputePipeline,
    pub(crate) layout: wgpu::BindGroupLayout,
}

/// The pipelines of a device: compiled ones, and those being compiled.
#[derive(Debug, Default)]
pub(crate) struct Pipelines {
    known: RefCell<FxHashMap<String, Rc<Pipeline>>>,
    started: RefCell<FxHashMap<String, Started>>,
    compiler: RefCell<Option<PipelineCompiler>>,
    pub(super) instrument: Instrument,
    /// Compile jobs; each holds the device, so they must not outlive the pipelines (see [`JobQueue`]).
    jobs: JobQueue,
    /// Dropped after the jobs, so that what they compile is saved, too.
    cache: Option<PipelineCache>,
}

/// A pipeline that is being compiled.
enum Started {
    /// By wgpu, perhaps on another thread.
    Wgpu(Receiver<Compiled>),
    /// Outside of wgpu, which compiles it afterwards.
    External(Compiling),
}

impl fmt::Debug for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wgpu(_) => "Wgpu",
            Self::External(_) => "External",
        })
    }
}

/// A pipeline from wgpu; in a browser its errors arrive later.
struct Compiled {
    pipeline: Pipeline,
    error: Pin<Box<dyn PipelineError>>,
}

trait PipelineError: Future<Output = Option<wgpu::Error>> + wgpu::WasmNotSend {}
impl<T: Future<Output = Option<wgpu::Error>> + wgpu::WasmNotSend> PipelineError for T {}

impl Pipelines {
    /// No pipelines yet; they are compiled with this cache of the driver's.
    pub(super) fn new(cache: Option<PipelineCache>) -> Self {
        Self { cache, ..Self::default() }
    }

    /// The driver's cache, if it has one and was asked for it.
    pub(super) fn cache(&self) -> Option<&PipelineCache> {
        self.cache.as_ref()
    }

    /// Labels of all pipelines compiled so far.
    pub(crate) fn labels(&self) -> Vec<String> {
        let mut labels: Vec<String> = self.known.borrow().keys().cloned().collect();
        labels.sort_unstable();
        labels
    }

    /// Starts compiling a dispatch's pipeline, unless it exists or was started before.
    pub(crate) fn start(&self, gpu: &Gpu, dispatch: &Dispatch) {
        let key = dispatch.label();
        let mut started = self.started.borrow_mut();
        if self.known.borrow().contains_key(&key) || started.contains_key(&key) {
            return;
        }
        if let Some(compiler) = &*self.compiler.borrow() {
            let source = KernelSource::new(key.clone(), text(dispatch), dispatch);
            started.insert(key, Started::External(compiler.begin(source)));
            return;
        }
        let (done, compiled) = async_channel::bounded(1);
        started.insert(key.clone(), Started::Wgpu(compiled));
        let (target, dispatch) = (self.target(gpu), dispatch.clone());
        self.jobs.spawn(move || {
            // The receiver may be gone.
            let _ = done.try_send(compile(&target, &dispatch, key));
        });
    }

    fn target(&self, gpu: &Gpu) -> Target {
        let (device, rewriter) = (gpu.device.clone(), self.instrument.rewriter());
        let cache = self.cache.as_ref().map(PipelineCache::handle);
        Target { device, backend: gpu.backend, rewriter, cache }
    }

    /// The pipeline of a dispatch.
    pub(crate) async fn get(
        &self,
        gpu: &Gpu,
        dispatch: &Dispatch,
    ) -> Result<Rc<Pipeline>, EngineError> {
        let key = dispatch.label();
        if let Some(known) = self.known.borrow().get(&key) {
            return Ok(Rc::clone(known));
        }
        gpu.check()?;
        self.start(gpu, dispatch);
        let started = self.started.borrow_mut().remove(&key).expect("started above");
        let refused = |message| EngineError::Kernel { kernel: key.clone(), message };
        let compiled = match started {
            Started::Wgpu(compiled) => {
                let crashed = |_| refused("the compiler crashed".to_owned());
                compiled.recv().await.map_err(crashed)?
            }
            Started::External(done) => {
                let external = done.await;
                gpu.check()?;
                let compiled = compile(&self.target(gpu), dispatch, key.clone());
                // The external pipeline keeps the kernel in the browser's cache until wgpu has compiled it, too.
                drop(external);
                compiled
            }
        };
        if let Some(error) = compiled.error.await {
            gpu.check()?;
            return Err(refused(error.to_string()));
        }
        let pipeline = Rc::new(compiled.pipeline);
        self.known.borrow_mut().insert(key, Rc::clone(&pipeline));
        Ok(pipeline)
    }
}

impl Gpu {
    /// Compiles kernels with this compiler before wgpu from now on.
    pub fn set_compiler(&self, compiler: PipelineCompiler) {
        *self.pipelines.compiler.borrow_mut() = Some(compiler);
    }

    /// Starts compiling the kernels of a graph, on other threads if there are any, so that weights can be loaded meanwhile and a plan of
    /// the graph finds its pipelines compiled. The future resolves when they are; dropping it does not stop the compilation.
    ///
    /// # Errors
    /// If a weight's format has no kernel, a kernel is rejected or the device is lost.
    pub fn warm(&self, graph: &Graph) -> impl Future<Output = Result<(), EngineError>> + use<> {
        let dispatches = check_formats(graph)
            .map(|()| GpuCall::dispatches(self.facts(), graph).collect::<Vec<_>>());
        for (_, dispatch) in dispatches.iter().flatten() {
            self.pipelines.start(self, dispatch);
        }
        let gpu = self.clone();
        async move {
            for (_, dispatch) in &dispatches? {
                gpu.pipelines.get(&gpu, dispatch).await?;
            }
            Ok(())
        }
    }
}

fn text(dispatch: &Dispatch) -> String {
    compose(dispatch, Dialect::of_this_build())
}

/// What kernels are compiled with.
struct Target {
    device: wgpu::Device,
    backend: wgpu::Backend,
    rewriter: Option<Rewriter>,
    cache: Option<wgpu::PipelineCache>,
}

fn compile(target: &Target, dispatch: &Dispatch, key: String) -> Compiled {
    let (device, label) = (&target.device, Some(key.as_str()));
    let (mut text, mut constants) = (text(dispatch), dispatch.constants.as_slice());
    let mut entries = entries(dispatch);
    if let Some(rewriter) = &target.rewriter {
        text = rewriter.rewrite(&text, constants, entries.len());
        constants = &[];
        entries.push(entry(
            entries.len(),
            true,
            wgpu::BufferBindingType::Storage { read_only: false },
        ));
    }
    let scope = device.push_error_scope(wgpu::ErrorFilter::Validation);
    let module = trusted(target, label, text);
    let layout = device
        .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label, entries: &entries });
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label,
        bind_group_layouts: &[Some(&layout)],
        immediate_size: 0,
    });
    let compute = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label,
        layout: Some(&pipeline_layout),
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions {
            constants,
            // Kernels write workgroup memory before they read it.
            zero_initialize_workgroup_memory: false,
        },
        cache: target.cache.as_ref(),
    });
    let error = Box::pin(scope.pop());
    Compiled { pipeline: Pipeline { label: key, compute, layout }, error }
}

/// A shader module without wgpu's runtime checks, if the backend bounds buffer accesses itself (decision 0004).
#[expect(unsafe_code, reason = "the caller of wgpu's function promises in-bounds accesses")]
fn trusted(target: &Target, label: Option<&str>, text: String) -> wgpu::ShaderModule {
    let source = wgpu::ShaderSource::Wgsl(Cow::Owned(text));
    let module = wgpu::ShaderModuleDescriptor { label, source };
    let checks = runtime_checks(target.backend);
    // SAFETY: the text is composed from this crate's own parts only. Their indices come from shapes that `infer` has checked and from ids
    // and positions that were checked before the upload or are clamped in the kernel; loop bounds and divisors come from those shapes, too.
    // The suite runs every kernel on adapters of this machine and counts out-of-bounds indices (`tests/bounds.rs`); where neither API nor
    // driver bounds accesses, wgpu's checks stay; browsers have their own.
    unsafe { target.device.create_shader_module_trusted(module, checks) }
}

/// The checks that kernels keep on a backend. Vulkan (`robustBufferAccess`, and `robustBufferAccess2` if the driver has it; wgpu enables
/// both) and DX12 (descriptor table views have sizes) bound buffer accesses themselves. Metal does not.
fn runtime_checks(backend: wgpu::Backend) -> wgpu::ShaderRuntimeChecks {
    let bounded = matches!(
        backend,
        wgpu::Backend::Vulkan | wgpu::Backend::Dx12 | wgpu::Backend::BrowserWebGpu
    );
    wgpu::ShaderRuntimeChecks {
        bounds_checks: !bounded,
        int_div_checks: !bounded,
        ..wgpu::ShaderRuntimeChecks::unchecked()
    }
}

/// Parameters, step, storage bindings in order, then the bindings invisible to the kernel.
fn entries(dispatch: &Dispatch) -> Vec<wgpu::BindGroupLayoutEntry> {
    let visible = 2 + dispatch.bindings.len();
    let uniforms = [wgpu::BufferBindingType::Uniform; 2].into_iter();
    let storage = dispatch
        .bindings
        .iter()
        .map(|bind| wgpu::BufferBindingType::Storage { read_only: matches!(bind, Bind::Read(_)) });
    let invisible =
        dispatch.shared_reads.iter().map(|_| wgpu::BufferBindingType::Storage { read_only: true });
    let all = uniforms.chain(storage).chain(invisible).enumerate();
    all.map(|(binding, ty)| entry(binding, binding < visible, ty)).collect()
}

fn entry(binding: usize, visible: bool, ty: wgpu::BufferBindingType) -> wgpu::BindGroupLayoutEntry {
    wgpu::BindGroupLayoutEntry {
        binding: u32::try_from(binding).expect("few bindings"),
        visibility: match visible {
            true => wgpu::ShaderStages::COMPUTE,
            false => wgpu::ShaderStages::NONE,
        },
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
        count: None,
    }
}

#[cfg(test)]
mod tests {
    use super::runtime_checks;

    #[test]
    fn checks_stay_where_nothing_else_bounds_accesses() {
        for (backend, kept) in [
            (wgpu::Backend::Vulkan, false),
            (wgpu::Backend::Dx12, false),
            (wgpu::Backend::BrowserWebGpu, false),
            (wgpu::Backend::Metal, true),
            (wgpu::Backend::Gl, true),
        ] {
            let checks = runtime_checks(backend);
            assert_eq!((checks.bounds_checks, checks.int_div_checks), (kept, kept), "{backend:?}");
            // Loops are bounded by shapes on every backend.
            assert!(!checks.force_loop_bounding, "{backend:?}");
        }
    }
}
