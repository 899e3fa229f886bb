//! The sampler: the chain of filters for given options, and its state between tokens.

use super::{
    Candidates, SamplingError, SequenceBreakers, bias, draw,
    dry::{self, Dry},
    generator::Generator,
    history::{History, Window},
    min_p,
    mirostat::Mirostat,
    penalties::{self, Penalties},
    temperature::{self, DynamicTemperature},
    top_k, top_n_sigma, top_p, typical,
    xtc::{self, Xtc},
};
use crate::options::SamplingOptions;

/// A sampled token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampled {
    /// The token.
    pub id: u32,
    /// Its probability among the tokens the filters kept.
    pub probability: f32,
}

/// Samples tokens. One per request: it holds the history for the penalties and the random generators.
#[derive(Debug, Clone)]
pub struct Sampler {
    pub(super) options: SamplingOptions,
    pub(super) seed: u32,
    pub(super) history: History,
    pub(super) draws: Generator,
    pub(super) xtc_draws: Generator,
    pub(super) mirostat: Mirostat,
    breakers: SequenceBreakers,
    /// Buffer for the changed logits, to avoid an allocation per token.
    scratch: Vec<f32>,
}

impl Sampler {
    /// Checks the options and starts with an empty history. The seed comes from
    /// [`resolve_seed`](crate::options::resolve_seed).
    pub fn new(options: &SamplingOptions, seed: u32) -> Result<Self, SamplingError> {
        options.validate()?;
        Ok(Self {
            options: options.clone(),
            seed,
            history: new_history(options),
            draws: Generator::new(seed),
            xtc_draws: Generator::new(seed),
            mirostat: Mirostat::new(options.mirostat_tau, options.mirostat_eta),
            breakers: SequenceBreakers::default(),
            scratch: Vec::new(),
        })
    }

    /// Sets DRY's sequence breakers; without them it searches the whole window.
    #[must_use]
    pub fn with_breakers(mut self, breakers: SequenceBreakers) -> Self {
        self.breakers = breakers;
        self
    }

    /// Adds the text tokens of the prompt to the history.
    pub fn accept_prompt(&mut self, tokens: &[u32]) {
        for &token in tokens {
            self.accept(token);
        }
    }

    /// Adds a generated token to the history. `sample` does not.
    pub fn accept(&mut self, token: u32) {
        self.history.push(token);
    }

    /// Samples a token.
    pub fn sample(&mut self, logits: &[f32]) -> Result<Sampled, SamplingError> {
        self.sample_with(logits, None)
    }

    /// Samples a token that `allow` permits: draws without the grammar first and, if that token is not allowed, masks
    /// all tokens that are not and draws again with the next random number.
    pub fn sample_with(
        &mut self,
        logits: &[f32],
        allow: Option<&dyn Fn(u32) -> bool>,
    ) -> Result<Sampled, SamplingError> {
        let mut drawn = self.draw(logits, None)?;
        if let Some(allow) = allow
            && !allow(drawn.0)
        {
            drawn = self.draw(logits, Some(allow))?;
        }
        let (id, probability) = drawn;
        if self.options.mirostat != 0 {
            self.mirostat.learn(probability);
        }
        Ok(Sampled { id, probability: probability as f32 })
    }

    /// The candidates after all filters, in the order of the draw; with `allow`, only permitted ones.
    ///
    /// Consumes XTC's random number for this token, so call it instead of sampling, not before.
    pub fn survivors(
        &mut self,
        logits: &[f32],
        allow: Option<&dyn Fn(u32) -> bool>,
    ) -> Result<Candidates, SamplingError> {
        let mut changed = std::mem::take(&mut self.scratch);
        let usable = if allow.is_some() || self.changes_logits() {
            changed.clear();
            changed.extend_from_slice(logits);
            self.change_logits(&mut changed, allow);
            &changed[..]
        } else {
            logits
        };
        let mut candidates = self.first_candidates(usable);
        self.scratch = changed;
        if candidates.is_empty() {
            return Err(SamplingError::NoCandidate { logits: logits.len() });
        }
        self.filter(&mut candidates, logits.len());
        Ok(candidates)
    }

    fn draw(
        &mut self,
        logits: &[f32],
        allow: Option<&dyn Fn(u32) -> bool>,
    ) -> Result<(u32, f64), SamplingError> {
        let survivors = self.survivors(logits, allow)?;
        draw::draw(&survivors, self.draws.uniform_f64())
            .ok_or(SamplingError::NoCandidate { logits: logits.len() })
    }

    fn changes_logits(&self) -> bool {
        let biased = !self.options.logit_bias.is_empty() || !self.options.suppress.is_empty();
        let penalised = !penalties_of(&self.options).is_off() || !dry_of(&self.options).is_off();
        biased || (penalised && self.options.mirostat == 0)
    }

    fn change_logits(&self, logits: &mut [f32], allow: Option<&dyn Fn(u32) -> bool>) {
        let options = &self.options;
        if let Some(allow) = allow {
            for (id, logit) in (0u32..).zip(logits.iter_mut()) {
                if *logit > f32::NEG_INFINITY && !allow(id) {
                    *logit = f32::NEG_INFINITY;
                }
            }
        }
        bias::apply(logits, &options.logit_bias, &options.suppress);
        if options.mirostat != 0 {
            return;
        }
        let penalties = penalties_of(options);
        if !penalties.is_off() {
            penalties::apply(logits, self.history.counts(), &penalties);
        }
        let dry = dry_of(options);
        if !dry.is_off() {
            let window = Window::of_option(options.dry_penalty_last_n);
            let context = self.history.newest_first(window);
            dry::apply(logits, &context, &dry, &self.breakers);
        }
    }

    /// The first candidates: only the top k, unless a filter needs the whole vocabulary.
    fn first_candidates(&self, logits: &[f32]) -> Candidates {
        let options = &self.options;
        let needs_all_logits = options.mirostat != 0 || options.top_n_sigma > 0.0;
        match usize::try_from(options.top_k) {
            _ if is_greedy(options) => Candidates::largest_of(logits, 1),
            Ok(k) if k > 0 && !needs_all_logits => Candidates::largest_of(logits, k),
            _ => Candidates::from_logits(logits),
        }
    }

    fn filter(&mut self, candidates: &mut Candidates, vocabulary: usize) {
        let options = &self.options;
        if options.mirostat != 0 {
            temperature::apply(candidates, options.temperature);
            match options.mirostat {
                1 => self.mirostat.truncate_1(candidates, vocabulary),
                _ => self.mirostat.truncate_2(candidates),
            }
            return;
        }
        top_n_sigma::apply(candidates, options.top_n_sigma);
        top_k::apply(candidates, options.top_k);
        typical::apply(candidates, options.typical_p);
        top_p::apply(candidates, options.top_p);
        min_p::apply(candidates, options.min_p);
        xtc::apply(candidates, &xtc_of(options), || self.xtc_draws.uniform_f32());
        match dynamic_temperature_of(options) {
            Some(dynamic) => temperature::apply_dynamic(candidates, &dynamic),
            None => temperature::apply(candidates, options.temperature),
        }
    }
}

/// Whether the chain always chooses the best token: no filter before the temperature can drop it.
fn is_greedy(options: &SamplingOptions) -> bool {
    options.temperature <= 0.0
        && options.mirostat == 0
        && options.dynatemp_range <= 0.0
        && options.typical_p >= 1.0
        && xtc_of(options).is_off()
}

pub(super) fn new_history(options: &SamplingOptions) -> History {
    History::new(
        Window::of_option(options.repeat_last_n),
        Window::of_option(options.dry_penalty_last_n),
    )
}

fn penalties_of(options: &SamplingOptions) -> Penalties {
    Penalties {
        repeat: options.repeat_penalty,
        frequency: options.frequency_penalty,
        presence: options.presence_penalty,
    }
}

fn dry_of(options: &SamplingOptions) -> Dry {
    Dry {
        multiplier: options.dry_multiplier,
        base: options.dry_base,
        allowed_length: usize::try_from(options.dry_allowed_length).unwrap_or(0),
    }
}

fn xtc_of(options: &SamplingOptions) -> Xtc {
    Xtc { probability: options.xtc_probability, threshold: options.xtc_threshold }
}

fn dynamic_temperature_of(options: &SamplingOptions) -> Option<DynamicTemperature> {
    (options.dynatemp_range > 0.0).then_some(DynamicTemperature {
        temperature: options.temperature,
        range: options.dynatemp_range,
        exponent: options.dynatemp_exponent,
    })
}
