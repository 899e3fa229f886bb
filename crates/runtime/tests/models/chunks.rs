//! A prompt gives the same logits however it is cut into runs, past the window and in rings that have wrapped.

use pollster::block_on;
use rullama_engine::executor::Device;
use rullama_gguf::Gguf;
use rullama_runtime::{
    Model,
    model::TablePlace,
    session::{DeviceSampling, SessionOptions},
};

use crate::golden::{Golden, devices, exact, file, model, model_of, model_with};

/// Every run rounds alike up to the order of sums.
const TOLERANCE: f32 = 1e-3;

fn logits(model: &Model, ids: &[u32], chunk: usize) -> Vec<f32> {
    let options = SessionOptions { chunk, ..exact() };
    let mut session = model.session(&options).expect("a session");
    session.extend(ids).expect("the prompt fits");
    block_on(session.logits()).expect("logits")
}

fn assert_close(made: &[f32], wanted: &[f32], what: &str) {
    let worst = made.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
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
            // One by one they are computed where answers are.
            for chunk in [7, 32, 256] {
                let what = format!("{name} in runs of {chunk} on {}", device.name());
                assert_close(&logits(&model, &ids, chunk), wanted, &what);
            }
        }
    }
}

/// The window is 16 and runs have at most 7 tokens, so the ring of 23 slots wraps many times in 264 tokens.
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
fn the_table_may_be_anywhere() {
    let name = "tiny-e2b-Q4_K_M";
    let golden = Golden::of(name);
    let ids = golden.ids("medium.ids");
    for device in devices() {
        let made = [TablePlace::Host, TablePlace::Gpu]
            .map(|table| logits(&model_with(name, &device, table), &ids, 512));
        assert_eq!(made[0], made[1], "on {}", device.name());
        // Greedy steps fetch a row per token, or are queued ahead.
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
fn rows_of_the_table_are_read_once_in_a_run() {
    for device in devices().into_iter().filter(|device| matches!(device, Device::Gpu(_))) {
        let source = file("micro-e2b-Q8_0");
        let gguf = block_on(Gguf::open(source.clone())).expect("the file opens");
        let table = gguf.tensor("per_layer_token_embd.weight").expect("a table");
        let model = model_of(source.clone(), &device, TablePlace::Host);
        let before = source.read.get();
        logits(&model, &[2, 5, 5, 6, 2, 5], 512);
        // Three of all but the last, which has a run of its own.
        assert_eq!(source.read.get() - before, 4 * table.nbytes() / table.rows());
    }
}

/// Queued to see how long that takes, as far as there is room, between tokens that count.
#[test]
fn steps_that_are_only_queued_count_for_nothing() {
    let name = "micro-e2b-Q8_0";
    let golden = Golden::of(name);
    let (ids, greedy) = (golden.ids("long.ids"), golden.ids("long.greedy"));
    for device in devices() {
        let model = model(name, &device);
        let context = Some(ids.len() + greedy.len());
        let mut session = model.session(&SessionOptions { context, ..exact() }).expect("a session");
        session.extend(&ids).expect("the prompt fits");
        for (done, wanted) in greedy.iter().enumerate() {
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
