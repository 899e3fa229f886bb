//! Timing prefill and decode.

use std::time::{Duration, Instant};

use anyhow::Result;
use pollster::block_on;
use rullama_engine::graph::Cost;
use rullama_runtime::{
    Session,
    session::{DeviceSampling, DraftCounts, DraftOptions, MAX_DRAFTS},
};

/// Steps queued to measure the host time.
const QUEUED_STEPS: usize = 32;

/// A test.
#[derive(Debug, Clone, Copy)]
pub(super) struct Test {
    /// Prefill, or decode.
    pub(super) prefill: bool,
    /// Number of tokens.
    pub(super) tokens: usize,
    /// Tokens already in the context.
    pub(super) depth: usize,
}

impl Test {
    /// The name as in llama-bench.
    pub(super) fn name(&self) -> String {
        let Self { prefill, tokens, depth } = self;
        let kind = if *prefill { "pp" } else { "tg" };
        if *depth == 0 { format!("{kind}{tokens}") } else { format!("{kind}{tokens} @ d{depth}") }
    }

    /// Tokens in the context before the test; at least one, because a session computes from the last one on.
    fn base(&self) -> usize {
        self.depth.max(1)
    }

    /// Context required.
    pub(super) fn context(&self) -> usize {
        self.base() + self.tokens
    }
}

/// A test and the times of its repetitions.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) test: Test,
    pub(super) times: Vec<Duration>,
    /// Cost of one decode step at the end of the test.
    pub(super) cost: Option<Cost>,
    /// Draft counts and the speed-up over decoding without drafts.
    pub(super) drafts: Option<(DraftCounts, f64)>,
}

impl Measured {
    /// Tokens per second: mean and standard deviation over the repetitions.
    pub(super) fn speed(&self) -> (f64, f64) {
        let rates: Vec<f64> =
            self.times.iter().map(|time| self.test.tokens as f64 / time.as_secs_f64()).collect();
        let count = rates.len() as f64;
        let mean = rates.iter().sum::<f64>() / count;
        let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
        (mean, if rates.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 })
    }
}

/// A session for measurements, and token ids to fill it.
pub(super) struct Bench {
    pub(super) session: Session,
    ids: Vec<u32>,
}

impl Bench {
    pub(super) fn new(session: Session, context: usize) -> Self {
        let vocabulary = session.model().config().vocabulary as u64;
        Self { session, ids: ids(context, vocabulary) }
    }

    /// Time to first token, cold and warm.
    pub(super) fn first_tokens(&mut self, prompt: usize) -> Result<(Duration, Duration)> {
        let prompt = prompt.min(self.ids.len() - 1);
        let mut times = [Duration::ZERO; 2];
        for time in &mut times {
            self.session.rewind(0);
            let start = Instant::now();
            self.session.extend(&self.ids[..prompt])?;
            block_on(self.session.next(DeviceSampling::Greedy))?;
            *time = start.elapsed();
        }
        Ok((times[0], times[1]))
    }

    /// Mean host time to queue a decode step on an idle GPU, and the number of steps in flight. `None` if steps are not
    /// queued.
    pub(super) fn queueing(&mut self) -> Result<Option<(Duration, usize)>> {
        let in_flight = self.session.steps_in_flight();
        if in_flight == 1 {
            return Ok(None);
        }
        self.fill(1)?;
        let mut times = Vec::new();
        for _ in 0..=QUEUED_STEPS {
            block_on(self.session.synchronize())?;
            let start = Instant::now();
            if !block_on(self.session.queue_step(DeviceSampling::Greedy))? {
                break;
            }
            times.push(start.elapsed());
        }
        // The first one is the warm-up: graphs and kernels are compiled.
        let counted = times.get(1..).filter(|times| !times.is_empty());
        let mean = |times: &[Duration]| times.iter().sum::<Duration>() / times.len() as u32;
        Ok(counted.map(|times| (mean(times), in_flight)))
    }

    /// Measures a test.
    pub(super) fn test(&mut self, test: Test, repetitions: usize) -> Result<Measured> {
        let mut times = Vec::new();
        for _ in 0..=repetitions {
            self.fill(test.base())?;
            let start = Instant::now();
            if test.prefill {
                self.session.extend(&self.ids[test.base()..test.context()])?;
                block_on(self.session.prefill(&mut |_| true))?;
                block_on(self.session.synchronize())?;
            } else {
                for _ in 0..test.tokens {
                    block_on(self.session.next(DeviceSampling::Greedy))?;
                }
            }
            times.push(start.elapsed());
        }
        // The first one is the warm-up: graphs and kernels are compiled.
        times.remove(0);
        let cost = if test.prefill {
            None
        } else {
            Some(block_on(self.session.step_cost(DeviceSampling::Greedy))?)
        };
        Ok(Measured { test, times, cost, drafts: None })
    }

    /// Measures decode with drafts, right after the same test without.
    pub(super) fn drafted(
        &mut self,
        test: Test,
        repetitions: usize,
        draft: DraftOptions,
    ) -> Result<Measured> {
        let plain = self.test(test, repetitions)?.speed().0;
        self.session.draft(Some(draft))?;
        let measured = self.test(test, repetitions);
        let counts = self.session.draft_counts().unwrap_or_default();
        self.session.draft(None)?;
        let mut measured = measured?;
        measured.drafts = Some((counts, measured.speed().0 / plain));
        Ok(measured)
    }

    /// Number of tokens whose logits are bit-identical in one batched pass and in single-token passes, and number of
    /// tokens compared.
    pub(super) fn bit_identical(&mut self) -> Result<(usize, usize)> {
        let vocabulary = self.session.model().config().vocabulary;
        let tokens = MAX_DRAFTS.min(self.ids.len());
        self.session.rewind(0);
        let mut single = Vec::new();
        for id in &self.ids[..tokens] {
            self.session.extend(&[*id])?;
            single.extend(block_on(self.session.logits())?);
        }
        self.session.rewind(0);
        self.session.extend(&self.ids[..tokens])?;
        let mut batched = Vec::new();
        block_on(self.session.logits_batch_invariant(&mut |rows| batched.extend_from_slice(rows)))?;
        let bits = |row: &[f32]| row.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let rows = single.chunks(vocabulary).zip(batched.chunks(vocabulary));
        Ok((rows.filter(|(single, batched)| bits(single) == bits(batched)).count(), tokens))
    }

    /// Resets the session to the first `count` ids; all but the last are computed.
    pub(super) fn fill(&mut self, count: usize) -> Result<()> {
        self.session.set_tokens(&self.ids[..count])?;
        block_on(self.session.prefill(&mut |_| true))?;
        Ok(block_on(self.session.synchronize())?)
    }

    /// Appends the next `count` ids without computing them.
    pub(super) fn extend(&mut self, count: usize) -> Result<()> {
        let length = self.session.tokens().len();
        Ok(self.session.extend(&self.ids[length..length + count])?)
    }

    /// Maximum length of a prompt.
    pub(super) fn max_tokens(&self) -> usize {
        self.ids.len() - 1
    }

    /// Bytes of weights, caches and activations on the GPU.
    pub(super) fn gpu_bytes(&self) -> u64 {
        self.session.model().gpu_bytes() + self.session.gpu_bytes()
    }
}

/// Tokens of a profiled prefill pass.
pub(super) const CHUNK: usize = rullama_runtime::session::MAX_TOKENS;

/// Pseudo-random ids, the same in every run, so that expert routing sees no pattern.
fn ids(count: usize, vocabulary: u64) -> Vec<u32> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Fits: a vocabulary's ids are 32 bits.
        (state % vocabulary) as u32
    };
    (0..count).map(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds() {
        let test = Test { prefill: true, tokens: 10, depth: 0 };
        let times = [1, 2].map(Duration::from_secs).to_vec();
        let (mean, deviation) = Measured { test, times, cost: None, drafts: None }.speed();
        assert!((mean - 7.5).abs() < 1e-9 && (deviation - 12.5_f64.sqrt()).abs() < 1e-9);
        let times = vec![Duration::from_secs(1)];
        let (mean, deviation) = Measured { test, times, cost: None, drafts: None }.speed();
        assert_eq!((mean, deviation), (10.0, 0.0));
    }

    #[test]
    fn names() {
        let name = |prefill, depth| Test { prefill, tokens: 128, depth }.name();
        assert_eq!((name(true, 0), name(false, 8192)), ("pp128".into(), "tg128 @ d8192".into()));
    }

    #[test]
    fn ids_are_deterministic() {
        let found = ids(1000, 640);
        assert_eq!(found, ids(1000, 640));
        assert!(found.iter().all(|id| *id < 640));
        assert!(found.windows(2).any(|pair| pair[0] > pair[1]));
    }
}
