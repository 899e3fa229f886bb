//! Sessions: sharing a model, truncation, forks, saving, the context limit.

use pollster::block_on;
use rullama_engine::executor::Device;
use rullama_runtime::{
    RuntimeError, Session,
    model::CacheType,
    session::{DeviceSampling, DraftOptions, DraftSource, MAX_IN_FLIGHT, SessionOptions},
};

use crate::golden::{Golden, devices, exact, model};

const NAME: &str = "micro-e2b-Q8_0";

fn greedy(session: &mut Session, count: usize) -> Vec<u32> {
    let mut token = || block_on(session.next(DeviceSampling::Greedy)).expect("a token");
    (0..count).map_while(|_| token()).collect()
}

#[test]
fn sessions_share_a_model_and_do_not_disturb_each_other() {
    for device in devices() {
        let (model, golden) = (model(NAME, &device), Golden::of(NAME));
        let mut sessions = ["short", "medium"].map(|prompt| {
            let mut session = model.session(&exact()).expect("a session");
            session.extend(&golden.ids(&format!("{prompt}.ids"))).expect("the prompt fits");
            session
        });
        let mut made = [vec![], vec![]];
        for _ in 0..10 {
            for (session, made) in sessions.iter_mut().zip(&mut made) {
                made.extend(greedy(session, 1));
            }
        }
        assert_eq!(made[0], golden.ids("short.greedy")[..10], "on {}", device.name());
        assert_eq!(made[1], golden.ids("medium.greedy")[..10], "on {}", device.name());
    }
}

#[test]
fn common_prefixes_are_reused() {
    for device in devices() {
        let (model, golden) = (model(NAME, &device), Golden::of(NAME));
        let ids = golden.ids("medium.ids");
        let mut session = model.session(&exact()).expect("a session");
        session.extend(&ids[..30]).expect("it fits");
        greedy(&mut session, 5);
        // 30 common tokens; 29 of them and the generated ones were cached.
        assert_eq!(session.set_tokens(&ids).expect("it fits"), 30);
        assert_eq!(
            greedy(&mut session, 10),
            golden.ids("medium.greedy")[..10],
            "on {}",
            device.name()
        );
        // The same again: only the last token.
        assert_eq!(session.set_tokens(&ids).expect("it fits"), ids.len() - 1);
        assert_eq!(greedy(&mut session, 3), golden.ids("medium.greedy")[..3]);
    }
}

#[test]
fn output_is_the_same_across_the_short_context_limit() {
    for device in devices() {
        let model = model(NAME, &device);
        let ids = Golden::of(NAME).ids("medium.ids");
        // Sampling graphs change kernels at position 1,024, logit graphs do not.
        let prompt: Vec<u32> = ids.iter().copied().cycle().take(1020).collect();
        let options = SessionOptions { context: Some(2048), ..exact() };
        let session = || {
            let mut session = model.session(&options).expect("a session");
            session.extend(&prompt).expect("the prompt fits");
            session
        };
        let (mut alone, mut drafted, mut slow) = (session(), session(), session());
        let near = block_on(alone.step_cost(DeviceSampling::Greedy)).expect("a graph").dispatches;
        let chosen = greedy(&mut alone, 12);
        let far = block_on(alone.step_cost(DeviceSampling::Greedy)).expect("a graph").dispatches;
        assert!(near <= far, "{near} dispatches, then {far}");
        let most = DraftOptions { most: 5, adapt: false, ..DraftOptions::new(DraftSource::Text) };
        drafted.draft(Some(most)).expect("it fits");
        assert_eq!(greedy(&mut drafted, 12), chosen, "on {}", device.name());
        for token in chosen {
            let logits = block_on(slow.logits()).expect("logits");
            let best = (0u32..).zip(&logits).max_by(|a, b| a.1.total_cmp(b.1)).expect("logits").0;
            assert_eq!(best, token, "after {} tokens on {}", slow.tokens().len(), device.name());
            slow.extend(&[token]).expect("it fits");
        }
    }
}

#[test]
fn truncation_is_exact_after_a_ring_buffer_wrapped() {
    for device in devices() {
        let (model, golden) = (model(NAME, &device), Golden::of(NAME));
        let ids = golden.ids("medium.ids");
        for (chunk, kept) in [(512, true), (4, false)] {
            let mut session =
                model.session(&SessionOptions { chunk, ..exact() }).expect("a session");
            session.extend(&ids).expect("it fits");
            greedy(&mut session, 60);
            session.rewind(ids.len());
            // A ring buffer of window + 4 slots cannot go back 60 tokens: everything is recomputed, with the same result.
            assert_eq!(session.cached() > 0, kept, "chunks of {chunk}");
            assert_eq!(
                greedy(&mut session, 20),
                golden.ids("medium.greedy")[..20],
                "chunks of {chunk} on {}",
                device.name()
            );
        }
    }
}

#[test]
fn forks_are_independent() {
    for device in devices() {
        let (model, golden) = (model(NAME, &device), Golden::of(NAME));
        let wanted = golden.ids("short.greedy");
        let mut first = model.session(&exact()).expect("a session");
        first.extend(&golden.ids("short.ids")).expect("it fits");
        greedy(&mut first, 8);
        let mut second = block_on(first.fork()).expect("a copy");
        second.extend(&[7, 8, 9]).expect("it fits");
        greedy(&mut second, 8);
        assert_eq!(greedy(&mut first, 8), wanted[8..16], "on {}", device.name());
        second.rewind(first.tokens().len() - 8);
        assert_eq!(greedy(&mut second, 8), wanted[8..16], "on {}", device.name());
    }
}

#[test]
fn saved_sessions_continue_on_any_device() {
    let golden = Golden::of(NAME);
    let wanted = golden.ids("medium.greedy");
    for cache in [CacheType::F32, CacheType::F16] {
        let saved: Vec<Vec<u8>> = devices()
            .iter()
            .map(|device| {
                let options = SessionOptions { cache, ..exact() };
                let mut session = model(NAME, device).session(&options).expect("a session");
                session.extend(&golden.ids("medium.ids")).expect("it fits");
                greedy(&mut session, 4);
                block_on(session.save()).expect("bytes")
            })
            .collect();
        for device in devices() {
            let model = model(NAME, &device);
            for bytes in &saved {
                let mut session = block_on(model.restore(bytes)).expect("it belongs to the model");
                assert!(session.cached() > 40);
                assert_eq!(
                    greedy(&mut session, 8),
                    wanted[4..12],
                    "{cache:?} on {}",
                    device.name()
                );
            }
        }
    }
}

#[test]
fn broken_and_foreign_saves_are_refused() {
    let mine = model(NAME, &Device::Cpu);
    let mut session = mine.session(&exact()).expect("a session");
    session.extend(&[2, 5, 6]).expect("it fits");
    greedy(&mut session, 2);
    let bytes = block_on(session.save()).expect("bytes");
    let other = model("micro-e2b-Q4_0", &Device::Cpu);
    let refused = block_on(other.restore(&bytes)).expect_err("another model's");
    assert_eq!(refused.to_string(), "the saved session belongs to another model or adapter");
    for cut in (0..bytes.len()).step_by(97) {
        block_on(mine.restore(&bytes[..cut])).expect_err("truncated");
    }
    for at in (0..120).filter(|at| *at < bytes.len()) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x55;
        // Changed token ids may be valid; everything else is detected. Nothing may panic.
        let _ = block_on(mine.restore(&changed));
    }
}

/// Offset of the sizes of a saved session: context, chunk, block, in_flight, filled and written, eight bytes each.
const SIZES: usize = 8 + 32 + 1;

fn with_size(saved: &[u8], index: usize, value: u64) -> Vec<u8> {
    let mut changed = saved.to_vec();
    changed[SIZES + index * 8..][..8].copy_from_slice(&value.to_le_bytes());
    changed
}

#[test]
fn sizes_of_saved_sessions_are_bounded() {
    let model = model(NAME, &Device::Cpu);
    let mut session = model.session(&exact()).expect("a session");
    session.extend(&[2, 5, 6]).expect("it fits");
    let wanted = greedy(&mut session, 2);
    session.rewind(3);
    let saved = block_on(session.save()).expect("bytes");
    let huge = [u64::MAX, u64::MAX / 2, 1 << 62, 1 << 33, u64::MAX - 511];
    for value in huge {
        for index in [0, 1, 3, 4, 5] {
            let refused = block_on(model.restore(&with_size(&saved, index, value)));
            assert!(refused.is_err(), "size {index} of {value}");
        }
        // The block size is clamped to the context.
        let mut restored = block_on(model.restore(&with_size(&saved, 2, value))).expect("restored");
        assert_eq!(greedy(&mut restored, 2), wanted);
        let options =
            SessionOptions { block: value as usize, in_flight: value as usize, ..exact() };
        let mut session = model.session(&options).expect("a session");
        assert!(session.steps_in_flight() <= MAX_IN_FLIGHT);
        session.extend(&[2, 5, 6]).expect("it fits");
        assert_eq!(greedy(&mut session, 2), wanted);
    }
    assert!(block_on(model.restore(&with_size(&saved, 1, 0))).is_err(), "a chunk of 0 tokens");
}

#[test]
fn the_context_is_a_hard_limit() {
    for device in devices() {
        let model = model(NAME, &device);
        let mut session =
            model.session(&SessionOptions { context: Some(20), ..exact() }).expect("a session");
        let long: Vec<u32> = (0..21).map(|i| i + 5).collect();
        match session.extend(&long) {
            Err(RuntimeError::ContextFull { tokens: 21, context: 20, trained: 4096 }) => {}
            other => panic!("{other:?}"),
        }
        assert!(session.tokens().is_empty(), "nothing was appended");
        session.extend(&long[..17]).expect("it fits");
        assert_eq!(greedy(&mut session, 10).len(), 3, "20 tokens in all, on {}", device.name());
        assert_eq!(block_on(session.next(DeviceSampling::Greedy)).expect("no failure"), None);
    }
    let model = model(NAME, &Device::Cpu);
    for context in [0, 4097] {
        let refused = model.session(&SessionOptions { context: Some(context), ..exact() });
        assert!(matches!(refused, Err(RuntimeError::BadContext { .. })));
    }
    let mut session = model.session(&exact()).expect("a session");
    assert!(matches!(
        session.extend(&[640]),
        Err(RuntimeError::NoSuchToken { id: 640, count: 640 })
    ));
    assert!(matches!(
        block_on(session.next(DeviceSampling::Greedy)),
        Err(RuntimeError::EmptyPrompt)
    ));
}

#[test]
fn q8_caches_are_close_to_exact() {
    let golden = Golden::of("tiny-e2b-Q4_K_M");
    for device in devices() {
        let model = model("tiny-e2b-Q4_K_M", &device);
        for (cache, most) in [(CacheType::F16, 0.05), (CacheType::Q8, 0.5)] {
            let mut session =
                model.session(&SessionOptions { cache, ..exact() }).expect("a session");
            session.extend(&golden.ids("medium.ids")).expect("it fits");
            let made = block_on(session.logits()).expect("logits");
            let all = golden.f32("medium.logits");
            let wanted = &all[all.len() - made.len()..];
            let worst = made.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < most, "{cache:?} on {}: off by {worst}", device.name());
        }
    }
}
