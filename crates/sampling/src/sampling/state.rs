//! Sampler state for saved sessions: random numbers and history continue where they were.

use serde::{Deserialize, Serialize};

use super::{Sampler, SamplingError, generator::Generator, sampler::new_history};

/// A sampler's state, without its options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SamplerState {
    /// Newest tokens of the context, oldest first.
    pub history: Vec<u32>,
    /// Seed of both random streams.
    pub seed: u32,
    /// Outputs consumed by draws.
    pub draws: u64,
    /// Outputs consumed by XTC.
    pub xtc_draws: u64,
    /// Mirostat's running limit μ.
    pub mirostat_mu: f32,
}

impl Sampler {
    /// The state to save.
    pub fn state(&self) -> SamplerState {
        SamplerState {
            history: self.history.oldest_first().collect(),
            seed: self.seed,
            draws: self.draws.outputs(),
            xtc_draws: self.xtc_draws.outputs(),
            mirostat_mu: self.mirostat.mu,
        }
    }

    /// Restores a saved state; options and breakers stay. On an error the sampler is unchanged.
    pub fn restore(&mut self, state: &SamplerState) -> Result<(), SamplingError> {
        let SamplerState { history, seed, draws, xtc_draws, mirostat_mu } = state;
        if !mirostat_mu.is_finite() {
            let got = f64::from(*mirostat_mu);
            return Err(SamplingError::DamagedState { field: "mirostat limit", got });
        }
        let (draws, xtc_draws) =
            (Generator::resume(*seed, *draws)?, Generator::resume(*seed, *xtc_draws)?);
        (self.seed, self.draws, self.xtc_draws) = (*seed, draws, xtc_draws);
        self.mirostat.mu = *mirostat_mu;
        self.history = new_history(&self.options);
        self.accept_prompt(history);
        Ok(())
    }
}
