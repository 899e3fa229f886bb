//! Drafts while one request runs alone: tokens that followed the same words before go through the next pass as rows of their own. Each row is
//! computed as in a pass of its own, so a draft is accepted where it is what the row before chose, and the tokens are those without drafts.

use rullama_models::decoder::Pass;

use super::{RequestId, Scheduler, running::Running};
use crate::session::{DeviceSampling, SHORT_CONTEXT, look_up};

impl Scheduler {
    /// Decode passes that may be in flight: none may be queued before it is known which drafts are accepted.
    pub(super) fn most_in_flight(&self) -> usize {
        if self.may_draft() { 1 } else { self.passes.in_flight() }
    }

    fn may_draft(&self) -> bool {
        self.options.drafts > 0 && self.running.len() == 1 && self.queue.is_empty()
    }

    /// What may follow the last token of a request that runs alone and whose tokens the device chooses.
    pub(super) fn drafts(&self, id: RequestId, sampling: Option<DeviceSampling>) -> Vec<u32> {
        let running = self.running.first().filter(|running| running.id == id);
        match running {
            Some(running) if sampling.is_some() && self.may_draft() && running.in_flight == 0 => {
                look_up(&running.content.tokens, self.most_drafts(running))
            }
            _ => Vec::new(),
        }
    }

    /// Most drafts of a pass: rows are batch-invariant, stay within what the request may take and read alike many keys.
    fn most_drafts(&self, running: &Running) -> usize {
        let position = running.position();
        let context = match self.passes.is_short(position) {
            true => SHORT_CONTEXT,
            false => self.context(),
        };
        let limits = [
            self.options.drafts,
            Pass::GEMV_ROWS.min(self.passes.most_rows()) - 1,
            // The rings of sliding layers have room for a chunk.
            self.options.chunk.saturating_sub(1),
            running.completion.remaining().saturating_sub(1),
            context.saturating_sub(position + 1),
        ];
        limits.into_iter().min().unwrap_or(0)
    }
}

/// How many tokens of a pass count: each row's while the drafts before it are what was chosen.
pub(super) fn accepted(drafts: &[u32], chosen: &[u32]) -> usize {
    1 + drafts.iter().zip(chosen).take_while(|(draft, chosen)| draft == chosen).count()
}

#[cfg(test)]
mod tests {
    use super::accepted;

    #[test]
    fn drafts_count_up_to_the_first_that_was_not_chosen() {
        assert_eq!(accepted(&[], &[5]), 1);
        assert_eq!(accepted(&[5, 6], &[5, 6, 7]), 3);
        assert_eq!(accepted(&[5, 6], &[5, 7, 7]), 2);
        assert_eq!(accepted(&[4, 6], &[5, 6, 7]), 1);
    }
}
