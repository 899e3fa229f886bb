//! Sampling hints of a GGUF file: metadata under `general.sampling.`.

use super::{OptionWarning, SamplingOptions};

const PREFIX: &str = "general.sampling.";

impl SamplingOptions {
    /// Overrides options with a file's hints. Other keys are ignored; hints with an unknown name or an invalid value
    /// are ignored with a warning, because a bad hint must not make a model unusable.
    pub fn apply_hints<'a>(
        &mut self,
        metadata: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Vec<OptionWarning> {
        let mut warnings = Vec::new();
        for (key, value) in metadata {
            let Some(hint) = key.strip_prefix(PREFIX) else { continue };
            let mut next = self.clone();
            if !next.set_hint(hint, value) {
                warnings.push(OptionWarning::Unknown { name: key.into() });
            } else if next.validate().is_err() {
                warnings.push(OptionWarning::InvalidHint { name: key.into(), value });
            } else {
                *self = next;
            }
        }
        warnings
    }

    /// Sets the option of a hint; returns false if no hint has this name.
    fn set_hint(&mut self, hint: &str, value: f64) -> bool {
        let number = value as f32;
        match hint {
            "temp" => self.temperature = number,
            "top_k" => self.top_k = value as i32,
            "top_p" => self.top_p = number,
            "min_p" => self.min_p = number,
            "typical_p" => self.typical_p = number,
            "xtc_probability" => self.xtc_probability = number,
            "xtc_threshold" => self.xtc_threshold = number,
            "penalty_last_n" => self.repeat_last_n = value as i32,
            "penalty_repeat" => self.repeat_penalty = number,
            "mirostat" => self.mirostat = value as u8,
            "mirostat_tau" => self.mirostat_tau = number,
            "mirostat_eta" => self.mirostat_eta = number,
            _ => return false,
        }
        true
    }
}
