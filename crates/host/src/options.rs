//! How models are loaded and run.

use std::time::Duration;

use rullama::OpenOptions;
use rullama_api::KeepAlive;
use rullama_runtime::{
    Model, RuntimeError,
    scheduler::{Scheduler, SchedulerOptions},
};

/// How models are loaded and run.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// How each model is opened. The context is that of requests that choose none, cut to what a model was trained for; GPU memory is for all models
    /// together; adapters belong to every model.
    pub open: OpenOptions,
    /// Requests of full length that a model runs at once; shorter ones are more.
    pub parallel: usize,
    /// Whether more than 8 requests at once get the tokens that each gets alone, too, on GPUs whose matrix units would be faster.
    pub batch_invariant: bool,
    /// Requests that wait for a model; more are refused.
    pub queue: usize,
    /// Models in memory at once.
    pub models: usize,
    /// How long models stay loaded unless a request says otherwise.
    pub keep_alive: KeepAlive,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            open: OpenOptions::default(),
            parallel: 4,
            batch_invariant: false,
            queue: 512,
            models: 3,
            keep_alive: KeepAlive::For(Duration::from_secs(300)),
        }
    }
}

impl HostOptions {
    /// The scheduler of a model; without a context, requests have the usual one.
    ///
    /// # Errors
    /// If the options are impossible for the model.
    pub fn scheduler(
        &self,
        model: &Model,
        context: Option<usize>,
    ) -> Result<Scheduler, RuntimeError> {
        let wanted = self.wanted(context);
        let context = Scheduler::new(model, &wanted)?.context();
        Scheduler::new(model, &self.with_room(wanted, context))
    }

    /// What a scheduler is asked for, before its KV pool has a size.
    fn wanted(&self, context: Option<usize>) -> SchedulerOptions {
        SchedulerOptions {
            context,
            cache: self.open.cache,
            queue: self.queue,
            batch_invariant: self.batch_invariant.then_some(true),
            ..SchedulerOptions::default()
        }
    }

    /// Room for `parallel` requests of `context` tokens at once.
    fn with_room(&self, options: SchedulerOptions, context: usize) -> SchedulerOptions {
        let parallel = self.parallel.max(1);
        // A request takes whole pages.
        let page = options.page.clamp(1, context.max(1));
        let pool = context.next_multiple_of(page).saturating_mul(parallel);
        let sequences = options.sequences.max(parallel);
        SchedulerOptions { pool: Some(pool), sequences, ..options }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_invariance_is_up_to_the_device_unless_it_is_demanded() {
        let of = |batch_invariant| HostOptions { batch_invariant, ..HostOptions::default() };
        assert_eq!(of(false).wanted(None).batch_invariant, None);
        assert_eq!(of(true).wanted(None).batch_invariant, Some(true));
    }

    #[test]
    fn as_many_requests_of_full_length_run_as_the_options_say() {
        let of = |parallel, context| {
            let options = HostOptions { parallel, ..HostOptions::default() };
            options.with_room(SchedulerOptions::default(), context)
        };
        let usual = SchedulerOptions::default();
        for (parallel, context) in [(1, 4096), (4, 100), (usual.sequences * 2, 1000)] {
            let options = of(parallel, context);
            let pages = options.pool.unwrap().div_ceil(options.page);
            assert!(pages >= context.div_ceil(options.page) * parallel, "{parallel} × {context}");
            assert!(options.sequences >= parallel, "{parallel} × {context}");
        }
        // More requests than that run where they are shorter.
        assert_eq!(of(4, 4096).sequences, usual.sequences);
    }
}
