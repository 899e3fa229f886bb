//! How models are loaded and run.

use std::time::Duration;

use rullama::OpenOptions;
use rullama_api::KeepAlive;

/// How models are loaded and run.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// How each model is opened. The context is that of requests that choose none, cut to what a model was trained for; GPU memory is for all models
    /// together; adapters belong to every model.
    pub open: OpenOptions,
    /// Requests of full length that a model runs at once; shorter ones are more.
    pub parallel: usize,
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
            queue: 512,
            models: 3,
            keep_alive: KeepAlive::For(Duration::from_secs(300)),
        }
    }
}
