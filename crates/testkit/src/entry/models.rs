//! Bytes as vocabularies, saved sessions, adapters, training data and schemas.

use std::{ops::ControlFlow, rc::Rc};

use bytes::Bytes;
use pollster::block_on;
use rullama_adapter::Adapter;
use rullama_engine::executor::Device;
use rullama_gguf::Gguf;
use rullama_runtime::{
    Model,
    generate::JsonFormat,
    model::LoadOptions,
    session::{DeviceSampling, SessionOptions},
    vocabulary,
};
use rullama_source::MemorySource;
use rullama_tokenizer::{Render, Special};
use rullama_train::{
    Checkpoint, Dataset, Shape,
    dataset::{DataOptions, packed},
};

use super::text;
use crate::golden;

/// Bytes of a saved session that identify the format and the model.
const FINGERPRINT: usize = 8 + 32;
/// Tokens of the sessions that seeds were saved from.
const CONTEXT: usize = 16;
/// Tokens generated with a schema.
const STEPS: usize = 12;

thread_local! {
    static MODEL: Model = {
        let file = block_on(Gguf::open(memory("golden", golden("gguf/micro-e2b-Q8_0.gguf"))));
        let mut ignore_progress = |_| ControlFlow::Continue(());
        let options = LoadOptions::default();
        let model = Model::load(file.expect("a valid file"), Device::Cpu, &options, &mut ignore_progress);
        block_on(model).expect("the golden model loads")
    };
}

fn memory(name: &str, bytes: impl Into<Bytes>) -> Rc<MemorySource> {
    Rc::new(MemorySource::new(name, bytes))
}

fn has_message(error: &dyn std::error::Error) {
    assert!(!error.to_string().is_empty(), "an error without a message: {error:?}");
}

/// Reads a vocabulary from the bytes of a GGUF file and encodes its own tokens.
pub fn vocabulary(data: &[u8]) {
    let Ok(file) = block_on(Gguf::open(memory("input", Bytes::copy_from_slice(data)))) else {
        return;
    };
    if let Err(error) = vocabulary::template(&file) {
        has_message(&error);
    }
    match vocabulary::tokenizer(&file) {
        Ok(tokenizer) => {
            let count = tokenizer.token_count();
            let all: Vec<u32> = (0..count.min(64)).collect();
            let text = tokenizer.decode(&all, Render::All);
            let ids = tokenizer.encode(&text, Special::Parse);
            assert!(ids.iter().all(|id| *id < count));
        }
        Err(error) => has_message(&error),
    }
}

/// Restores a session from the model's fingerprint and the bytes: it is refused, or it can be saved again and continued.
pub fn session(data: &[u8]) {
    MODEL.with(|model| {
        let saved = [fingerprint(model), data.to_vec()].concat();
        match block_on(model.restore(&saved)) {
            Ok(mut session) => {
                assert!(session.tokens().len() <= session.context());
                assert!(session.cached() <= session.tokens().len());
                let again = block_on(session.save()).expect("it was restored");
                let again = block_on(model.restore(&again)).expect("it was saved");
                assert_eq!(again.tokens(), session.tokens());
                let (length, last) = (session.tokens().len(), session.tokens().last().copied());
                // Long sessions would take too long.
                if session.context() <= 4 * CONTEXT {
                    match block_on(session.next(DeviceSampling::Greedy)) {
                        Ok(Some(_)) => assert_eq!(session.tokens().len(), length + 1),
                        Ok(None) => assert_eq!(length, session.context()),
                        Err(error) => {
                            assert!(last.is_none_or(|id| id >> 31 == 1), "{error}");
                            has_message(&error);
                        }
                    }
                }
            }
            Err(error) => has_message(&error),
        }
    });
}

fn fingerprint(model: &Model) -> Vec<u8> {
    let mut bytes = saved_session(model, &[]);
    bytes.truncate(FINGERPRINT);
    bytes
}

fn saved_session(model: &Model, tokens: &[u32]) -> Vec<u8> {
    let options = SessionOptions { context: Some(CONTEXT), ..SessionOptions::default() };
    let mut session = model.session(&options).expect("the context is possible");
    session.extend(tokens).expect("they are tokens");
    if !tokens.is_empty() {
        block_on(session.next(DeviceSampling::Greedy)).expect("it runs");
    }
    block_on(session.save()).expect("it can be saved")
}

/// Input of [`session`] for a session with these tokens.
pub fn session_seed(tokens: &[u32]) -> Vec<u8> {
    MODEL.with(|model| saved_session(model, tokens).split_off(FINGERPRINT))
}

/// Reads an adapter: two bytes with the length of its `adapter_config.json`, this file (none if the length is 0), then the
/// weights. An accepted adapter can be written in both formats and is read back equal.
pub fn adapter(data: &[u8]) {
    let Some((length, rest)) = data.split_first_chunk() else { return };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (config, weights) = rest.split_at(length);
    let config = String::from_utf8_lossy(config);
    let config = (!config.is_empty()).then_some(&*config);
    let read = |bytes: &[u8], config: Option<&str>| {
        block_on(Adapter::read(memory("input", Bytes::copy_from_slice(bytes)), config))
    };
    match read(weights, config) {
        Ok(adapter) => {
            let names = |adapter: &Adapter| -> Vec<String> {
                let mut names: Vec<_> = adapter.pairs.iter().map(|p| p.tensor.clone()).collect();
                names.sort();
                names
            };
            if let Ok(bytes) = adapter.to_gguf() {
                assert_eq!(names(&read(&bytes, None).expect("written")), names(&adapter));
            }
            if let Ok(files) = adapter.to_peft("base") {
                let again = read(&files.weights, Some(&files.config)).expect("written");
                assert_eq!(names(&again), names(&adapter));
            }
        }
        Err(error) => has_message(&error),
    }
}

/// Reads lines of training data; the first byte selects the options. Examples of valid lines respect the limits.
pub fn dataset(data: &[u8]) {
    let Some((flags, rest)) = data.split_first() else { return };
    let longest = (flags & 2 != 0).then_some(usize::from(flags >> 2));
    let options = DataOptions { raw: flags & 1 == 0, longest };
    MODEL.with(|model| {
        let text = text(rest);
        let (found, bad) = Dataset::usable_lines(model, &text, options);
        let strict = Dataset::of_lines(model, &text, options);
        assert!(strict.is_err() || bad.is_empty());
        if let Err(error) = &strict {
            has_message(error);
        }
        for example in &found.examples {
            assert_eq!(example.ids.len(), example.learned.len());
            assert!(longest.is_none_or(|longest| example.ids.len() <= longest));
            assert!(example.targets() > 0 && !example.learned[0]);
        }
        let joined = packed(&found.examples, Shape { tokens: 32, targets: usize::MAX });
        let tokens = |examples: &[rullama_train::Example]| -> usize {
            examples.iter().map(|example| example.ids.len()).sum()
        };
        assert_eq!(tokens(&joined), tokens(&found.examples));
    });
}

/// Reads the checkpoint of a training run.
pub fn checkpoint(data: &[u8]) {
    let source = memory("input", Bytes::copy_from_slice(data));
    if let Err(error) = block_on(Checkpoint::open(source)) {
        has_message(&error);
    }
}

/// Constrains generation to a JSON schema: every token allowed at a step is accepted.
pub fn schema(data: &[u8]) {
    let Ok(schema) = serde_json::from_slice(&data[..data.len().min(1 << 12)]) else { return };
    MODEL.with(|model| {
        let tokenizer = model.tokenizer().expect("the golden model has a vocabulary");
        let format = match JsonFormat::schema(tokenizer, schema) {
            Ok(format) => format,
            Err(error) => return has_message(&error),
        };
        let mut constraint = format.constraint();
        for step in 0..STEPS {
            if let Err(error) = constraint.prepare() {
                return has_message(&error);
            }
            let allowed: Vec<u32> =
                (0..tokenizer.token_count()).filter(|id| constraint.allows(*id)).collect();
            let Some(id) = allowed.get(step * 7 % allowed.len().max(1)) else { return };
            match constraint.accept(*id) {
                Ok(false) => {}
                Ok(true) => return,
                Err(error) => panic!("an allowed token was refused: {error}"),
            }
        }
    });
}
