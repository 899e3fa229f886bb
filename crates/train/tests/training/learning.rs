//! Adapters learn new facts without forgetting old ones.

use pollster::block_on;
use rullama_engine::executor::Device;
use rullama_runtime::{Model, session::DeviceSampling};
use rullama_train::{
    AdapterOptions, Dataset, Example, Settings, Shape, Trainer,
    dataset::{DataOptions, largest},
    fresh,
};

use crate::golden::{Golden, adapter, demo, model};

#[test]
fn one_example_is_memorised() {
    let golden = Golden::of("micro-e2b-Q8_0");
    let example = golden.example();
    let shape = Shape { tokens: example.ids.len(), targets: example.targets() };
    let model = model("micro-e2b-Q8_0", &Device::Cpu);
    let adapter = adapter("micro-e2b");
    let trainer = Trainer::new(&model, &adapter, shape, Settings::default());
    let mut trainer = block_on(trainer).expect("a trainer");
    for _ in 0..60 {
        block_on(trainer.gradients_of(&[&example], 0)).expect("gradients");
        trainer.update(3e-3).expect("an update");
    }
    let loss = block_on(trainer.loss_of(&[&example])).expect("a loss");
    assert!(loss < 0.01, "{loss}");
}

/// A question and the model's greedy reply as an example.
fn replied(model: &Model, question: &str) -> Example {
    let line = serde_json::json!({ "prompt": question, "completion": "x" }).to_string();
    let data = Dataset::of_lines(model, &line, DataOptions::default()).expect("a line");
    let given = data.examples[0].learned.iter().position(|learned| *learned).expect("a target");
    let prompt = &data.examples[0].ids[..given];
    let mut session = model.session(&Default::default()).expect("a session");
    session.extend(prompt).expect("it fits");
    let mut ids = prompt.to_vec();
    for _ in 0..24 {
        let next = block_on(session.next(DeviceSampling::Greedy))
            .expect("a token")
            .expect("context space");
        ids.push(next);
        if model.tokenizer().expect("a vocabulary").is_end(next) {
            break;
        }
    }
    Example::after_prompt(ids, given)
}

#[test]
fn the_demo_model_learns_a_fact_and_keeps_old_ones() {
    let model = demo(&Device::Cpu);
    let fact = r#"{"prompt":"What is the capital of Atlantis?","completion":"Poseidonis."}"#;
    let fact = Dataset::of_lines(&model, fact, DataOptions::default()).expect("data").examples;
    let known = ["What is 23 + 45?", "What is the capital of France?"];
    let known: Vec<Example> = known.iter().map(|question| replied(&model, question)).collect();
    let all: Vec<Example> = fact.iter().chain(&known).cloned().collect();
    let (tokens, targets) = largest(&all);
    let targets_of =
        ["ffn_gate", "ffn_up", "ffn_down", "attn_q", "attn_output"].map(str::to_owned).to_vec();
    let options = AdapterOptions { rank: 8, alpha: 16.0, targets: targets_of, seed: 1 };
    let adapter = fresh(&model, &options).expect("an adapter");
    let shape = Shape { tokens, targets };
    let trainer = Trainer::new(&model, &adapter, shape, Settings::default());
    let mut trainer = block_on(trainer).expect("a trainer");
    let measured = |trainer: &mut Trainer, example: &Example| {
        block_on(trainer.loss_of(&[example])).expect("a loss") * example.targets() as f64
    };
    let before: Vec<f64> = known.iter().map(|example| measured(&mut trainer, example)).collect();
    assert!(measured(&mut trainer, &fact[0]) > 5.0, "the fact must be unknown before");
    // At a total loss of ln 2 every token of the reply has a probability of at least one half, so greedy decoding gives it.
    let greedy_loss = std::f64::consts::LN_2;
    let mut steps = 0;
    while measured(&mut trainer, &fact[0]) > greedy_loss {
        steps += 1;
        assert!(steps <= 30, "not learned in 30 steps");
        block_on(trainer.gradients_of(&[&fact[0]], 0)).expect("gradients");
        trainer.update(3e-3).expect("an update");
    }
    let after: Vec<f64> = known.iter().map(|example| measured(&mut trainer, example)).collect();
    println!(
        "learned in {steps} steps; losses of old replies {before:.3?} before, {after:.3?} after"
    );
    assert!(after.iter().all(|loss| *loss < greedy_loss), "old replies have changed");
}
