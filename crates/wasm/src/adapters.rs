//! Adapters of a model: read once, then selected in requests by ids that the page chose.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    io::{self, Write},
    rc::Rc,
};

use js_sys::{Function, Uint8Array};
use rullama_adapter::{Adapter, Format, PeftFiles};
use rullama_runtime::adapters::{Adapters, FactorType};
use serde::Deserialize;
use serde_json::{Value, json};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};

use crate::{
    error::Failure,
    model::Model,
    source::{BytesOf, ScriptSource},
};

/// Combinations of adapters kept on the GPU: enough to compare two.
const MAX_LOADED: usize = 2;

/// An adapter in a request.
#[derive(Deserialize, Clone, PartialEq)]
pub(crate) struct Choice {
    id: String,
    weight: f32,
}

/// The adapters of a model.
#[derive(Clone, Default)]
pub(crate) struct Library(Rc<Inner>);

#[derive(Default)]
struct Inner {
    known: RefCell<BTreeMap<String, Rc<Adapter>>>,
    /// Combinations on the GPU, the most recently used one last.
    loaded: RefCell<Vec<(Vec<Choice>, Adapters)>>,
}

impl Library {
    fn find(&self, id: &str) -> Result<Rc<Adapter>, Failure> {
        let known = self.0.known.borrow();
        known.get(id).cloned().ok_or_else(|| Failure::NoAdapter(id.into()))
    }

    /// The adapter that training starts from.
    pub(crate) fn initial(&self, id: &str) -> Result<Rc<Adapter>, Failure> {
        self.find(id)
    }

    /// Adds an adapter; it replaces one with the same id.
    pub(crate) fn put(&self, id: &str, adapter: Adapter) {
        self.remove(id);
        self.0.known.borrow_mut().insert(id.into(), Rc::new(adapter));
    }

    fn remove(&self, id: &str) {
        self.0.known.borrow_mut().remove(id);
        let other = |choices: &[Choice]| choices.iter().all(|choice| choice.id != id);
        self.0.loaded.borrow_mut().retain(|(choices, _)| other(choices));
    }

    /// Loads the combination that a request names; `None` if no adapter has an effect.
    pub(crate) async fn load(
        &self,
        model: &rullama_runtime::Model,
        choices: &[Choice],
    ) -> Result<Option<Adapters>, Failure> {
        let mut wanted = Vec::new();
        let mut adapters = Vec::new();
        for choice in choices {
            let adapter = self.find(&choice.id)?;
            if choice.weight != 0.0 {
                adapters.push((adapter, choice.weight));
                wanted.push(choice.clone());
            }
        }
        if wanted.is_empty() {
            return Ok(None);
        }
        let kept = |wanted: &[Choice]| {
            let mut loaded = self.0.loaded.borrow_mut();
            let found = loaded.iter().position(|(choices, _)| choices == wanted)?;
            Some(loaded.remove(found).1)
        };
        let loaded = match kept(&wanted) {
            Some(loaded) => loaded,
            None => {
                let all: Vec<(&Adapter, f32)> =
                    adapters.iter().map(|(adapter, weight)| (&**adapter, *weight)).collect();
                let attached = model.attach(&all, FactorType::F16).await?;
                // Another reply may have loaded it meanwhile; replies in one pass share it.
                kept(&wanted).unwrap_or(attached)
            }
        };
        let mut kept = self.0.loaded.borrow_mut();
        if kept.len() >= MAX_LOADED {
            kept.remove(0);
        }
        kept.push((wanted, loaded.clone()));
        Ok(Some(loaded))
    }

    /// Bytes of the combinations on the GPU.
    pub(crate) fn gpu_bytes(&self) -> u64 {
        self.0.loaded.borrow().iter().map(|(_, loaded)| loaded.gpu_bytes()).sum()
    }
}

#[wasm_bindgen]
impl Model {
    /// Reads an adapter and checks that it fits the model; `config` is the text of its `adapter_config.json`, if it has one.
    /// Returns a description as JSON.
    #[wasm_bindgen(js_name = addAdapter)]
    pub async fn add_adapter(
        &self,
        id: String,
        file: BytesOf,
        config: Option<String>,
    ) -> Result<String, JsValue> {
        let (source, thrown) = ScriptSource::new(file);
        let read = async {
            let adapter = Adapter::read(source, config.as_deref()).await?;
            let facts = facts(&self.inner, &adapter)?.to_string();
            self.adapters.put(&id, adapter);
            Ok(facts)
        };
        Ok(read.await.map_err(|failure: Failure| thrown.or(failure))?)
    }

    /// Removes an adapter. Its GPU memory is freed with the next replies of the sessions that used it.
    #[wasm_bindgen(js_name = removeAdapter)]
    pub fn remove_adapter(&self, id: &str) {
        self.adapters.remove(id);
    }

    /// Calls `each` with the file name and the bytes of every chunk of an adapter's files: PEFT's two, or one GGUF file.
    #[wasm_bindgen(js_name = exportAdapter)]
    pub fn export_adapter(
        &self,
        id: &str,
        base: &str,
        gguf: bool,
        each: &Function,
    ) -> Result<(), JsValue> {
        let adapter = self.adapters.find(id)?;
        let write = |name: &str, bytes: &[u8]| {
            each.call2(&JsValue::NULL, &name.into(), &Uint8Array::from(bytes))
        };
        if gguf {
            let mut writer =
                ScriptWriter { write: |bytes: &[u8]| write("adapter.gguf", bytes), thrown: None };
            let written = adapter.write_gguf(&mut writer);
            return match writer.thrown {
                Some(error) => Err(error),
                None => Ok(written.map_err(Failure::from)?),
            };
        }
        let pieces = adapter.peft_pieces(base).map_err(Failure::from)?;
        write(PeftFiles::CONFIG, pieces.config.as_bytes())?;
        pieces.weights().try_for_each(|piece| write(PeftFiles::WEIGHTS, &piece).map(|_| ()))
    }
}

/// A writer that passes bytes to a script and keeps the error it throws.
struct ScriptWriter<F> {
    write: F,
    thrown: Option<JsValue>,
}

impl<F: Fn(&[u8]) -> Result<JsValue, JsValue>> Write for ScriptWriter<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match (self.write)(bytes) {
            Ok(_) => Ok(bytes.len()),
            Err(error) => {
                self.thrown = Some(error);
                Err(io::ErrorKind::Other.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Describes an adapter, or says why it does not fit the model.
pub(crate) fn facts(model: &rullama_runtime::Model, adapter: &Adapter) -> Result<Value, Failure> {
    let fit = model.fit(adapter)?;
    let kind = |tensor: &str| {
        let name = tensor.strip_suffix(".weight").unwrap_or(tensor);
        name.rsplit('.').next().unwrap_or(name).to_owned()
    };
    let mut targets: Vec<String> = adapter.pairs.iter().map(|pair| kind(&pair.tensor)).collect();
    targets.sort_unstable();
    targets.dedup();
    let format = match adapter.format {
        Format::Peft => "peft",
        Format::Gguf => "gguf",
        Format::Rullama => "rullama",
    };
    Ok(json!({
        "format": format,
        "rank": adapter.rank(),
        "alpha": adapter.pairs.first().map(|pair| pair.scale * pair.rank as f32),
        "parameters": adapter.parameters(),
        "targets": targets,
        "baseModel": adapter.base_model,
        "withoutEffect": fit.without_effect,
    }))
}
