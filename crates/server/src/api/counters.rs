//! Requests that wait and run.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use rullama_api::ApiError;

/// How many requests wait for their first token, and how many generate.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    waiting: AtomicUsize,
    running: AtomicUsize,
}

impl Counters {
    /// Takes a place in the queue.
    ///
    /// # Errors
    /// If `most` requests wait already.
    pub(super) fn enter(counters: &Arc<Self>, most: usize) -> Result<Place, ApiError> {
        let before = counters.waiting.fetch_add(1, Ordering::Relaxed);
        let place = Place { counters: Arc::clone(counters), is_running: false };
        if before >= most { Err(ApiError::Busy) } else { Ok(place) }
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(super) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }
}

/// A request's place among those that wait or run; dropping it leaves.
#[derive(Debug)]
pub(super) struct Place {
    counters: Arc<Counters>,
    is_running: bool,
}

impl Place {
    /// The engine has begun.
    pub(super) fn run(&mut self) {
        if !self.is_running {
            self.is_running = true;
            self.counters.running.fetch_add(1, Ordering::Relaxed);
            self.counters.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let left = if self.is_running { &self.counters.running } else { &self.counters.waiting };
        left.fetch_sub(1, Ordering::Relaxed);
    }
}
