//! SmolLM2-135M-Instruct, a model with released weights, against an independent implementation in float64. `cargo xtask real-model` fetches
//! the file and names it in the variable below; without it, there is nothing to test.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    rc::Rc,
};

use pollster::block_on;
use rullama_chat::{ChatError, Conversation, Message};
use rullama_engine::{executor::Device, gpu::Gpu};
use rullama_gguf::Gguf;
use rullama_runtime::{
    Model, RuntimeError,
    generate::{ChatOptions, prompt_of},
    model::{CacheType, Capability, LoadOptions, capabilities_of},
    session::{DeviceSampling, SessionOptions},
};
use rullama_source::FileSource;
use rullama_testkit::golden;
use rullama_tokenizer::{Render, Special};
use serde_json::Value;

/// Environment variable with the model's path.
const VARIABLE: &str = "RULLAMA_REAL_MODEL";
/// Logits of float32 activations differ from float64 ones by at most 1e-3: half of this for each of two tokens.
const CLEAR: f64 = 2e-3;
/// Tokens of an answer that are compared on the CPU.
const TOKENS: usize = 24;
/// Answers, tokens and scored tokens on a software GPU: more take minutes. Real GPUs do all that the CPU does.
const SOFTWARE_ANSWERS: usize = 2;
const SOFTWARE_TOKENS: usize = 8;
const SOFTWARE_SCORED: usize = 64;
/// What a loss may be off.
const LOSS: f64 = 1e-3;

fn goldens() -> Value {
    serde_json::from_slice(&golden("real/smollm2.json")).expect("JSON")
}

/// The model on the CPU; nothing where there is no file.
fn on_the_cpu() -> Option<Model> {
    Some(load(&file()?, Device::Cpu))
}

/// The model on the first GPU; nothing where there is no file or no GPU.
fn on_the_gpu() -> Option<Model> {
    Some(load(&file()?, Device::Gpu(gpu()?)))
}

fn gpu() -> Option<Gpu> {
    block_on(Gpu::all()).expect("adapters give devices").into_iter().next()
}

fn is_software(model: &Model) -> bool {
    matches!(model.device(), Device::Gpu(gpu) if gpu.is_software())
}

#[expect(clippy::print_stdout, reason = "who runs the test sees why nothing is tested")]
fn file() -> Option<PathBuf> {
    let path = std::env::var_os(VARIABLE);
    if path.is_none() {
        println!("skipped: `cargo xtask real-model` fetches the model and sets {VARIABLE}");
    }
    path.map(PathBuf::from)
}

fn load(path: &Path, device: Device) -> Model {
    let source = FileSource::open(path).expect("the file opens");
    let gguf = block_on(Gguf::open(Rc::new(source))).expect("a GGUF file");
    let mut go_on = |_| ControlFlow::Continue(());
    block_on(Model::load(gguf, device, &LoadOptions::default(), &mut go_on)).expect("it loads")
}

/// Options with exact (f32) KV caches.
fn exact() -> SessionOptions {
    SessionOptions { cache: CacheType::F32, context: Some(640), ..SessionOptions::default() }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|x| x.as_f64().expect("a number")).collect()
}

fn ids(value: &Value) -> Vec<u32> {
    numbers(value).into_iter().map(|id| id as u32).collect()
}

/// Greedy tokens equal the reference's where its margin is clear.
fn check_greedy_tokens(model: &Model, answers: usize, tokens: usize) {
    for case in goldens()["greedy"].as_array().expect("cases").iter().take(answers) {
        let what = format!("{} on {}", case["name"], model.device().name());
        let tokenizer = model.tokenizer().expect("a vocabulary");
        let prompt = case["prompt"].as_str().expect("a prompt");
        assert_eq!(tokenizer.encode(prompt, Special::Parse), ids(&case["ids"]), "{what}");
        let mut session = model.session(&exact()).expect("a session");
        session.extend(&ids(&case["ids"])).expect("it fits");
        let steps = ids(&case["greedy"]).into_iter().zip(numbers(&case["margin"]));
        for (i, (wanted, margin)) in steps.enumerate().take(tokens) {
            if margin < CLEAR {
                break;
            }
            let token = block_on(session.next(DeviceSampling::Greedy)).expect("a token");
            assert_eq!(token, Some(wanted), "{what}: token {i}");
        }
    }
}

#[test]
fn greedy_tokens_on_the_cpu() {
    on_the_cpu().iter().for_each(|model| check_greedy_tokens(model, usize::MAX, TOKENS));
}

/// A part of the above that takes seconds, for every test run.
#[test]
fn first_answers_on_the_cpu() {
    on_the_cpu().iter().for_each(|model| check_greedy_tokens(model, 2, 8));
}

#[test]
fn greedy_tokens_on_the_gpu() {
    on_the_gpu().iter().for_each(|model| {
        let (answers, tokens) = match is_software(model) {
            true => (SOFTWARE_ANSWERS, SOFTWARE_TOKENS),
            false => (usize::MAX, TOKENS),
        };
        check_greedy_tokens(model, answers, tokens);
    });
}

/// The losses of the beginning of an English text, and the reference's.
fn losses(model: &Model, scored: usize) -> (Vec<f64>, Vec<f64>) {
    let goldens = &goldens()["nll"];
    let (mut tokens, mut wanted) = (ids(&goldens["ids"]), numbers(&goldens["oracle"]));
    let what = model.device().name().to_owned();
    let tokenizer = model.tokenizer().expect("a vocabulary");
    let text = goldens["text"].as_str().expect("a text");
    // The text is longer than the scored tokens.
    assert!(tokenizer.encode(text, Special::None).starts_with(&tokens), "{what}");
    tokens.truncate(scored + 1);
    wanted.truncate(scored);
    let mut session = model.session(&exact()).expect("a session");
    session.extend(&tokens).expect("it fits");
    let mut logits = Vec::new();
    block_on(session.all_logits(&mut |rows| logits.extend_from_slice(rows))).expect("logits");
    let rows = logits.chunks_exact(model.config().vocabulary).zip(&tokens[1..]);
    let losses: Vec<f64> = rows.map(|(row, next)| loss(row, *next)).collect();
    assert_eq!(losses.len(), wanted.len(), "{what}");
    (losses, wanted)
}

fn check_losses(model: &Model, scored: usize) {
    let (losses, wanted) = losses(model, scored);
    for (i, (loss, wanted)) in losses.iter().zip(&wanted).enumerate() {
        let what = model.device().name();
        assert!((loss - wanted).abs() < LOSS, "{what}: loss {i} is {loss}, not {wanted}");
    }
}

fn check_perplexity(model: &Model, scored: usize) {
    let (losses, wanted) = losses(model, scored);
    let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
    let ratio = (mean(&losses) - mean(&wanted)).exp();
    let what = model.device().name();
    assert!((ratio - 1.0).abs() < 1e-3, "{what}: the perplexity is {ratio} of the reference's");
}

/// Tokens that are scored on a GPU.
fn scored(model: &Model) -> usize {
    if is_software(model) { SOFTWARE_SCORED } else { usize::MAX - 1 }
}

#[test]
fn losses_on_the_cpu() {
    on_the_cpu().iter().for_each(|model| {
        check_losses(model, usize::MAX - 1);
        check_perplexity(model, usize::MAX - 1);
    });
}

/// Without matrix units and f16 factors, as `eval` and `perplexity` compute.
#[test]
fn losses_on_the_gpu() {
    if let (Some(file), Some(gpu)) = (file(), gpu()) {
        let model = load(&file, Device::Gpu(gpu.exact()));
        check_losses(&model, scored(&model));
    }
}

/// Matrix units round activations to f16: single losses differ more, their mean does not.
#[test]
fn perplexity_on_the_gpu() {
    on_the_gpu().iter().for_each(|model| check_perplexity(model, scored(model)));
}

/// `−ln p` of a token.
fn loss(row: &[f32], token: u32) -> f64 {
    let largest = row.iter().copied().fold(f32::MIN, f32::max);
    let sum: f64 = row.iter().map(|x| f64::from(x - largest).exp()).sum();
    sum.ln() - f64::from(row[token as usize] - largest)
}

/// Its template declares no tools: it says so, and a request with one is refused.
fn check_tools(model: &Model, mut conversation: Conversation) {
    let capabilities = capabilities_of(model.gguf(), []);
    assert_eq!(capabilities, [Capability::Text, Capability::Training]);
    let tool = serde_json::json!({ "name": "weather", "description": "The weather" });
    conversation.tools = vec![serde_json::from_value(tool).expect("a tool")];
    let refused = prompt_of(model, &conversation, ChatOptions::default());
    assert!(matches!(refused, Err(RuntimeError::Chat(ChatError::NoTools))), "{refused:?}");
}

#[test]
fn a_question_is_answered_on_the_cpu() {
    if let Some(model) = on_the_cpu() {
        let messages = vec![Message::new("user", "What is the capital of France?")];
        let conversation = Conversation { messages, ..Conversation::default() };
        let prompt = prompt_of(&model, &conversation, ChatOptions::default()).expect("a prompt");
        check_tools(&model, conversation);
        let mut session = model.session(&exact()).expect("a session");
        session.extend(&prompt.tokens).expect("it fits");
        let tokenizer = model.tokenizer().expect("a vocabulary");
        let mut answer = Vec::new();
        while answer.len() < 40 {
            let next = block_on(session.next(DeviceSampling::Greedy)).expect("a token");
            let next = next.expect("the context is not full");
            if tokenizer.is_end(next) {
                break;
            }
            answer.push(next);
        }
        let answer = tokenizer.decode(&answer, Render::Plain);
        assert!(answer.contains("Paris"), "on {}: {answer}", model.device().name());
    }
}
