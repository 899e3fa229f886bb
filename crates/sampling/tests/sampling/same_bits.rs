//! Bit-identical results on every target: hashes of many results, checked natively and as wasm.

use rullama_sampling::{
    options::SamplingOptions,
    sampling::{Candidates, Sampler, logprobs::logprobs},
};

use crate::{off, sampler};

/// FNV-1a over 32-bit words.
struct Hash(u64);

impl Hash {
    fn add(&mut self, word: u32) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn add_candidates(&mut self, candidates: &Candidates) {
        for candidate in candidates.as_slice() {
            self.add(candidate.id);
            self.add(candidate.logit.to_bits());
        }
        candidates.probabilities().iter().for_each(|p| self.add(p.to_bits()));
    }
}

/// Logits between −12 and 12 in steps that f32 represents exactly, from a small integer generator.
fn logits(case: u32, count: usize) -> Vec<f32> {
    let mut state = case.wrapping_mul(0x9e37_79b9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state % 24_001) as f32 / 1024.0 - 12.0
    };
    (0..count).map(|_| next()).collect()
}

fn run(sampler: &mut Sampler, hash: &mut Hash, logits: &[f32]) {
    for _ in 0..4 {
        let drawn = sampler.sample(logits).expect("a token");
        hash.add(drawn.id);
        hash.add(drawn.probability.to_bits());
        sampler.accept(drawn.id);
    }
    hash.add(sampler.state().mirostat_mu.to_bits());
    hash.add_candidates(&sampler.survivors(logits, None).expect("candidates"));
}

#[track_caller]
fn check(options: &SamplingOptions, expected: u64) {
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    for case in 0..200 {
        let logits = logits(case, 20 + case as usize * 3);
        run(&mut sampler(options, case), &mut hash, &logits);
    }
    assert_eq!(hash.0, expected, "{:#018x}", hash.0);
}

#[test]
fn default_chain() {
    check(&SamplingOptions::default(), 0xe4fc_aa63_a6c0_cc0b);
}

#[test]
fn plain_draw() {
    check(&SamplingOptions { temperature: 1.3, ..off() }, 0x467f_4d83_7111_a345);
}

#[test]
fn every_filter() {
    let options = SamplingOptions {
        temperature: 0.9,
        top_k: 50,
        top_p: 0.97,
        min_p: 0.01,
        typical_p: 0.95,
        top_n_sigma: 2.5,
        repeat_penalty: 1.2,
        frequency_penalty: 0.3,
        presence_penalty: 0.1,
        xtc_probability: 0.5,
        dry_multiplier: 0.8,
        dry_allowed_length: 1,
        dynatemp_range: 0.4,
        dynatemp_exponent: 1.7,
        ..off()
    };
    check(&options, 0x7575_600a_88d5_f5dd);
}

#[test]
fn mirostat_1() {
    check(&SamplingOptions { mirostat: 1, mirostat_tau: 3.0, ..off() }, 0xe063_9fcd_257c_4283);
}

#[test]
fn mirostat_2() {
    check(&SamplingOptions { mirostat: 2, mirostat_tau: 3.0, ..off() }, 0x34a4_bf2f_ddcd_e322);
}

#[test]
fn log_probabilities() {
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    for case in 0..200 {
        let found = logprobs(&logits(case, 300), case, 20);
        hash.add(found.chosen.logprob.to_bits());
        found.top.iter().for_each(|token| hash.add(token.logprob.to_bits()));
    }
    assert_eq!(hash.0, 0x0299_2631_243e_715a, "{:#018x}", hash.0);
}
