//! Models with adapters against reference logits.

use std::rc::Rc;

use pollster::block_on;
use rullama_adapter::Adapter;
use rullama_engine::executor::Device;
use rullama_runtime::{Model, RuntimeError, adapters::FactorType, session::DeviceSampling};
use rullama_source::MemorySource;
use rullama_testkit::golden;

use crate::golden::{Golden, devices, exact, model};

/// A model and its adapter's file.
const ADAPTED: [(&str, &str); 2] =
    [("micro-e2b-Q8_0", "micro-e2b-lora-F32"), ("micro-moe-Q8_0", "micro-moe-lora-F32")];

pub(crate) fn adapter(name: &str) -> Adapter {
    let bytes = golden(&format!("gguf/{name}.gguf"));
    let source = Rc::new(MemorySource::new(name, bytes));
    block_on(Adapter::read(source, None)).expect("an adapter")
}

pub(crate) fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Logits of all tokens, in chunks of `chunk` tokens.
pub(crate) fn logits(
    model: &Model,
    adapters: &[(&Adapter, f32)],
    ids: &[u32],
    chunk: usize,
    factors: FactorType,
) -> Vec<f32> {
    let mut session = model.session(&rullama_runtime::session::SessionOptions { chunk, ..exact() });
    let session = session.as_mut().expect("a session");
    let attached = block_on(model.attach(adapters, factors)).expect("they fit");
    session.set_adapters(Some(&attached)).expect("the same model");
    session.extend(ids).expect("it fits");
    let mut all = Vec::new();
    block_on(session.all_logits(&mut |rows| all.extend_from_slice(rows))).expect("logits");
    all
}

#[test]
fn logits_with_adapters_equal_the_reference() {
    for (name, file) in ADAPTED {
        let golden = Golden::lora(name);
        let adapter = adapter(file);
        for device in devices() {
            let model = model(name, &device);
            for prompt in ["short", "medium"] {
                let ids = golden.ids(&format!("{prompt}.ids"));
                let wanted = golden.f32(&format!("{prompt}.logits"));
                let positions = golden.ids(&format!("{prompt}.positions"));
                for chunk in [1, 512] {
                    let all = logits(&model, &[(&adapter, 1.0)], &ids, chunk, FactorType::F32);
                    let rows = positions.iter().flat_map(|p| &all[*p as usize * 640..][..640]);
                    let rows: Vec<f32> = rows.copied().collect();
                    let difference = largest_difference(&rows, &wanted);
                    let place = format!("{name} {prompt} by {chunk} on {}", device.name());
                    assert!(difference < 1e-3, "{place}: {difference}");
                }
            }
        }
    }
}

#[test]
fn f16_factors_change_little() {
    for device in devices().into_iter().filter(|device| matches!(device, Device::Gpu(_))) {
        let (name, file) = ADAPTED[0];
        let (model, adapter) = (model(name, &device), adapter(file));
        let ids = Golden::lora(name).ids("short.ids");
        let whole = logits(&model, &[(&adapter, 1.0)], &ids, 1, FactorType::F32);
        let f16 = logits(&model, &[(&adapter, 1.0)], &ids, 1, FactorType::F16);
        let difference = largest_difference(&whole, &f16);
        assert!(difference > 0.0 && difference < 0.05, "{difference}");
    }
}

#[test]
fn weights_add_up() {
    for device in devices() {
        let (name, file) = ADAPTED[0];
        let (model, adapter) = (model(name, &device), adapter(file));
        let ids = Golden::lora(name).ids("short.ids");
        let one = logits(&model, &[(&adapter, 1.0)], &ids, 512, FactorType::F32);
        let parts = [(&adapter, 0.75), (&adapter, 0.75), (&adapter, -0.5)];
        let sum = logits(&model, &parts, &ids, 512, FactorType::F32);
        let difference = largest_difference(&one, &sum);
        assert!(difference < 1e-3, "{}: {difference}", device.name());
        let none = logits(&model, &[(&adapter, 0.0)], &ids, 512, FactorType::F32);
        assert!(largest_difference(&one, &none) > 0.1);
    }
}

/// Enough adapters that the down-projection gets its own dispatch.
const MANY: usize = 28;

#[test]
fn many_adapters_at_once() {
    // The second model's V projection has another format than Q and K, and its global layers use split KV.
    let mixed = ("tiny-e2b-Q4_K_M", "tiny-e2b-lora-F32");
    for device in devices() {
        for ((name, file), many) in [(ADAPTED[0], MANY), (mixed, MANY / 2), (mixed, MANY)] {
            let (model, adapter) = (model(name, &device), adapter(file));
            let ids = Golden::lora(name).ids("short.ids");
            let one = logits(&model, &[(&adapter, 1.0)], &ids, 1, FactorType::F32);
            let parts = vec![(&adapter, 1.0 / many as f32); many];
            let sum = logits(&model, &parts, &ids, 1, FactorType::F32);
            let difference = largest_difference(&one, &sum);
            assert!(difference < 1e-3, "{name} on {}: {difference}", device.name());
        }
    }
}

#[test]
fn adapters_are_switched_without_reloading() {
    for device in devices() {
        let (name, file) = ADAPTED[0];
        let (model, adapter) = (model(name, &device), adapter(file));
        let attached =
            block_on(model.attach(&[(&adapter, 1.0)], FactorType::F32)).expect("it fits");
        let mut session = model.session(&exact()).expect("a session");
        let ids = Golden::lora(name).ids("medium.ids");
        session.set_tokens(&ids).expect("it fits");
        let plain = block_on(session.logits()).expect("logits");
        session.set_adapters(Some(&attached)).expect("the same model");
        assert_eq!((session.cached(), session.tokens().len()), (0, ids.len()));
        let adapted = block_on(session.logits()).expect("logits");
        assert!(largest_difference(&plain, &adapted) > 0.1);
        let bytes = block_on(session.save()).expect("bytes");
        assert!(block_on(model.restore(&bytes)).is_err(), "caches computed with an adapter");
        let mut restored =
            block_on(model.restore_with(Some(&attached), &bytes)).expect("a session");
        let next = block_on(restored.next(DeviceSampling::Greedy)).expect("a token");
        assert_eq!(next, block_on(session.next(DeviceSampling::Greedy)).expect("a token"));
        session.set_tokens(&ids).expect("it fits");
        session.set_adapters(None).expect("none");
        assert_eq!(block_on(session.logits()).expect("logits"), plain);
    }
}

#[test]
fn an_adapter_adds_few_dispatches() {
    for device in devices() {
        let Device::Gpu(gpu) = &device else { continue };
        let (name, file) = ADAPTED[0];
        let (model, adapter) = (model(name, &device), adapter(file));
        let mut session = model.session(&exact()).expect("a session");
        session.extend(&[2, 5, 6]).expect("it fits");
        let plain =
            block_on(session.step_cost(DeviceSampling::Greedy)).expect("a graph").dispatches;
        let layers = model.config().layers.len() as u64;
        // Down-projections are folded into the dispatches before them, except in the first layer. Without enough storage buffers, each
        // layer needs one dispatch before QKV and one before the gate.
        let more = if gpu.facts().storage_buffers >= 10 { 3 } else { 2 * layers };
        for (count, each) in [(1, FactorType::F16), (MANY, FactorType::F32)] {
            let adapters = vec![(&adapter, 1.0); count];
            let attached = block_on(model.attach(&adapters, each)).expect("they fit");
            session.set_adapters(Some(&attached)).expect("the same model");
            let adapted =
                block_on(session.step_cost(DeviceSampling::Greedy)).expect("a graph").dispatches;
            assert!(adapted <= plain + more, "{plain} and {adapted} for {layers} layers");
        }
    }
}

#[test]
fn another_models_adapter_is_refused_with_all_mismatches() {
    let model = model("micro-moe-Q8_0", &Device::Cpu);
    let other = adapter("micro-e2b-lora-F32");
    let error = block_on(model.attach(&[(&other, 1.0)], FactorType::F32))
        .expect_err("another model's adapter");
    assert!(matches!(error, RuntimeError::Adapter(_)));
    let text = error.to_string();
    // Shapes that differ, and layers the model does not have.
    for word in ["blk.2.attn_v.weight", "blk.5.ffn_up.weight", "blk.0.attn_k.weight", " × "] {
        assert!(text.contains(word), "{word}: {text}");
    }
}
