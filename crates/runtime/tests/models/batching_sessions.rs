//! Sessions that join a scheduler in the middle of a conversation generate what each generates alone, and continue alone afterwards.

use std::collections::BTreeMap;

use pollster::block_on;
use rullama_engine::executor::Device;
use rullama_runtime::{
    Model, RuntimeError, Scheduler, Session,
    adapters::FactorType,
    generate::{Completion, Event, Finish, Generation, Prompt},
    model::CacheType,
    scheduler::{RequestId, SchedulerOptions, Update},
    session::SessionOptions,
};

use crate::{
    adapters::adapter,
    batching::{Ask, Random, ask, form, greedy},
    golden::{devices, model},
};

const CONTEXT: usize = 320;
/// Turns of a conversation; the sessions join the scheduler in the second one.
const TURNS: usize = 3;

fn session(model: &Model, cache: CacheType) -> Session {
    let context = Some(CONTEXT);
    let options = SessionOptions { context, cache, chunk: 32, ..SessionOptions::default() };
    model.session(&options).expect("a session")
}

/// A conversation: its session, and what was said so far, with placeholders of images and audio.
struct Talk {
    ask: Ask,
    said: Vec<u32>,
    session: Option<Session>,
    turns: Vec<Vec<Event>>,
}

impl Talk {
    fn new(model: &Model, ask: Ask, cache: CacheType) -> Self {
        let said = ask.tokens.clone();
        Self { ask, said, session: Some(session(model, cache)), turns: Vec::new() }
    }

    /// Begins the next reply.
    fn begin(&mut self, model: &Model) -> Completion {
        let prompt = Prompt { media: self.ask.media.clone(), ..Prompt::tokens(self.said.clone()) };
        let Ask { options, seed, json, .. } = &self.ask;
        let session = self.session.as_mut().expect("at home");
        let generation = match json {
            false => Generation::new(session, model, &prompt, options, *seed),
            true => {
                let form = form(model).constraint();
                Generation::constrained(session, model, &prompt, options, *seed, form)
            }
        };
        self.turns.push(Vec::new());
        generation.expect("it begins").into_completion()
    }

    /// Generates alone, at most so many tokens; the completion, unless it has ended.
    fn alone(&mut self, completion: Completion, most: usize) -> Option<Completion> {
        let session = self.session.as_mut().expect("at home");
        let mut generation = Generation::resume(session, completion);
        let events = self.turns.last_mut().expect("it has begun");
        for _ in 0..most {
            let more = block_on(generation.step()).expect("a step");
            events.extend(std::iter::from_fn(|| generation.ready()));
            if !more {
                return None;
            }
        }
        Some(generation.into_completion())
    }

    /// Ends a turn: what was generated, and a few more tokens to reply to.
    fn end(&mut self) {
        let session = self.session.as_ref().expect("at home");
        let added = &session.tokens()[self.said.len()..];
        self.said.extend(added);
        self.said.extend((0..9).map(|i| 7 + i * 5));
    }

    fn turn_alone(&mut self, model: &Model) {
        let completion = self.begin(model);
        assert!(self.alone(completion, usize::MAX).is_none());
        self.end();
    }
}

fn room_for(scheduler: &mut Scheduler, count: usize) {
    if scheduler.room() < count {
        assert!(block_on(scheduler.make_room(count.next_power_of_two())).expect("a device"));
    }
}

/// The second turn of all conversations, in a scheduler that grows with them: the first ones begin alone. Returns how many decode passes it took.
fn together(model: &Model, talks: &mut [Talk]) -> u64 {
    let first = talks[0].session.as_ref().expect("at home");
    let options = SchedulerOptions::for_sessions(first, 2);
    let mut scheduler = Scheduler::new(model, &options).expect("a scheduler");
    let mut ids: BTreeMap<RequestId, usize> = BTreeMap::new();
    for step in 0.. {
        for (index, talk) in talks.iter_mut().enumerate() {
            if talk.ask.arrives != step {
                continue;
            }
            let completion = talk.begin(model);
            if let Some(completion) = talk.alone(completion, index % 4) {
                room_for(&mut scheduler, ids.len() + 1);
                let session = talk.session.take().expect("at home");
                ids.insert(scheduler.join(session, completion), index);
            }
        }
        if step == 4 && matches!(model.device(), Device::Gpu(_)) {
            let room = scheduler.room();
            assert!(!block_on(scheduler.make_room(1 << 20)).expect("a device"), "gigabytes");
            assert_eq!(scheduler.room(), room, "those that run go on");
        }
        let mut sink = |id: RequestId, update| match update {
            Update::Event(event) => talks[ids[&id]].turns[1].push(event),
            Update::Failed(error) => panic!("a request failed: {error}"),
            _ => {}
        };
        let busy = block_on(scheduler.step(&mut sink)).expect("a step");
        for (id, index) in &ids {
            if let Some(returned) = scheduler.returned(*id) {
                talks[*index].session = Some(returned.session);
            }
        }
        if !busy && talks.iter().all(|talk| talk.ask.arrives <= step) {
            return scheduler.stats().decode_passes;
        }
        assert!(step < 5000, "requests end");
    }
    unreachable!("steps are counted")
}

fn check(model: &Model, cache: CacheType, seed: u64, count: usize) {
    let mut random = Random(seed);
    let sizes = (model.config().vocabulary, model.config().width);
    let asks: Vec<Ask> =
        (0..count).map(|_| Ask { cancelled: None, ..ask(&mut random, sizes) }).collect();
    let talks = || asks.iter().map(|ask| Talk::new(model, ask.clone(), cache)).collect::<Vec<_>>();
    let (mut alone, mut joined) = (talks(), talks());
    for talk in &mut alone {
        (0..TURNS).for_each(|_| talk.turn_alone(model));
    }
    joined.iter_mut().for_each(|talk| talk.turn_alone(model));
    together(model, &mut joined);
    for (number, (alone, mut joined)) in alone.into_iter().zip(joined).enumerate() {
        joined.end();
        joined.turn_alone(model);
        let what = format!("conversation {number} of seed {seed}, {cache:?}: {:?}", joined.ask);
        // Log-probabilities and tokens from the cache are equal, too.
        assert_eq!(joined.turns, alone.turns, "{what}");
        assert_eq!(joined.said, alone.said, "{what}");
    }
}

/// Heads of the smallest models are too short for this cache format.
const WITH_Q8: &str = "tiny-e2b-Q4_K_M";

#[test]
fn sessions_continue_in_one_pass_as_alone_on_the_cpu() {
    for (seed, name) in (1..).zip(["micro-e2b-Q8_0", "micro-moe-BF16", "micro-dense-BF16"]) {
        check(&model(name, &Device::Cpu), CacheType::F16, seed, 6);
    }
    check(&model(WITH_Q8, &Device::Cpu), CacheType::Q8, 4, 3);
}

#[test]
fn sessions_continue_in_one_pass_as_alone_on_a_gpu() {
    for device in devices().into_iter().filter(|device| matches!(device, Device::Gpu(_))) {
        let e2b = model("micro-e2b-Q8_0", &device);
        check(&e2b, CacheType::F32, 7, 5);
        check(&e2b, CacheType::F16, 8, 3);
        check(&model(WITH_Q8, &device), CacheType::Q8, 9, 2);
    }
}

/// A long reply leaves the window and the ring buffers of sliding layers behind, in the pool and in the session.
#[test]
fn a_long_reply_in_a_scheduler_leaves_a_session_that_goes_on_and_can_be_saved() {
    for device in devices() {
        let model = model("micro-e2b-Q8_0", &device);
        let mut talks: Vec<Talk> = (0..4_u32)
            .map(|i| {
                let mut ask =
                    greedy((0..20).map(|j| 5 + (i % 2 * 31 + j * 7) % 150).collect(), 120);
                ask.options.ignore_eos = true;
                Talk::new(&model, ask, CacheType::F16)
            })
            .collect();
        let (joined, alone) = talks.split_at_mut(2);
        for talk in alone.iter_mut() {
            talk.turn_alone(&model);
            talk.turn_alone(&model);
        }
        joined.iter_mut().for_each(|talk| talk.turn_alone(&model));
        let passes = together(&model, joined);
        // Some tokens came before they joined; each pass has one of both.
        assert!((110..=122).contains(&passes), "{passes} passes on {}", device.name());
        for (joined, alone) in joined.iter_mut().zip(alone) {
            joined.end();
            assert_eq!(joined.said, alone.said, "{}", device.name());
            let saved = block_on(joined.session.as_mut().expect("at home").save()).expect("saved");
            joined.session = Some(block_on(model.restore(&saved)).expect("restored"));
            // A beginning of what was said: the caches are cut, or computed anew.
            for talk in [&mut *joined, alone] {
                talk.said.truncate(200);
                talk.turn_alone(&model);
            }
            assert_eq!(joined.turns, alone.turns, "{}", device.name());
        }
    }
}

#[test]
fn a_cancelled_reply_leaves_its_session_and_the_others() {
    for device in devices() {
        let model = model("micro-e2b-Q8_0", &device);
        let asks =
            [0, 1, 2].map(|i| greedy((0..30).map(|j| 5 + (i * 31 + j * 7) % 150).collect(), 16));
        let mut talks = asks.map(|ask| Talk::new(&model, ask, CacheType::F16));
        let mut alone =
            [0, 2].map(|i: usize| Talk::new(&model, talks[i].ask.clone(), CacheType::F16));
        alone.iter_mut().for_each(|talk| talk.turn_alone(&model));
        let options = SchedulerOptions::for_sessions(talks[0].session.as_ref().unwrap(), 4);
        let mut scheduler = Scheduler::new(&model, &options).expect("a scheduler");
        let ids = talks.each_mut().map(|talk| {
            let completion = talk.begin(&model);
            scheduler.join(talk.session.take().expect("at home"), completion)
        });
        let mut tokens = [0; 3];
        let mut finish = [None; 3];
        let mut busy = true;
        while busy {
            let mut sink = |id, update| {
                let index = ids.iter().position(|known| *known == id).expect("known");
                match update {
                    Update::Token(_) => tokens[index] += 1,
                    Update::Event(Event::Done(done)) => finish[index] = Some(done.finish),
                    _ => {}
                }
            };
            busy = block_on(scheduler.step(&mut sink)).expect("a step");
            if tokens[1] == 3 && finish[1].is_none() {
                busy |= scheduler.cancel(ids[1]);
            }
        }
        assert_eq!(finish[1], Some(Finish::Cancelled));
        for (talk, id) in talks.iter_mut().zip(ids) {
            let returned = scheduler.returned(id).expect("it has ended");
            assert!(returned.batched_tokens > 0);
            talk.session = Some(returned.session);
            talk.end();
        }
        for (talk, alone) in [&talks[0], &talks[2]].into_iter().zip(&alone) {
            assert_eq!(talk.said, alone.said, "{}", device.name());
        }
        assert_eq!(talks[1].said.len(), 30 + tokens[1] + 9);
        // What it had generated is still cached.
        let completion = talks[1].begin(&model);
        let cached = talks[1].session.as_ref().unwrap().cached();
        assert_eq!(cached, 30 + tokens[1] - 1, "{}", device.name());
        talks[1].alone(completion, usize::MAX);
    }
}

#[test]
fn sessions_with_adapters_join_and_other_sessions_are_refused() {
    let file = adapter("micro-e2b-lora-F32");
    let model = model("micro-e2b-Q8_0", &Device::Cpu);
    let adapters = block_on(model.attach(&[(&file, 1.0)], FactorType::F32)).expect("they fit");
    let asks = [0, 1].map(|i| greedy((0..30).map(|j| 5 + (i * 31 + j * 7) % 150).collect(), 8));
    let talks = || {
        let mut talks = asks.clone().map(|ask| Talk::new(&model, ask, CacheType::F32));
        let adapted = talks[1].session.as_mut().expect("at home");
        adapted.set_adapters(Some(&adapters)).expect("adapters of this model");
        talks
    };
    let (mut alone, mut joined) = (talks(), talks());
    for talk in &mut alone {
        talk.turn_alone(&model);
        talk.turn_alone(&model);
    }
    joined.iter_mut().for_each(|talk| talk.turn_alone(&model));
    together(&model, &mut joined);
    for (alone, mut joined) in alone.into_iter().zip(joined) {
        joined.end();
        assert_eq!((joined.turns, joined.said), (alone.turns, alone.said));
    }
    let mut odd = Talk::new(&model, greedy(vec![5, 6, 7], 4), CacheType::F16);
    let completion = odd.begin(&model);
    let options = SchedulerOptions::for_sessions(&session(&model, CacheType::F32), 2);
    let mut scheduler = Scheduler::new(&model, &options).expect("a scheduler");
    let id = scheduler.join(odd.session.take().expect("at home"), completion);
    let mut failed = None;
    block_on(scheduler.step(&mut |_, update| failed = Some(update))).expect("a step");
    assert!(
        matches!(&failed, Some(Update::Failed(error)) if matches!(**error, RuntimeError::OtherSessions)),
        "{failed:?}"
    );
    assert!(scheduler.returned(id).is_some() && scheduler.returned(id).is_none());
}
