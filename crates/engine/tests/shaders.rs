//! Every kernel × variant without a GPU: naga accepts it, and its bindings, parameters and sizes match the Rust side.

mod shares;

use naga::{
    AddressSpace, Module, StorageAccess, TypeInner,
    back::{PipelineConstants, pipeline_constants::process_overrides},
    proc::Layouter,
    valid::{Capabilities, ValidationFlags, Validator},
};
use rullama_engine::{
    gpu::{Bind, Dialect, compose},
    suite::{Variant, variants},
};

use crate::shares::on_all_cores;

#[test]
fn every_variant_is_valid_and_fits_its_dispatch() {
    let checked = on_all_cores(|share| {
        let results = share.variants().map(|variant| (check(&variant), variant.label));
        results.map(|(result, label)| Some(format!("{label}: {}", result.err()?))).collect()
    });
    let checked: Vec<Option<String>> =
        checked.into_iter().flat_map(|share: Vec<_>| share).collect();
    assert!(!checked.is_empty());
    let problems: Vec<String> = checked.into_iter().flatten().collect();
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn the_suite_needs_subgroup_matrix_and_plain_variants() {
    let variants = variants();
    let has = |word: &str| variants.iter().any(|variant| variant.label.contains(word));
    assert!(has("subgroup") && has("workgroup"));
    // x in both forms, staged in both ways.
    for form in ["quantise/int8_pair", "quantise/none"] {
        for stage in ["stage/shuffle", "stage/memory"] {
            let both = |label: &str| label.contains(form) && label.contains(stage);
            assert!(variants.iter().any(|variant| both(&variant.label)), "{form} with {stage}");
        }
    }
    // Pairs of units by teams of four rows or two, for one token and for several.
    for words in
        [["matmul/gemv ", " ROWS=4 "], ["matmul/gemv ", " ROWS=2 "], ["matmul/gemv_batch ", ""]]
    {
        let all = |label: &str| {
            label.contains("activation/pairs") && words.iter().all(|word| label.contains(word))
        };
        assert!(variants.iter().any(|variant| all(&variant.label)), "pairs in {words:?}");
    }
    // Every tile shape of matrix units, for one weight and for experts.
    let all_shapes: &[&str] = &["128x128", "128x128_half", "64x64", "64x32", "64x16"];
    for (kernel, shapes) in [
        ("matmul/gemm ", all_shapes),
        ("matmul/gemm ", &["split_k_16x16", "split_k_16x32", "split_k_32x16"]),
        ("matmul/transposed_matrix ", all_shapes),
        ("matmul/moe_grouped ", &["64x64", "128x32"]),
    ] {
        for shape in shapes {
            let part = format!("tile_shape/{shape} ");
            let found = variants
                .iter()
                .any(|variant| variant.label.starts_with(kernel) && variant.label.contains(&part));
            assert!(found, "{kernel} with {part}");
        }
    }
}

fn check(variant: &Variant) -> Result<(), String> {
    let dispatch = &variant.dispatch;
    let text = compose(dispatch, Dialect::Naga);
    let module =
        naga::front::wgsl::parse_str(&text).map_err(|error| error.emit_to_string(&text))?;
    let capabilities = Capabilities::SUBGROUP
        | Capabilities::SUBGROUP_BARRIER
        | Capabilities::COOPERATIVE_MATRIX
        | Capabilities::SHADER_FLOAT16
        | Capabilities::SHADER_FLOAT16_IN_FLOAT32;
    let info = Validator::new(ValidationFlags::all(), capabilities)
        .validate(&module)
        .map_err(|error| error.emit_to_string(&text))?;
    let constants: PipelineConstants =
        dispatch.constants.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    for name in constants.keys() {
        let known = module.overrides.iter().any(|(_, o)| o.name.as_deref() == Some(name));
        ensure(known, || format!("there is no override {name}"))?;
    }
    // Before overrides are processed, which drops bindings that a kernel declares and never uses.
    check_bindings(variant, &module)?;
    let (module, _) = process_overrides(&module, &info, None, &constants)
        .map_err(|error| format!("constants are rejected: {error}"))?;
    check_sizes(variant, &module)
}

/// Binding 0 is the parameters, 1 the step, the others what the dispatch binds, in order and without gaps.
fn check_bindings(variant: &Variant, module: &Module) -> Result<(), String> {
    let dispatch = &variant.dispatch;
    let mut storage = vec![None; dispatch.bindings.len()];
    for (_, global) in module.global_variables.iter() {
        let Some(binding) = global.binding else { continue };
        let name = global.name.clone().unwrap_or_default();
        ensure(binding.group == 0, || format!("{name} is in group {}", binding.group))?;
        let size = module.types[global.ty].inner.size(module.to_ctx()) as usize;
        match (binding.binding, global.space) {
            (0, AddressSpace::Uniform) => {
                let rounded = size.next_multiple_of(16);
                ensure(rounded == dispatch.params.len(), || {
                    format!("the parameters have {rounded} bytes, Rust's {}", dispatch.params.len())
                })?;
            }
            (1, AddressSpace::Uniform) => {
                ensure(size == 16, || format!("the step has {size} bytes"))?
            }
            (at @ 2.., AddressSpace::Storage { access }) => {
                let slot = storage.get_mut(at as usize - 2);
                let slot =
                    slot.ok_or_else(|| format!("nothing is bound to {name}, binding {at}"))?;
                ensure(slot.is_none(), || format!("binding {at} is declared twice"))?;
                *slot = Some(access.contains(StorageAccess::STORE));
            }
            (at, space) => return Err(format!("{name}: {space:?} at binding {at}")),
        }
    }
    for (i, (declared, bound)) in storage.iter().zip(&dispatch.bindings).enumerate() {
        let written = matches!(bound, Bind::Write(_));
        ensure(*declared == Some(written), || {
            format!("binding {}: bound as {bound:?}, declared written: {declared:?}", i + 2)
        })?;
    }
    Ok(())
}

/// The device that selected the kernel can run it.
fn check_sizes(variant: &Variant, module: &Module) -> Result<(), String> {
    let facts = &variant.facts;
    let count = variant.dispatch.bindings.len();
    ensure(count <= facts.storage_buffers as usize, || format!("{count} storage buffers"))?;
    ensure(variant.dispatch.grid.iter().all(|n| *n <= 65_535), || {
        format!("a grid of {:?}", variant.dispatch.grid)
    })?;
    let entry = module.entry_points.iter().find(|entry| entry.name == "main");
    let lanes: u32 = entry.ok_or("no entry point `main`")?.workgroup_size.iter().product();
    ensure(lanes <= facts.invocations, || format!("{lanes} lanes of {}", facts.invocations))?;
    let mut layouter = Layouter::default();
    layouter.update(module.to_ctx()).map_err(|error| error.to_string())?;
    let shared = module.global_variables.iter().filter(|(_, g)| g.space == AddressSpace::WorkGroup);
    let bytes: u32 = shared.map(|(_, g)| layouter[g.ty].to_stride()).sum();
    ensure(bytes <= facts.workgroup_bytes, || {
        format!("{bytes} bytes of workgroup memory of {}", facts.workgroup_bytes)
    })?;
    let has_f16 = module.types.iter().any(
        |(_, ty)| matches!(ty.inner, TypeInner::Scalar(scalar) if scalar == naga::Scalar::F16),
    );
    ensure(facts.f16 || !has_f16, || "f16 on a device without it".into())
}

fn ensure(holds: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem()) }
}
