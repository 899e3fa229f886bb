//! What happens when something goes wrong: one request fails where it concerns one alone.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use rullama_engine::EngineError;

use super::{
    RequestId, Scheduler, Sink, Update,
    passes::Passes,
    running::{Running, Waiting},
};
use crate::{error::RuntimeError, generate::Completion, kv_pool::KvPool, model::Model};

/// Does the work of one request; a panic in its code (its constraint, above all) is an error of that request. Its state is not used again then.
pub(super) fn guarded<T>(
    work: impl FnOnce() -> Result<T, RuntimeError>,
) -> Result<T, RuntimeError> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|panic| Err(RuntimeError::RequestPanicked { message: message(&*panic) }))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".into())
}

/// Whether a device has no room for a graph or the KV pool.
pub(super) fn is_out_of_memory(error: &RuntimeError) -> bool {
    matches!(
        error,
        RuntimeError::Engine(EngineError::OutOfMemory { .. } | EngineError::CacheTooLarge { .. })
    )
}

/// Whether an error concerns the device, and so all requests.
fn is_of_device(error: &RuntimeError) -> bool {
    matches!(
        error,
        RuntimeError::Engine(
            EngineError::DeviceLost | EngineError::Refused { .. } | EngineError::Timeout
        )
    )
}

impl Scheduler {
    /// Goes on with a model that was loaded again. Requests that ran have lost their memory and fail, and so do those with adapters, which belong to the
    /// model they were attached to.
    ///
    /// # Errors
    /// If the options are impossible for the model.
    pub fn restart(&mut self, model: &Model) -> Result<(), RuntimeError> {
        let passes = Passes::new(model, &self.options)?;
        let lost = || Update::failed(EngineError::DeviceLost.into());
        for running in std::mem::take(&mut self.running) {
            self.updates.push((running.id, lost()));
            self.give_back(running.id, running.borrowed);
        }
        self.use_passes(passes);
        for waiting in std::mem::take(&mut self.queue) {
            let failed = match &waiting {
                // Its caches are lost with the device.
                Waiting { borrowed: Some(_), .. } => lost(),
                Waiting { adapters: Some(_), .. } => {
                    Update::failed(RuntimeError::OtherModelsAdapters)
                }
                _ => {
                    self.queue.push_back(waiting);
                    continue;
                }
            };
            self.updates.push((waiting.id, failed));
            self.drop_waiting(waiting);
        }
        Ok(())
    }

    /// Begins anew with these passes; no request runs.
    pub(super) fn use_passes(&mut self, passes: Passes) {
        self.pool = KvPool::new(passes.shape(), passes.model().config().window);
        self.free_slots = passes.slots();
        self.passes = passes;
        self.rounds.clear();
        self.under_way = None;
    }

    /// Where the KV pool has just turned out to be too large for the device, tries one of half the size: requests that were admitted wait again. False
    /// if requests use the pool already, or one so small could not hold this request.
    pub(super) fn shrink_pool(&mut self, index: usize) -> bool {
        let Some(passes) = self.passes.with_smaller_pool() else { return false };
        let needed = self.running[index].most;
        let pool = KvPool::new(passes.shape(), passes.model().config().window);
        if pool.check(needed).is_err() {
            return false;
        }
        for running in self.running.drain(..).rev() {
            self.queue.push_front(Running::into_waiting(running).0);
        }
        self.use_passes(passes);
        true
    }

    /// Fails some requests, or returns the error where it concerns the device and so all of them.
    pub(super) fn fail(
        &mut self,
        ids: &[RequestId],
        error: RuntimeError,
        sink: &mut Sink<'_>,
    ) -> Result<(), RuntimeError> {
        if is_of_device(&error) {
            return Err(error);
        }
        let failed = Update::failed(error);
        for id in ids {
            if let Some(index) = self.running.iter().position(|running| running.id == *id) {
                self.remove(index);
                sink(*id, failed.clone());
            }
        }
        Ok(())
    }

    /// Fails everything that runs: the device is lost.
    pub(super) fn fail_all(&mut self, sink: &mut Sink<'_>) {
        while !self.running.is_empty() {
            let id = self.running[0].id;
            self.remove(0);
            sink(id, Update::failed(EngineError::DeviceLost.into()));
        }
        self.under_way = None;
    }

    /// Keeps the last events of a cancelled request for the next step.
    pub(super) fn tell_cancelled(&mut self, id: RequestId, mut completion: Completion) {
        let events = guarded(|| {
            completion.cancel();
            Ok(std::iter::from_fn(|| completion.event()).collect::<Vec<_>>())
        });
        match events {
            Ok(events) => {
                self.updates.extend(events.into_iter().map(|event| (id, Update::Event(event))));
            }
            Err(error) => self.updates.push((id, Update::failed(error))),
        }
    }
}
