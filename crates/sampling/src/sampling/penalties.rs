//! Repeat, frequency and presence penalties on tokens seen `c` times in the window:
//! `l = l > 0 ? l / repeat : l · repeat`, then `l −= c · frequency + presence`.

use std::collections::BTreeMap;

use super::{change_logit, finite};

/// The three penalties.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Penalties {
    /// Divides positive logits and multiplies others; 1 = off.
    pub repeat: f32,
    /// Subtracted once per occurrence; 0 = off.
    pub frequency: f32,
    /// Subtracted once; 0 = off.
    pub presence: f32,
}

impl Penalties {
    /// Whether all penalties are off.
    pub fn is_off(&self) -> bool {
        self.repeat == 1.0 && self.frequency == 0.0 && self.presence == 0.0
    }
}

/// Lowers the logits of the tokens in `counts`. Ids outside the vocabulary are ignored.
pub fn apply(logits: &mut [f32], counts: &BTreeMap<u32, u32>, penalties: &Penalties) {
    for (&id, &count) in counts {
        let drop = finite(finite(count as f32 * penalties.frequency) + penalties.presence);
        change_logit(logits, id, |logit| {
            let scaled =
                if logit > 0.0 { logit / penalties.repeat } else { logit * penalties.repeat };
            finite(scaled) - drop
        });
    }
}
