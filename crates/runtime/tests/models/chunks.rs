//! Logits do not depend on how a prompt is split into passes, past the window and in wrapped ring buffers.

use pollster::block_on;
use rullama_engine::executor::Device;
use rullama_gguf::Gguf;
use rullama_runtime::{
    Model,
    model::TablePlace,
    session::{DeviceSampling, SessionOptions},
};

use crate::golden::{Golden, devices, exact, file, model, model_of, model_with};

/// Passes differ only in the order of sums.
const TOLERANCE: f32 = 1e-3;

fn logits(model: &Model, ids: &[u32], chunk: usize) -> Vec<f32> {
    let options = SessionOptions { chunk, ..exact() };
    let mut session = model.session(&options).expect("a session");
    session.extend(ids).expect("the prompt fits");
    block_on(session.logits()).expect("logits")
}

fn assert_close(actual: &[f32], wanted: &[f32], what: &str) {
    let worst = actual.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < TOLERANCE, "{what}: off by {worst}");
}

#[test]
fn any_chunks_give_the_same_logits() {
    for device in devices() {
        for name in ["micro-e2b-Q8_0", "micro-moe-BF16", "micro-dense-BF16"] {
            let (model, golden) = (model(name, &device), Golden::of(name));
            let ids = golden.ids("long.ids");
            let all = golden.f32("long.logits");
            // The last stored position is the last token's.
            let wanted = &all[all.len() - model.config().vocabulary..];
            // Single tokens are covered by generation.
            for chunk in [7, 32, 256] {
                let what = format!("{name} in chunks of {chunk} on {}", device.name());
                assert_close(&logits(&model, &ids, chunk), wanted, &what);
            }
        }
    }
}

/// The window is 16 and passes have at most 7 tokens, so the ring buffer of 23 slots wraps many times in 264 tokens.
#[test]
fn token_by_token_in_a_wrapped_ring() {
    let name = "micro-e2b-Q8_0";
    for device in devices() {
        let (model, golden) = (model(name, &device), Golden::of(name));
        let ids = golden.ids("long.ids");
        let mut session =
            model.session(&SessionOptions { chunk: 7, ..exact() }).expect("a session");
        session.extend(&ids[..1]).expect("one token fits");
        for id in &ids[1..] {
            block_on(session.logits()).expect("logits");
            session.extend(&[*id]).expect("it fits");
        }
        let all = golden.f32("long.logits");
        let wanted = &all[all.len() - model.config().vocabulary..];
        assert_close(&block_on(session.logits()).expect("logits"), wanted, device.name());
        for wanted in golden.ids("long.greedy") {
            let token = block_on(session.next(DeviceSampling::Greedy)).expect("a token");
            assert_eq!(token, Some(wanted), "on {}", device.name());
        }
    }
}

#[test]
fn per_layer_table_on_host_or_gpu() {
    let name = "tiny-e2b-Q4_K_M";
    let golden = Golden::of(name);
    let ids = golden.ids("medium.ids");
    for device in devices() {
        let logits = [TablePlace::Host, TablePlace::Gpu]
            .map(|table| logits(&model_with(name, &device, table), &ids, 512));
        assert_eq!(logits[0], logits[1], "on {}", device.name());
        // Greedy steps read a row per token, or are queued without the host.
        for table in [TablePlace::Host, TablePlace::Gpu] {
            let model = model_with(name, &device, table);
            let mut session = model.session(&exact()).expect("a session");
            session.extend(&ids).expect("the prompt fits");
            for wanted in golden.ids("medium.greedy").into_iter().take(8) {
                let token = block_on(session.next(DeviceSampling::Greedy)).expect("a token");
                assert_eq!(token, Some(wanted), "{table:?} on {}", device.name());
            }
        }
    }
}

#[test]
fn pages_place_the_table_on_any_real_gpu() {
    for device in devices() {
        let on_gpu = model_with("micro-e2b-Q8_0", &device, TablePlace::IfItFits).table_on_gpu();
        let is_real = matches!(&device, Device::Gpu(gpu) if !gpu.is_software());
        assert_eq!(on_gpu, is_real, "on {}", device.name());
    }
}

#[test]
fn table_rows_are_read_once_per_pass() {
    for device in devices().into_iter().filter(|device| matches!(device, Device::Gpu(_))) {
        let source = file("micro-e2b-Q8_0");
        let gguf = block_on(Gguf::open(source.clone())).expect("the file opens");
        let table = gguf.tensor("per_layer_token_embd.weight").expect("a table");
        let model = model_of(source.clone(), &device, TablePlace::Host);
        let before = source.read.get();
        logits(&model, &[2, 5, 5, 6, 2, 5], 512);
        // Three distinct rows in the prefill pass, one in the pass of the last token.
        assert_eq!(source.read.get() - before, 4 * table.nbytes() / table.rows());
    }
}

/// Benchmarks queue steps until the context is full; the session's tokens do not change.
#[test]
fn queued_steps_do_not_change_the_session() {
    let name = "micro-e2b-Q8_0";
    let golden = Golden::of(name);
    let (ids, greedy) = (golden.ids("long.ids"), golden.ids("long.greedy"));
    for device in devices() {
        let model = model(name, &device);
        let context = Some(ids.len() + greedy.len());
        let mut session = model.session(&SessionOptions { context, ..exact() }).expect("a session");
        session.extend(&ids).expect("the prompt fits");
        // Each step queues all that fit: a few steps suffice.
        for (done, wanted) in greedy.iter().enumerate().take(5) {
            let mut queued = 0;
            while block_on(session.queue_step(DeviceSampling::Greedy)).expect("queued") {
                queued += 1;
            }
            assert_eq!(queued, greedy.len() - done + 1, "on {}", device.name());
            let token = block_on(session.next(DeviceSampling::Greedy)).expect("a token");
            assert_eq!(token, Some(*wanted), "on {}", device.name());
        }
    }
}
