//! Bytes as what a model meets: vocabularies, saved sessions, adapters, training data and schemas.

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
    Checkpoint, Dataset,
    dataset::{DataOptions, packed},
};

use super::text;
use crate::golden;

/// Bytes of a saved session that tell its program and its model.
const FINGERPRINT: usize = 8 + 32;
/// Tokens of the sessions that seeds were saved from.
const CONTEXT: usize = 16;
/// Steps of an answer that is held to a schema.
const STEPS: usize = 12;

thread_local! {
    static MODEL: Model = {
        let file = block_on(Gguf::open(memory("golden", golden("gguf/micro-e2b-Q8_0.gguf"))));
        let mut go_on = |_| ControlFlow::Continue(());
        let options = LoadOptions::default();
        let model = Model::load(file.expect("sound"), Device::Cpu, &options, &mut go_on);
        block_on(model).expect("the golden model loads")
    };
}

fn memory(name: &str, bytes: impl Into<Bytes>) -> Rc<MemorySource> {
    Rc::new(MemorySource::new(name, bytes))
}

fn said(error: &dyn std::error::Error) {
    assert!(!error.to_string().is_empty(), "an error without words: {error:?}");
}

/// Takes a vocabulary from the bytes of a GGUF file and encodes its own tokens.
pub fn vocabulary(data: &[u8]) {
    let Ok(file) = block_on(Gguf::open(memory("input", Bytes::copy_from_slice(data)))) else {
        return;
    };
    if let Err(error) = vocabulary::family(&file) {
        said(&error);
    }
    match vocabulary::tokenizer(&file) {
        Ok(tokenizer) => {
            let count = tokenizer.token_count();
            let all: Vec<u32> = (0..count.min(64)).collect();
            let text = tokenizer.decode(&all, Render::All);
            let ids = tokenizer.encode(&text, Special::Parse);
            assert!(ids.iter().all(|id| *id < count));
        }
        Err(error) => said(&error),
    }
}

/// Goes on with a session whose saved form, after the model's fingerprint, is the bytes: it is refused, or a session that can
/// be saved again and continued.
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
                // Long sessions take longer than an invocation should.
                if session.context() <= 4 * CONTEXT {
                    match block_on(session.next(DeviceSampling::Greedy)) {
                        Ok(Some(_)) => assert_eq!(session.tokens().len(), length + 1),
                        Ok(None) => assert_eq!(length, session.context()),
                        Err(error) => {
                            assert!(last.is_none_or(|id| id >> 31 == 1), "{error}");
                            said(&error);
                        }
                    }
                }
            }
            Err(error) => said(&error),
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

/// What [`session`] takes, of a session with these tokens.
pub fn session_seed(tokens: &[u32]) -> Vec<u8> {
    MODEL.with(|model| saved_session(model, tokens).split_off(FINGERPRINT))
}

/// Reads an adapter: two bytes say how long its `adapter_config.json` is, which comes next (none if it is empty), then the
/// weights. What is accepted can be written in both formats and reads the same.
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
        Err(error) => said(&error),
    }
}

/// Reads lines of training data; the first byte chooses the options. Good lines are examples within their limits.
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
            said(error);
        }
        for example in &found.examples {
            assert_eq!(example.ids.len(), example.learned.len());
            assert!(longest.is_none_or(|longest| example.ids.len() <= longest));
            assert!(example.targets() > 0 && !example.learned[0]);
        }
        let together = packed(&found.examples, 32);
        let tokens = |examples: &[rullama_train::Example]| -> usize {
            examples.iter().map(|example| example.ids.len()).sum()
        };
        assert_eq!(tokens(&together), tokens(&found.examples));
    });
}

/// Reads the checkpoint of a training run.
pub fn checkpoint(data: &[u8]) {
    let source = memory("input", Bytes::copy_from_slice(data));
    if let Err(error) = block_on(Checkpoint::open(source)) {
        said(&error);
    }
}

/// Holds an answer to a JSON schema: what is allowed at each step can be said.
pub fn schema(data: &[u8]) {
    let Ok(schema) = serde_json::from_slice(&data[..data.len().min(1 << 12)]) else { return };
    MODEL.with(|model| {
        let tokenizer = model.tokenizer().expect("the golden model has a vocabulary");
        let format = match JsonFormat::schema(tokenizer, schema) {
            Ok(format) => format,
            Err(error) => return said(&error),
        };
        let mut constraint = format.constraint();
        for step in 0..STEPS {
            if let Err(error) = constraint.prepare() {
                return said(&error);
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
