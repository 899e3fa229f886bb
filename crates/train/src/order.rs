//! Random numbers and orders that depend on a seed alone: the same on every target, and known for any step without the steps
//! before it.

/// Random numbers (SplitMix64).
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// Numbers of a seed and a stream.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut random = Self(seed ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93));
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// From 0 to less than 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The numbers from 0 to `count`, shuffled.
pub(crate) fn shuffled(count: usize, seed: u64, stream: u64) -> Vec<usize> {
    let mut random = Random::new(seed, stream);
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        // The bias of a remainder of 64 bits is far below anything a count of examples could show.
        let other = (random.next() % (last as u64 + 1)) as usize;
        order.swap(last, other);
    }
    order
}

/// Which examples a step takes: all are taken once before any is taken again, in a new order each time.
pub(crate) fn batch(count: usize, each: usize, step: u32, seed: u64) -> Vec<usize> {
    let first = step as usize * each;
    let mut known: Option<(usize, Vec<usize>)> = None;
    (first..first + each)
        .map(|at| {
            let round = at / count;
            if known.as_ref().is_none_or(|(of, _)| *of != round) {
                known = Some((round, shuffled(count, seed, round as u64)));
            }
            known.as_ref().map_or(0, |(_, order)| order[at % count])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::batch;

    #[test]
    fn every_example_is_taken_once_a_round() {
        let taken: Vec<usize> = (0..7).flat_map(|step| batch(5, 3, step, 1)).collect();
        for round in taken[..20].chunks_exact(5) {
            let mut round = round.to_vec();
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2, 3, 4]);
        }
        assert_ne!(taken[..5], taken[5..10]);
        assert_eq!(batch(5, 3, 4, 1), taken[12..15]);
        assert_eq!(batch(1, 2, 9, 3), [0, 0]);
    }
}
