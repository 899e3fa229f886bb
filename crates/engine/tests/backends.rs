//! Every kernel × variant through naga's writers for Metal, DX12 and Vulkan, without having those backends.

mod kernels;
mod shares;

use naga::{
    Module, ShaderStage, TypeInner,
    back::{hlsl, msl, spv},
    proc::{BoundsCheckPolicies, BoundsCheckPolicy},
    valid::ModuleInfo,
};
use rullama_engine::gpu::{Dialect, compose};

use crate::shares::{Share, on_all_cores};

/// A wgpu backend, by its shading language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backend {
    Msl,
    Hlsl,
    Spirv,
}

impl Backend {
    /// Whether the language supports everything a kernel uses. Only matrix units may be missing: HLSL has none, and Metal's are 8 × 8 while ours
    /// are 16 × 16. Devices without them never select such kernels.
    fn supports(self, module: &Module) -> bool {
        let matrix = |inner: &TypeInner| matches!(inner, TypeInner::CooperativeMatrix { .. });
        self == Self::Spirv || !module.types.iter().any(|(_, ty)| matrix(&ty.inner))
    }

    /// The kernel in the backend's language, with the options that wgpu uses.
    fn write(self, module: &Module, info: &ModuleInfo) -> Result<String, String> {
        match self {
            Self::Msl => write_msl(module, info),
            Self::Hlsl => write_hlsl(module, info),
            Self::Spirv => write_spirv(module, info),
        }
    }
}

fn write_msl(module: &Module, info: &ModuleInfo) -> Result<String, String> {
    let checked = BoundsCheckPolicy::Restrict;
    let options = msl::Options {
        lang_version: (3, 0),
        fake_missing_bindings: true,
        zero_initialize_workgroup_memory: false,
        force_loop_bounding: false,
        bounds_check_policies: BoundsCheckPolicies {
            index: checked,
            buffer: checked,
            image_load: checked,
            binding_array: BoundsCheckPolicy::Unchecked,
        },
        ..msl::Options::default()
    };
    let pipeline = msl::PipelineOptions {
        entry_point: Some((ShaderStage::Compute, "main".into())),
        ..msl::PipelineOptions::default()
    };
    let (text, written) =
        msl::write_string(module, info, &options, &pipeline).map_err(|error| error.to_string())?;
    for name in written.entry_point_names {
        name.map_err(|error| error.to_string())?;
    }
    Ok(text)
}

fn write_hlsl(module: &Module, info: &ModuleInfo) -> Result<String, String> {
    let options = hlsl::Options {
        shader_model: hlsl::ShaderModel::V6_2,
        fake_missing_bindings: true,
        zero_initialize_workgroup_memory: false,
        restrict_indexing: false,
        force_loop_bounding: false,
        ..hlsl::Options::default()
    };
    let pipeline =
        hlsl::PipelineOptions { entry_point: Some((ShaderStage::Compute, "main".into())) };
    let mut text = String::new();
    let mut writer = hlsl::Writer::new(&mut text, &options, &pipeline);
    let written = writer.write(module, info, None).map_err(|error| error.to_string())?;
    for name in written.entry_point_names {
        name.map_err(|error| error.to_string())?;
    }
    Ok(text)
}

fn write_spirv(module: &Module, info: &ModuleInfo) -> Result<String, String> {
    let options = spv::Options {
        lang_version: (1, 5),
        bounds_check_policies: BoundsCheckPolicies::default(),
        zero_initialize_workgroup_memory: spv::ZeroInitializeWorkgroupMemoryMode::None,
        force_loop_bounding: false,
        emit_int_div_checks: false,
        fake_missing_bindings: true,
        ..spv::Options::default()
    };
    let pipeline =
        spv::PipelineOptions { shader_stage: ShaderStage::Compute, entry_point: "main".into() };
    let words = spv::write_vec(module, info, &options, Some(&pipeline))
        .map_err(|error| error.to_string())?;
    Ok(format!("{} words", words.len()))
}

/// What came of writing the variants.
#[derive(Default)]
struct Written {
    variants: usize,
    /// Variants that a backend does not support.
    skipped: [usize; BACKENDS.len()],
    problems: Vec<String>,
}

const BACKENDS: [Backend; 3] = [Backend::Msl, Backend::Hlsl, Backend::Spirv];

/// Writes every variant of a share for every backend.
fn write_all(share: Share) -> Written {
    let mut written = Written::default();
    for variant in share.variants() {
        let dispatch = &variant.dispatch;
        let text = compose(dispatch, Dialect::Naga);
        let (module, info) = kernels::module(&text, &dispatch.constants)
            .unwrap_or_else(|error| panic!("{}: {error}", variant.label));
        written.variants += 1;
        for (backend, skipped) in BACKENDS.into_iter().zip(&mut written.skipped) {
            if !backend.supports(&module) {
                // Only wgpu's matrix units may be missing.
                assert!(variant.facts.matrix.is_some(), "{backend:?} lacks {}", variant.label);
                *skipped += 1;
                continue;
            }
            match backend.write(&module, &info) {
                Ok(text) => assert!(!text.is_empty(), "{backend:?}: {}", variant.label),
                Err(error) => {
                    written.problems.push(format!("{backend:?}: {}: {error}", variant.label));
                }
            }
        }
    }
    written
}

#[test]
fn every_variant_is_written_for_every_backend() {
    let written = on_all_cores(write_all);
    let variants: usize = written.iter().map(|written| written.variants).sum();
    assert!(variants > 500, "{variants} variants");
    for (i, backend) in BACKENDS.into_iter().enumerate() {
        let skipped: usize = written.iter().map(|written| written.skipped[i]).sum();
        assert_eq!(skipped > 0, backend != Backend::Spirv, "{backend:?} skipped {skipped}");
        assert!(skipped < variants / 4, "{backend:?} skipped {skipped} of {variants}");
    }
    let problems: Vec<String> = written.into_iter().flat_map(|written| written.problems).collect();
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}
