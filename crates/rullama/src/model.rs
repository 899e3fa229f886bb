//! A loaded model, with the prompts, parameters and adapters stored with it.

use std::{
    ops::ControlFlow,
    rc::Rc,
    time::{Duration, Instant},
};

use pollster::block_on;
use rullama_chat::Message;
use rullama_engine::executor::Device;
use rullama_runtime::{
    RuntimeError,
    model::hinted_options,
    options::{OptionWarning, SamplingOptions},
};
use rullama_source::{ByteSource, FileSource};
use rullama_store::ModelFiles;
use serde_json::{Map, Value};

use crate::{
    adapter::AdapterSet,
    error::Error,
    locate::{Location, Stores},
    options::{OnProgress, OpenOptions},
    session::{Session, SessionOptions},
};

/// A model whose weights are on a device; cloning it is cheap and shares the weights.
///
/// A name is one of Ollama's store (`gemma4:e2b`), the path of a GGUF file, an http(s) URL of one, or `demo`.
///
/// ```
/// let model = rullama::Model::open("demo")?;
/// let reply = model.session()?.send("What is 23 + 45?")?;
/// assert!(reply.text.contains("68"));
/// # Ok::<(), rullama::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Model {
    runtime: rullama_runtime::Model,
    shared: Rc<Shared>,
}

/// What all clones of a model share in addition to its weights.
#[derive(Debug)]
struct Shared {
    name: String,
    location: Location,
    options: OpenOptions,
    adapters: AdapterSet,
    layers: StoreLayers,
    load_time: Duration,
}

impl Model {
    /// Opens a model with default options: on a GPU if there is one, with a context of 4096 tokens.
    ///
    /// ```
    /// let model = rullama::Model::open("demo")?;
    /// println!("{} runs on {}", model.name(), model.device().name());
    /// # Ok::<(), rullama::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the model is not found, is not supported, or does not fit on the device.
    pub fn open(name: &str) -> Result<Self, Error> {
        Self::open_with(name, &OpenOptions::default())
    }

    /// Opens a model with these options.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with(name: &str, options: &OpenOptions) -> Result<Self, Error> {
        Self::open_with_progress(name, options, &mut |_| ControlFlow::Continue(()))
    }

    /// Opens a model; `progress` gets loading progress and may cancel.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// let mut done = 0;
    /// rullama::Model::open_with_progress("demo", &rullama::OpenOptions::default(), &mut |progress| {
    ///     done = progress.done * 100 / progress.total.max(1);
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(done, 100);
    /// # Ok::<(), rullama::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::open`], or if loading was cancelled.
    pub fn open_with_progress(
        name: &str,
        options: &OpenOptions,
        progress: OnProgress<'_>,
    ) -> Result<Self, Error> {
        block_on(Self::open_async(name, options, progress))
    }

    /// Async variant of [`Self::open_with_progress`].
    ///
    /// # Errors
    /// As [`Self::open_with_progress`].
    pub async fn open_async(
        name: &str,
        options: &OpenOptions,
        progress: OnProgress<'_>,
    ) -> Result<Self, Error> {
        let location = options.stores.find(name)?;
        let device = options.open_device_async().await?.device;
        Self::open_at(name, location, device, options, progress).await
    }

    /// Opens the model at a location on an open device. `name` is used in messages.
    ///
    /// # Errors
    /// As [`Self::open_with_progress`].
    pub async fn open_at(
        name: &str,
        location: Location,
        device: Device,
        options: &OpenOptions,
        progress: OnProgress<'_>,
    ) -> Result<Self, Error> {
        let start = Instant::now();
        let layers = StoreLayers::of(&location)?;
        let adapters = AdapterSet::read(&location, &options.adapters)?;
        let context = options.context.or(layers.context());
        let runtime = options.load(location.open()?, device, context, progress).await?;
        let shared = Shared {
            name: name.into(),
            location,
            options: options.clone(),
            adapters,
            layers,
            load_time: start.elapsed(),
        };
        Ok(Self { runtime, shared: Rc::new(shared) })
    }

    /// Loads the model again on a new device, for example after a device was lost.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn reopen(&self) -> Result<Self, Error> {
        let Shared { name, location, options, .. } = &*self.shared;
        let device = options.open_device()?.device;
        let mut ignore_progress = |_| ControlFlow::Continue(());
        block_on(Self::open_at(name, location.clone(), device, options, &mut ignore_progress))
    }

    /// A new conversation with the model.
    ///
    /// ```
    /// let model = rullama::Model::open("demo")?;
    /// let mut session = model.session()?;
    /// session.send("My name is Ada.")?;
    /// assert_eq!(session.messages().len(), 2);
    /// # Ok::<(), rullama::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the context is invalid, an adapter does not fit, or the device fails.
    pub fn session(&self) -> Result<Session, Error> {
        self.session_with(&SessionOptions::default())
    }

    /// A new conversation with these options.
    ///
    /// # Errors
    /// As [`Self::session`], or if a drafter cannot be used.
    pub fn session_with(&self, options: &SessionOptions) -> Result<Session, Error> {
        Session::new(self.clone(), options)
    }

    /// The name it was opened with.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Where it was found.
    pub fn location(&self) -> &Location {
        &self.shared.location
    }

    /// The options it was opened with.
    pub fn options(&self) -> &OpenOptions {
        &self.shared.options
    }

    /// The adapters of all its sessions.
    pub fn adapters(&self) -> &AdapterSet {
        &self.shared.adapters
    }

    /// How long loading took.
    pub fn load_time(&self) -> Duration {
        self.shared.load_time
    }

    /// The device it runs on.
    pub fn device(&self) -> &Device {
        self.runtime.device()
    }

    /// The underlying model of the crate `rullama-runtime`, for work with tokens and logits.
    pub fn runtime(&self) -> &rullama_runtime::Model {
        &self.runtime
    }

    /// The default sampling options of sessions: Gemma's, overridden by the file's hints and by the store's parameters, with
    /// warnings about hints that are ignored.
    ///
    /// # Errors
    /// If the store's parameters are invalid.
    pub fn sampling(&self) -> Result<(SamplingOptions, Vec<OptionWarning>), Error> {
        let (mut options, mut warnings) = hinted_options(self.runtime.gguf());
        if let Some(parameters) = &self.shared.layers.parameters {
            let layer = Value::Object(parameters.clone());
            let more = options.apply(&layer).map_err(RuntimeError::from);
            warnings.extend(more.map_err(|error| Error::StoredParameters(error.into()))?);
        }
        Ok((options, warnings))
    }

    /// The system message stored with the model.
    pub(crate) fn system(&self) -> Option<&str> {
        self.shared.layers.system.as_deref()
    }

    /// Messages stored with the model, with which every conversation starts.
    pub(crate) fn opening(&self) -> &[Message] {
        &self.shared.layers.messages
    }

    /// The default context of sessions. The store's `num_ctx` is clamped to the trained context; the user's is not, and is
    /// refused later if it is too large.
    pub(crate) fn context(&self) -> Option<usize> {
        let trained = self.runtime.config().context;
        let Shared { options, layers, .. } = &*self.shared;
        options.context.or(layers.context().map(|num_ctx| num_ctx.min(trained)))
    }

    /// The files that may contain encoders, in addition to the model's own.
    pub(crate) fn projectors(&self) -> Result<Vec<Rc<dyn ByteSource>>, Error> {
        let Shared { options, location, .. } = &*self.shared;
        projectors(&options.stores, location, options.projector.as_deref())
    }
}

/// The files that may contain a model's encoders, in addition to its own: the one given, or those of the store.
///
/// # Errors
/// If one cannot be read.
pub fn projectors(
    stores: &Stores,
    location: &Location,
    named: Option<&str>,
) -> Result<Vec<Rc<dyn ByteSource>>, Error> {
    if let Some(name) = named {
        return Ok(vec![stores.find(name)?.source()?]);
    }
    let Location::Store(files) = location else { return Ok(Vec::new()) };
    let open = |layer: &rullama_store::Layer| -> Result<Rc<dyn ByteSource>, Error> {
        Ok(Rc::new(FileSource::open(&layer.path)?))
    };
    files.projectors.iter().map(open).collect()
}

/// Prompts and parameters stored with a model.
#[derive(Debug, Default)]
struct StoreLayers {
    system: Option<String>,
    parameters: Option<Map<String, Value>>,
    messages: Vec<Message>,
}

impl StoreLayers {
    fn of(location: &Location) -> Result<Self, Error> {
        let Location::Store(files) = location else { return Ok(Self::default()) };
        let ModelFiles { system, params, messages, .. } = &**files;
        let read = |message: &Value| serde_json::from_value(message.clone());
        let messages: Result<Vec<Message>, _> = messages.iter().flatten().map(read).collect();
        Ok(Self {
            system: system.clone(),
            parameters: params.clone(),
            messages: messages.map_err(Error::StoredMessages)?,
        })
    }

    fn context(&self) -> Option<usize> {
        let num_ctx = self.parameters.as_ref()?.get("num_ctx")?.as_u64()?;
        usize::try_from(num_ctx).ok().filter(|num_ctx| *num_ctx > 0)
    }
}
