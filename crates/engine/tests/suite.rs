//! The op suite: every case of every operation on the CPU, and on every adapter of this machine at all its feature levels.
//!
//! `cargo test -p rullama-engine --test suite linear` runs one operation.

use std::{cell::RefCell, collections::HashSet};

use rullama_engine::{
    gpu::{DeviceFacts, Gpu, MatrixInt8, MatrixUnits},
    suite::{
        Case, Failure, Verdict, cases, check_cpu, check_gradient, feature_levels, most_workgroups,
        run,
    },
};

/// Three tests per operation; every operation of the suite must be named here.
macro_rules! operations {
    ($($op:ident),* $(,)?) => {
        const NAMED: &[&str] = &[$(stringify!($op)),*];
        $(mod $op {
            #[test]
            fn cpu_against_literals() {
                super::check(stringify!($op), "cpu", super::check_cpu);
            }

            #[test]
            fn gradients_against_finite_differences() {
                super::check(stringify!($op), "gradient", super::check_gradient);
            }

            #[test]
            fn gpu_against_cpu() {
                super::on_gpus(stringify!($op));
            }
        })*
    };
}

operations!(
    accumulate,
    adamw,
    add,
    add_norm,
    add_norm_norm,
    add_row,
    argmax,
    attention,
    attention_bidirectional,
    attention_packed,
    attention_qkv,
    attention_rope_2d,
    canvas_accept,
    canvas_softmax,
    clamp,
    clear,
    clip_settings,
    clamped_linear,
    convolve_stride2,
    convolve_causal,
    cross_entropy,
    cross_entropy_grad,
    dropout,
    embed,
    expert_groups,
    experts_combine,
    fused_linear,
    gather_rows,
    geglu,
    geglu_halves,
    geglu_halves_grad,
    gelu,
    gelu_grad,
    gelu_mul_slice,
    glu_halves,
    head_norm_rope,
    join_columns,
    latest_tokens,
    layer_norm,
    linear,
    linear_experts,
    linear_t,
    local_attention,
    lora,
    member,
    matmul,
    mul,
    mul_slice,
    norm_sum,
    patches,
    place_slice,
    ple,
    pool,
    rms_norm,
    rms_norm_grad,
    router,
    sample,
    scale,
    scale_by,
    scale_row,
    scatter_rows,
    select_row,
    silu,
    silu_grad,
    softcap,
    softcap_grad,
    split_columns,
    square_sum,
    standardise,
    slot_lora,
    store,
    suppress,
    swiglu,
    swiglu_halves,
    swiglu_halves_grad,
    top_k,
);

#[test]
fn all_operations_are_named() {
    let missing: Vec<&str> =
        cases().iter().map(|case| case.op).filter(|op| !NAMED.contains(op)).collect();
    assert!(missing.is_empty(), "add {missing:?} to the list above");
}

fn check(op: &str, what: &str, run: impl Fn(&Case) -> Result<(), Failure>) {
    let all = cases();
    let wanted: Vec<&Case> = all.iter().filter(|case| case.op == op && !case.bench).collect();
    assert!(!wanted.is_empty(), "{op} has no cases");
    let failed = wanted.iter().filter_map(|case| Some((case, run(case).err()?)));
    let failures: Vec<String> =
        failed.map(|(case, failure)| format!("{what}: {op} {}: {failure}", case.name)).collect();
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}

/// Fails without an adapter, so that unchecked parity is not taken for a pass.
fn on_gpus(op: &str) {
    let adapters = pollster::block_on(Gpu::all()).expect("adapters give devices");
    assert!(!adapters.is_empty(), "no WebGPU adapter: `cargo xtask setup` installs a software one");
    let fastest = adapters.iter().map(most_workgroups).max();
    for adapter in &adapters {
        let slow = Some(most_workgroups(adapter)) < fastest;
        // Dispatches equal to those of a higher level show nothing new.
        let seen = RefCell::new(HashSet::new());
        for (level, gpu) in feature_levels(adapter) {
            // The faster adapters emulate the lower levels; on slow ones they would take most of the suite's time.
            if slow && level != "all" {
                continue;
            }
            let what = format!("{} ({level})", adapter.name());
            check(op, &what, |case| {
                if !seen.borrow_mut().insert((case.name.clone(), case.dispatches(gpu.facts()))) {
                    return Ok(());
                }
                match pollster::block_on(run(case, &gpu)) {
                    Verdict::Passed | Verdict::Skipped { .. } => Ok(()),
                    Verdict::Failed(failure) => Err(failure),
                }
            });
        }
    }
}

/// Kernels for matrix units on an adapter without any, where every lane computes what the units would: attention with every head width and tiles
/// of several sizes, on the fastest such adapter, because it is slow.
#[test]
fn emulated_matrix_units() {
    let lacks = |gpu: &Gpu| {
        let DeviceFacts { f16, matrix, workgroup_bytes, .. } = gpu.facts();
        *f16 && matrix.is_none() && *workgroup_bytes >= 32 << 10
    };
    let adapters = pollster::block_on(Gpu::all()).expect("adapters give devices");
    let lacking = adapters.iter().filter(|gpu| lacks(gpu));
    let Some(gpu) = lacking.max_by_key(|gpu| most_workgroups(gpu)) else { return };
    let matrix = Some(MatrixUnits::Emulated);
    // One weight format per kind of tile is enough, since compiling takes longest.
    let facts = DeviceFacts { matrix, ..gpu.facts().clone() };
    check_emulated(
        &gpu.emulating(facts),
        &[
            ("attention_bidirectional", ""),
            ("attention_rope_2d", ""),
            ("attention_qkv", "paged rows F32 27"),
            ("attention_qkv", "paged rows F32 9"),
            ("clamped_linear", "F16"),
            ("fused_linear", "9 x "),
            ("fused_linear", "16 x "),
            ("fused_linear", "17 x "),
            ("linear", "F16"),
            ("linear_experts", "Q8_0"),
        ],
    );
}

/// Kernels for int8 matrix units, which need no f16.
#[test]
fn emulated_int8_matrix_units() {
    let adapters = pollster::block_on(Gpu::all()).expect("adapters give devices");
    let Some(gpu) = adapters.iter().max_by_key(|gpu| most_workgroups(gpu)) else { return };
    let matrix_int8 = Some(MatrixInt8::Emulated);
    let facts = DeviceFacts { matrix: None, matrix_int8, ..gpu.facts().clone() };
    check_emulated(&gpu.emulating(facts), &[("clamped_linear", ""), ("linear", "")]);
}

/// Checks the cases of these operations that use matrix units and whose names begin with this text.
fn check_emulated(gpu: &Gpu, ops: &[(&'static str, &str)]) {
    for (op, start) in ops {
        check(op, "emulated", |case| {
            if !case.name.starts_with(start) || !case.by_matrix_units(gpu.facts()) {
                return Ok(());
            }
            match pollster::block_on(run(case, gpu)) {
                Verdict::Passed | Verdict::Skipped { .. } => Ok(()),
                Verdict::Failed(failure) => Err(failure),
            }
        });
    }
}
