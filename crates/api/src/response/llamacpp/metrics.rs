//! `GET /metrics` in Prometheus' text format.

use std::fmt::Write as _;

/// Content type of Prometheus' text format.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4";

/// Counters and gauges of a server, under llama.cpp's names.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Metrics {
    /// Prompt tokens processed, without those from the cache.
    pub prompt_tokens_total: u64,
    /// Seconds of prompt processing.
    pub prompt_seconds_total: f64,
    /// Tokens generated.
    pub tokens_predicted_total: u64,
    /// Seconds of generation.
    pub tokens_predicted_seconds_total: f64,
    /// The largest number of tokens in a context.
    pub n_tokens_max: u64,
    /// Decode passes.
    pub n_decode_total: u64,
    /// Tokens proposed by drafters.
    pub spec_decode_num_draft_tokens_total: u64,
    /// Proposed tokens that were accepted.
    pub spec_decode_num_accepted_tokens_total: u64,
    /// Number of drafter runs.
    pub spec_decode_num_drafts_total: u64,
    /// Running requests.
    pub requests_processing: u64,
    /// Queued requests.
    pub requests_deferred: u64,
    /// Average number of requests per decode pass.
    pub n_busy_slots_per_decode: f64,
    /// The share of KV memory that running requests hold, of the model that ran last: 0 to 1.
    pub kv_cache_usage_ratio: f64,
}

impl Metrics {
    /// The content type to send.
    pub fn content_type(&self) -> &'static str {
        CONTENT_TYPE
    }

    /// The metrics as text.
    pub fn to_text(&self) -> String {
        let counters: [(&str, &str, f64); 9] = [
            (
                "prompt_tokens_total",
                "Number of prompt tokens processed.",
                self.prompt_tokens_total as f64,
            ),
            ("prompt_seconds_total", "Prompt process time.", self.prompt_seconds_total),
            (
                "tokens_predicted_total",
                "Number of generation tokens processed.",
                self.tokens_predicted_total as f64,
            ),
            (
                "tokens_predicted_seconds_total",
                "Predict process time.",
                self.tokens_predicted_seconds_total,
            ),
            ("n_tokens_max", "Largest observed n_tokens.", self.n_tokens_max as f64),
            ("n_decode_total", "Total number of decode passes.", self.n_decode_total as f64),
            (
                "spec_decode_num_draft_tokens_total",
                "Number of draft tokens.",
                self.spec_decode_num_draft_tokens_total as f64,
            ),
            (
                "spec_decode_num_accepted_tokens_total",
                "Number of accepted draft tokens.",
                self.spec_decode_num_accepted_tokens_total as f64,
            ),
            (
                "spec_decode_num_drafts_total",
                "Number of drafts.",
                self.spec_decode_num_drafts_total as f64,
            ),
        ];
        let rate =
            |tokens: u64, seconds: f64| if seconds > 0.0 { tokens as f64 / seconds } else { 0.0 };
        let gauges: [(&str, &str, f64); 6] = [
            (
                "prompt_tokens_seconds",
                "Average prompt throughput in tokens/s.",
                rate(self.prompt_tokens_total, self.prompt_seconds_total),
            ),
            (
                "predicted_tokens_seconds",
                "Average generation throughput in tokens/s.",
                rate(self.tokens_predicted_total, self.tokens_predicted_seconds_total),
            ),
            (
                "requests_processing",
                "Number of requests processing.",
                self.requests_processing as f64,
            ),
            ("requests_deferred", "Number of requests deferred.", self.requests_deferred as f64),
            (
                "n_busy_slots_per_decode",
                "Average number of busy slots per decode pass.",
                self.n_busy_slots_per_decode,
            ),
            (
                "kv_cache_usage_ratio",
                "KV memory of running requests; 1 = all.",
                self.kv_cache_usage_ratio,
            ),
        ];
        let mut text = String::new();
        for (kind, metrics) in [("counter", counters.as_slice()), ("gauge", gauges.as_slice())] {
            for (name, help, value) in metrics {
                // Writing to a string cannot fail.
                _ = write!(
                    text,
                    "# HELP llamacpp:{name} {help}\n# TYPE llamacpp:{name} {kind}\nllamacpp:{name} {value}\n"
                );
            }
        }
        text
    }
}
