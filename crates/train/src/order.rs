//! Random numbers and shuffles that depend only on a seed: the same on every target, and computable for any step without the steps before
//! it.

/// A SplitMix64 generator.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// The generator for a seed and a stream.
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

    /// A number in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The indices from 0 to `count`, shuffled.
pub(crate) fn shuffled(count: usize, seed: u64, stream: u64) -> Vec<usize> {
    let mut random = Random::new(seed, stream);
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        // The modulo bias of 64 bits is negligible for any number of examples.
        let other = (random.next() % (last as u64 + 1)) as usize;
        order.swap(last, other);
    }
    order
}

/// The indices of a step's examples: each epoch takes all of them once, in a new order.
pub(crate) fn batch(count: usize, each: usize, step: u32, seed: u64) -> Vec<usize> {
    let first = step as usize * each;
    let mut known: Option<(usize, Vec<usize>)> = None;
    (first..first + each)
        .map(|at| {
            let epoch = at / count;
            if known.as_ref().is_none_or(|(of, _)| *of != epoch) {
                known = Some((epoch, shuffled(count, seed, epoch as u64)));
            }
            known.as_ref().map_or(0, |(_, order)| order[at % count])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::batch;

    #[test]
    fn every_example_is_taken_once_per_epoch() {
        let taken: Vec<usize> = (0..7).flat_map(|step| batch(5, 3, step, 1)).collect();
        for epoch in taken[..20].chunks_exact(5) {
            let mut epoch = epoch.to_vec();
            epoch.sort_unstable();
            assert_eq!(epoch, [0, 1, 2, 3, 4]);
        }
        assert_ne!(taken[..5], taken[5..10]);
        assert_eq!(batch(5, 3, 4, 1), taken[12..15]);
        assert_eq!(batch(1, 2, 9, 3), [0, 0]);
    }
}
