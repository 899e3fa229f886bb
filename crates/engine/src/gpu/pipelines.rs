//! (kernel, parts, constants, bindings) → pipeline, made once per device.

use std::{borrow::Cow, cell::RefCell, rc::Rc};

use rustc_hash::FxHashMap;

use super::{Bind, Dialect, Dispatch, Gpu, compose};
use crate::error::EngineError;

/// A compiled kernel.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) label: String,
    pub(crate) compute: wgpu::ComputePipeline,
    pub(crate) layout: wgpu::BindGroupLayout,
}

/// The pipelines of a device.
#[derive(Debug, Default)]
pub(crate) struct Pipelines {
    known: RefCell<FxHashMap<String, Rc<Pipeline>>>,
}

impl Pipelines {
    /// Labels of all pipelines made so far.
    pub(crate) fn labels(&self) -> Vec<String> {
        let mut labels: Vec<String> = self.known.borrow().keys().cloned().collect();
        labels.sort_unstable();
        labels
    }

    /// The pipeline a dispatch needs.
    pub(crate) async fn get(
        &self,
        gpu: &Gpu,
        dispatch: &Dispatch,
    ) -> Result<Rc<Pipeline>, EngineError> {
        let key = dispatch.label();
        if let Some(known) = self.known.borrow().get(&key) {
            return Ok(Rc::clone(known));
        }
        let pipeline = Rc::new(compile(gpu, dispatch, &key).await?);
        self.known.borrow_mut().insert(key, Rc::clone(&pipeline));
        Ok(pipeline)
    }
}

async fn compile(gpu: &Gpu, dispatch: &Dispatch, key: &str) -> Result<Pipeline, EngineError> {
    gpu.check()?;
    let text = compose(dispatch.kernel, &dispatch.parts, Dialect::of_this_build());
    let scope = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
    let module = gpu.device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some(key),
        source: wgpu::ShaderSource::Wgsl(Cow::Owned(text)),
    });
    let layout = gpu.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some(key),
        entries: &entries(dispatch),
    });
    let pipeline_layout = gpu.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some(key),
        bind_group_layouts: &[Some(&layout)],
        immediate_size: 0,
    });
    let compute = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(key),
        layout: Some(&pipeline_layout),
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions {
            constants: &dispatch.constants,
            // Kernels write workgroup memory before they read it.
            zero_initialize_workgroup_memory: false,
        },
        cache: None,
    });
    match scope.pop().await {
        None => Ok(Pipeline { label: key.into(), compute, layout }),
        Some(error) => Err(EngineError::Kernel { kernel: key.into(), message: error.to_string() }),
    }
}

/// Parameters, step, then the storage bindings in order.
fn entries(dispatch: &Dispatch) -> Vec<wgpu::BindGroupLayoutEntry> {
    let entry = |(binding, ty): (usize, wgpu::BufferBindingType)| wgpu::BindGroupLayoutEntry {
        binding: u32::try_from(binding).expect("few bindings"),
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
        count: None,
    };
    let uniforms = [wgpu::BufferBindingType::Uniform; 2].into_iter();
    let storage = dispatch
        .bindings
        .iter()
        .map(|bind| wgpu::BufferBindingType::Storage { read_only: matches!(bind, Bind::Read(_)) });
    uniforms.chain(storage).enumerate().map(entry).collect()
}
