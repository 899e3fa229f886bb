//! Bytes that a script reads: from a file, from storage, over a network.

use std::{
    cell::{Cell, RefCell},
    ops::Range,
    rc::Rc,
};

use js_sys::{Promise, Uint8Array};
use rullama_source::{ByteSource, Bytes, Local, SourceError};
use wasm_bindgen::{JsCast, JsValue, prelude::wasm_bindgen};
use wasm_bindgen_futures::JsFuture;

use crate::{error::Failure, session::now};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = "
/** Bytes by range; errors of `read` are rethrown unchanged. */
export interface BytesOf {
  readonly name: string;
  readonly size: number;
  read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>>;
  /** Called when an array returned by `read` is no longer used. */
  done(bytes: Uint8Array<ArrayBuffer>): void;
}
";

#[wasm_bindgen]
extern "C" {
    /// A script's byte source.
    #[wasm_bindgen(typescript_type = "BytesOf")]
    pub type BytesOf;

    #[wasm_bindgen(method, getter)]
    fn name(this: &BytesOf) -> String;
    #[wasm_bindgen(method, getter)]
    fn size(this: &BytesOf) -> f64;
    #[wasm_bindgen(method, catch)]
    fn read(this: &BytesOf, offset: f64, length: f64) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method)]
    fn done(this: &BytesOf, bytes: &Uint8Array);
}

/// The last error a script threw while it read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Thrown(Rc<RefCell<Option<JsValue>>>);

impl Thrown {
    /// The script's error if it threw one, else `failure`.
    pub(crate) fn or(&self, failure: Failure) -> Failure {
        self.0.borrow_mut().take().map_or(failure, Failure::Script)
    }
}

/// A script's bytes as a source.
pub(crate) struct ScriptSource {
    file: BytesOf,
    name: String,
    len: u64,
    thrown: Thrown,
    waited: Cell<f64>,
}

impl ScriptSource {
    pub(crate) fn new(file: BytesOf) -> (Rc<Self>, Thrown) {
        let thrown = Thrown::default();
        (Self::with(file, thrown.clone()), thrown)
    }

    /// A further file of the same model, which shares its `thrown`.
    pub(crate) fn with(file: BytesOf, thrown: Thrown) -> Rc<Self> {
        // File lengths are integers below 2⁵³, which f64 represents exactly.
        let (name, len) = (file.name(), file.size() as u64);
        Rc::new(Self { file, name, len, thrown, waited: Cell::new(0.0) })
    }

    /// Milliseconds spent waiting for the script.
    pub(crate) fn waited(&self) -> f64 {
        self.waited.get()
    }

    fn failed(&self, error: JsValue) -> SourceError {
        *self.thrown.0.borrow_mut() = Some(error);
        self.broken("reading failed")
    }

    fn broken(&self, why: &'static str) -> SourceError {
        SourceError::Io { name: self.name.clone(), source: std::io::Error::other(why) }
    }
}

impl ByteSource for ScriptSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> Local<'_, Result<Bytes, SourceError>> {
        let Range { start, end } = range;
        if start > end || end > self.len {
            let (name, len) = (self.name.clone(), self.len);
            let error = SourceError::OutOfRange { name, start, end, len };
            return Box::pin(std::future::ready(Err(error)));
        }
        // The script starts now, not when the future is polled; `JsFuture` handles a rejection even if it never is.
        let reading = self.file.read(start as f64, (end - start) as f64).map(JsFuture::from);
        Box::pin(async move {
            let reading = reading.map_err(|error| self.failed(error))?;
            let before = now();
            let bytes = reading.await.map_err(|error| self.failed(error))?;
            self.waited.set(self.waited.get() + now() - before);
            let bytes = bytes.dyn_into::<Uint8Array>();
            let bytes = bytes.map_err(|_| self.broken("the read did not return a Uint8Array"))?;
            if u64::from(bytes.length()) != end - start {
                return Err(self.broken("the read returned the wrong number of bytes"));
            }
            let copy = bytes.to_vec();
            self.file.done(&bytes);
            Ok(copy.into())
        })
    }

    fn name(&self) -> &str {
        &self.name
    }
}
