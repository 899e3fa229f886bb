//! The thread of a model, from loading to unloading.

use std::{
    ops::ControlFlow,
    time::{Duration, Instant},
};

use pollster::block_on;
use rullama::{AdapterSet, Location, OpenOptions, Stores, projectors};
use rullama_api::ApiError;
use rullama_gguf::Gguf;
use rullama_runtime::{
    Denoiser, Embedder,
    model::{LoadOptions, MemoryUse, ModelKind},
};
use rullama_server::engine::{ModelPlace, ServedModel};

use crate::{decoder::Decoder, diffusion, embedder, error::of_load, registry::Inbox};

/// Loads a model and works on its jobs until it is unloaded.
pub(crate) fn run(mut inbox: Inbox, model: &ServedModel, context: Option<usize>) {
    if let Err(error) = load_and_serve(&mut inbox, model, context) {
        inbox.close(&error);
    }
}

/// What a model's thread needs beside the model.
pub(crate) struct Place {
    pub(crate) location: Location,
    pub(crate) context: Option<usize>,
    /// Bytes of all its files together.
    pub(crate) size: u64,
    pub(crate) load_time: Duration,
}

fn load_and_serve(
    inbox: &mut Inbox,
    model: &ServedModel,
    context: Option<usize>,
) -> Result<(), ApiError> {
    let options = inbox.registry().options.clone();
    let location = match &model.place {
        ModelPlace::Store(files) => Location::Store(files.clone()),
        ModelPlace::File(path) => Location::Path(path.clone()),
    };
    let failed = |error: rullama::Error| of_load(&error);
    let gguf = location.open().map_err(failed)?;
    let trained = model.details.context_length.and_then(|tokens| usize::try_from(tokens).ok());
    let context =
        context.or(options.open.context).map(|tokens| tokens.min(trained.unwrap_or(tokens)));
    let start = Instant::now();
    let place =
        |load_time| Place { location: location.clone(), context, size: model.size, load_time };
    match ModelKind::of(&gguf) {
        ModelKind::Embedding => {
            let embedder = with_room(inbox, &gguf, model, context, |gguf, _| {
                let device = options.open.open_device()?.device;
                Ok(block_on(Embedder::load(gguf, device, &mut |_| ControlFlow::Continue(())))?)
            })?;
            inbox.status.loaded(model.size, embedder.gpu_bytes(), embedder.config().context);
            embedder::serve(inbox, &embedder, start.elapsed());
        }
        ModelKind::Diffusion => {
            let denoiser = with_room(inbox, &gguf, model, context, |_, _| {
                let device = options.open.open_device()?.device;
                let go_on = &mut |_| ControlFlow::Continue(());
                Ok(block_on(Denoiser::load(location.open()?, device, go_on))?)
            })?;
            diffusion::serve(inbox, &denoiser, &place(start.elapsed()), options.open.cache)?;
        }
        ModelKind::Decoder | ModelKind::Drafter => {
            let loaded = with_room(inbox, &gguf, model, context, |_, left| {
                let open = OpenOptions { context, gpu_memory: left, ..options.open.clone() };
                let device = options.open.open_device()?.device;
                let go_on = &mut |_| ControlFlow::Continue(());
                block_on(open.load(location.open()?, device, context, go_on))
            })?;
            let adapters = AdapterSet::read(&location, &options.open.adapters).map_err(failed)?;
            let towers = projectors(&Stores(Vec::new()), &location, None).map_err(failed)?;
            let place = place(start.elapsed());
            Decoder::new(inbox, loaded, adapters, towers, &place)?.serve();
        }
    }
    Ok(())
}

/// Loads while no other model is loaded and enough others are unloaded; where memory runs out nevertheless, all idle ones are.
fn with_room<T>(
    inbox: &Inbox,
    gguf: &Gguf,
    model: &ServedModel,
    context: Option<usize>,
    load: impl Fn(&Gguf, Option<u64>) -> Result<T, rullama::Error>,
) -> Result<T, ApiError> {
    let registry = inbox.registry();
    let _one = registry.loading();
    let options = &registry.options;
    let plan = LoadOptions {
        context,
        cache: options.open.cache,
        table: options.open.table,
        gpu_budget: options.open.gpu_memory,
        host_experts: options.open.host_experts,
        ..LoadOptions::default()
    };
    // A model that cannot be estimated cannot be loaded either, which says why.
    let need = MemoryUse::of_file(gguf, &plan).map_or(0, |memory| memory.gpu(false));
    let left = registry.make_room(&model.name, need);
    match load(gguf, left) {
        Err(error) if error.code() == "out_of_memory" => {
            let left = registry.make_room(&model.name, u64::MAX);
            load(gguf, left).map_err(|error| of_load(&error))
        }
        loaded => loaded.map_err(|error| of_load(&error)),
    }
}
