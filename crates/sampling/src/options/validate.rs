//! Checks that option values are in range.

use super::SamplingOptions;
use crate::sampling::SamplingError;

/// Largest `top_logprobs`.
const MAX_TOP_LOGPROBS: u8 = 20;

impl SamplingOptions {
    /// Refuses values out of range. Values that switch an option off are accepted.
    pub fn validate(&self) -> Result<(), SamplingError> {
        self.validate_any_sign()?;
        self.validate_not_negative()?;
        self.validate_integers()?;
        // The inverse of a subnormal number is infinite, and so would be the penalised logits.
        let penalty = self.repeat_penalty;
        check("repeat_penalty", penalty, "above 0 and finite", |_| {
            penalty > 0.0 && penalty.is_finite() && penalty.recip().is_finite()
        })?;
        for &bias in self.logit_bias.values() {
            check("logit_bias", bias, "finite numbers", f64::is_finite)?;
        }
        Ok(())
    }

    fn validate_any_sign(&self) -> Result<(), SamplingError> {
        let options = [
            ("temperature", self.temperature),
            ("presence_penalty", self.presence_penalty),
            ("frequency_penalty", self.frequency_penalty),
            ("top_n_sigma", self.top_n_sigma),
        ];
        for (option, value) in options {
            check(option, value, "a finite number", f64::is_finite)?;
        }
        Ok(())
    }

    fn validate_not_negative(&self) -> Result<(), SamplingError> {
        let options = [
            ("top_p", self.top_p),
            ("min_p", self.min_p),
            ("typical_p", self.typical_p),
            ("dry_multiplier", self.dry_multiplier),
            ("dry_base", self.dry_base),
            ("xtc_probability", self.xtc_probability),
            ("xtc_threshold", self.xtc_threshold),
            ("dynatemp_range", self.dynatemp_range),
            ("dynatemp_exponent", self.dynatemp_exponent),
            ("mirostat_tau", self.mirostat_tau),
            ("mirostat_eta", self.mirostat_eta),
        ];
        for (option, value) in options {
            check(option, value, "a finite number not below 0", |v| v.is_finite() && v >= 0.0)?;
        }
        Ok(())
    }

    fn validate_integers(&self) -> Result<(), SamplingError> {
        let window = "-1 (whole context), 0 (off) or a number of tokens";
        check("repeat_last_n", self.repeat_last_n, window, |n| n >= -1.0)?;
        check("dry_penalty_last_n", self.dry_penalty_last_n, window, |n| n >= -1.0)?;
        check("dry_allowed_length", self.dry_allowed_length, "not below 0", |n| n >= 0.0)?;
        check("mirostat", self.mirostat, "0, 1 or 2", |version| version <= 2.0)?;
        check("top_logprobs", self.top_logprobs, "from 0 to 20", |n| {
            n <= f64::from(MAX_TOP_LOGPROBS)
        })
    }
}

fn check(
    option: &'static str,
    value: impl Into<f64>,
    expected: &'static str,
    is_valid: impl Fn(f64) -> bool,
) -> Result<(), SamplingError> {
    let got = value.into();
    if is_valid(got) { Ok(()) } else { Err(SamplingError::OutOfRange { option, expected, got }) }
}
