//! Sampling options that the device supports.

use rullama_engine::ops::{Draw, TopK};

use crate::{options::SamplingOptions, session::DeviceSampling};

/// Device sampling for these options; `None` if they need all logits or the history on the host.
pub(super) fn on_device(options: &SamplingOptions, seed: u32) -> Option<DeviceSampling> {
    let defaults = SamplingOptions::default();
    let penalised = options.repeat_last_n != 0
        && (options.repeat_penalty != 1.0
            || options.presence_penalty != 0.0
            || options.frequency_penalty != 0.0);
    let needs_host = penalised
        || options.logprobs
        || options.typical_p < 1.0
        || !options.logit_bias.is_empty()
        || !options.suppress.is_empty()
        || options.dry_multiplier != defaults.dry_multiplier
        || options.xtc_probability > 0.0
        || options.top_n_sigma > 0.0
        || options.dynatemp_range > 0.0
        || options.mirostat != 0;
    if needs_host {
        return None;
    }
    if options.temperature <= 0.0 {
        return Some(DeviceSampling::Greedy);
    }
    let top_k = usize::try_from(options.top_k).ok().filter(|k| (1..=TopK::MOST).contains(k))?;
    let draw = Draw {
        temperature: options.temperature,
        top_p: options.top_p,
        min_p: options.min_p,
        top_k: top_k as f32,
    };
    Some(DeviceSampling::Drawn { draw, seed })
}

#[cfg(test)]
mod tests {
    use super::on_device;
    use crate::{options::SamplingOptions, session::DeviceSampling};

    #[test]
    fn options_supported_by_the_device() {
        let with = |change: fn(&mut SamplingOptions)| {
            let mut options = SamplingOptions::default();
            change(&mut options);
            on_device(&options, 1)
        };
        assert!(matches!(with(|_| {}), Some(DeviceSampling::Drawn { seed: 1, .. })));
        assert_eq!(with(|o| o.temperature = 0.0), Some(DeviceSampling::Greedy));
        assert!(with(|o| o.top_k = 128).is_some());
        assert!(with(|o| o.ignore_eos = true).is_some());
        for change in [
            (|o| o.top_k = 0) as fn(&mut SamplingOptions),
            |o| o.top_k = 129,
            |o| o.repeat_penalty = 1.1,
            |o| o.presence_penalty = 0.5,
            |o| o.logprobs = true,
            |o| o.typical_p = 0.9,
            |o| o.mirostat = 2,
            |o| o.dry_multiplier = 0.8,
            |o| o.xtc_probability = 0.1,
            |o| o.top_n_sigma = 1.0,
            |o| o.dynatemp_range = 0.5,
            |o| o.suppress = vec![1],
        ] {
            assert_eq!(with(change), None);
        }
    }
}
