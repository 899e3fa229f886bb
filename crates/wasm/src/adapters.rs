//! Adapters of a model: read once, then named in requests by the page's own ids.

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

/// Combinations that stay on the GPU: enough to compare one with another.
const READY: usize = 2;

/// An adapter of a request.
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
    /// Combinations on the GPU, the last used one last.
    ready: RefCell<Vec<(Vec<Choice>, Adapters)>>,
}

impl Library {
    fn find(&self, id: &str) -> Result<Rc<Adapter>, Failure> {
        let known = self.0.known.borrow();
        known.get(id).cloned().ok_or_else(|| Failure::NoAdapter(id.into()))
    }

    /// The adapter that training begins with.
    pub(crate) fn initial(&self, id: &str) -> Result<Rc<Adapter>, Failure> {
        self.find(id)
    }

    /// Takes an adapter; one of the same id goes.
    pub(crate) fn put(&self, id: &str, adapter: Adapter) {
        self.remove(id);
        self.0.known.borrow_mut().insert(id.into(), Rc::new(adapter));
    }

    fn remove(&self, id: &str) {
        self.0.known.borrow_mut().remove(id);
        let other = |choices: &[Choice]| choices.iter().all(|choice| choice.id != id);
        self.0.ready.borrow_mut().retain(|(choices, _)| other(choices));
    }

    /// The combination a request names; nothing where none of it would change anything.
    pub(crate) async fn ready(
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
        let found = self.0.ready.borrow().iter().position(|(choices, _)| *choices == wanted);
        let (wanted, ready) = match found {
            Some(index) => self.0.ready.borrow_mut().remove(index),
            None => {
                let all: Vec<(&Adapter, f32)> =
                    adapters.iter().map(|(adapter, weight)| (&**adapter, *weight)).collect();
                (wanted, model.attach(&all, FactorType::F16).await?)
            }
        };
        let mut kept = self.0.ready.borrow_mut();
        if kept.len() >= READY {
            kept.remove(0);
        }
        kept.push((wanted, ready.clone()));
        Ok(Some(ready))
    }

    /// Bytes of the combinations on the GPU.
    pub(crate) fn gpu_bytes(&self) -> u64 {
        self.0.ready.borrow().iter().map(|(_, ready)| ready.gpu_bytes()).sum()
    }
}

#[wasm_bindgen]
impl Model {
    /// Reads an adapter and checks that it fits; `config` is the text of the `adapter_config.json` beside it, where there is one.
    /// What it is comes back as JSON.
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

    /// Forgets an adapter. Its memory on the GPU goes with the next answers of the conversations that used it.
    #[wasm_bindgen(js_name = removeAdapter)]
    pub fn remove_adapter(&self, id: &str) {
        self.adapters.remove(id);
    }

    /// Calls `each` with a name and bytes for every piece of an adapter's files, one after the other: PEFT's two, or one GGUF file.
    #[wasm_bindgen(js_name = exportAdapter)]
    pub fn export_adapter(
        &self,
        id: &str,
        base: &str,
        gguf: bool,
        each: &Function,
    ) -> Result<(), JsValue> {
        let adapter = self.adapters.find(id)?;
        let tell = |name: &str, bytes: &[u8]| {
            each.call2(&JsValue::NULL, &name.into(), &Uint8Array::from(bytes))
        };
        if gguf {
            let mut told =
                Telling { tell: |bytes: &[u8]| tell("adapter.gguf", bytes), thrown: None };
            let written = adapter.write_gguf(&mut told);
            return match told.thrown {
                Some(error) => Err(error),
                None => Ok(written.map_err(Failure::from)?),
            };
        }
        let pieces = adapter.peft_pieces(base).map_err(Failure::from)?;
        tell(PeftFiles::CONFIG, pieces.config.as_bytes())?;
        pieces.weights().try_for_each(|piece| tell(PeftFiles::WEIGHTS, &piece).map(|_| ()))
    }
}

/// Writes by telling a script, and keeps what it threw.
struct Telling<F> {
    tell: F,
    thrown: Option<JsValue>,
}

impl<F: Fn(&[u8]) -> Result<JsValue, JsValue>> Write for Telling<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match (self.tell)(bytes) {
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

/// What an adapter is, and that it fits.
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
