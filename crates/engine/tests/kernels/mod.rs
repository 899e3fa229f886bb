//! Kernels as naga modules, with their constants applied.

use naga::{
    Module,
    back::{PipelineConstants, pipeline_constants::process_overrides},
    valid::{Capabilities, ModuleInfo, ValidationFlags, Validator},
};

/// A validator with all capabilities that kernels use.
pub(crate) fn validator() -> Validator {
    let capabilities = Capabilities::SUBGROUP
        | Capabilities::SUBGROUP_BARRIER
        | Capabilities::COOPERATIVE_MATRIX
        | Capabilities::SHADER_FLOAT16
        | Capabilities::SHADER_FLOAT16_IN_FLOAT32;
    Validator::new(ValidationFlags::all(), capabilities)
}

/// A kernel's module without `override`s.
pub(crate) fn module(
    text: &str,
    constants: &[(&'static str, f64)],
) -> Result<(Module, ModuleInfo), String> {
    let module = naga::front::wgsl::parse_str(text).map_err(|error| error.emit_to_string(text))?;
    let info = validator().validate(&module).map_err(|error| error.emit_to_string(text))?;
    let constants: PipelineConstants =
        constants.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    let (module, info) = process_overrides(&module, &info, None, &constants)
        .map_err(|error| format!("constants are rejected: {error}"))?;
    Ok((module.into_owned(), info.into_owned()))
}
