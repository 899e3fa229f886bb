//! Searches the smallest number of layers with experts on the host that fits a budget, without estimating every number.

use std::collections::BTreeMap;

use super::memory::MemoryUse;

/// Maximum number of estimates. An estimate builds the model's graphs, so its time grows with the number of layers; the search needs
/// about twice the logarithm of that number, and more only if experts are hardly larger than the buffers of a segment.
const MAX_PLANS: usize = 64;

/// The first of the estimates for 0 to `most` layers that fits the budget; if none fits, the first of the smallest.
/// Moving one more layer's experts to the host removes weights from the GPU, shortens the first segments and adds a later segment. Two
/// estimates therefore bound all between them, and most numbers need no estimate.
pub(super) fn fewest(
    most: usize,
    plan: &dyn Fn(usize) -> MemoryUse,
    size: &dyn Fn(&MemoryUse) -> u64,
    budget: u64,
) -> MemoryUse {
    let mut search = Search { plan, size, budget, known: BTreeMap::new() };
    let none = search.plan(0);
    if most == 0 || size(&none) <= budget {
        return none;
    }
    search.plan(most);
    if let Some(fits) = search.first_that_fits(0, most) {
        return fits;
    }
    search.descend(0, most);
    search.smallest()
}

struct Search<'a> {
    plan: &'a dyn Fn(usize) -> MemoryUse,
    size: &'a dyn Fn(&MemoryUse) -> u64,
    budget: u64,
    known: BTreeMap<usize, MemoryUse>,
}

impl Search<'_> {
    fn plan(&mut self, layers: usize) -> MemoryUse {
        *self.known.entry(layers).or_insert_with(|| (self.plan)(layers))
    }

    /// A lower bound of all estimates between these two.
    fn bound(&mut self, low: usize, high: usize) -> u64 {
        let (low, high) = (self.plan(low), self.plan(high));
        (self.size)(&high) - high.work + high.first_work + (low.work - low.first_work)
    }

    /// The number between these two to estimate next; `None` if the bound rules it out or the limit is reached.
    fn between(&mut self, low: usize, high: usize, least: u64) -> Option<usize> {
        let middle = low.midpoint(high);
        let worth = high - low > 1 && self.bound(low, high) <= least;
        (worth && (self.known.len() < MAX_PLANS || self.known.contains_key(&middle)))
            .then_some(middle)
    }

    /// The first estimate after `low`, up to `high`, that fits.
    fn first_that_fits(&mut self, low: usize, high: usize) -> Option<MemoryUse> {
        if let Some(middle) = self.between(low, high, self.budget) {
            self.plan(middle);
            let first = self.first_that_fits(low, middle);
            return first.or_else(|| self.first_that_fits(middle, high));
        }
        let last = self.plan(high);
        ((self.size)(&last) <= self.budget).then_some(last)
    }

    /// Computes every estimate between these two that may be the smallest.
    fn descend(&mut self, low: usize, high: usize) {
        let least = self.smallest();
        // Among equal sizes, the first wins.
        let least = (self.size)(&least) - u64::from(low >= least.host_experts);
        if let Some(middle) = self.between(low, high, least) {
            self.plan(middle);
            self.descend(low, middle);
            self.descend(middle, high);
        }
    }

    fn smallest(&mut self) -> MemoryUse {
        let none = self.plan(0);
        self.known.values().fold(none, |best, more| {
            if (self.size)(&best) <= (self.size)(more) { best } else { *more }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    /// For each layer: bytes of its experts, of its segment's buffers, and of its share of the first segment.
    #[derive(Debug, Clone)]
    struct Layers(Vec<[u64; 3]>);

    impl Layers {
        fn plan(&self, on_host: usize) -> MemoryUse {
            let first = self.0.len() - on_host;
            let sum =
                |layers: &[[u64; 3]], part: usize| layers.iter().map(|layer| layer[part]).sum();
            let (device, host) = self.0.split_at(first);
            let (first_work, later): (u64, u64) = (sum(device, 2), sum(host, 1));
            MemoryUse {
                weights: 7 + sum(device, 0),
                host_experts: on_host,
                caches: 5,
                work: first_work + later,
                first_work,
                ..MemoryUse::default()
            }
        }

        /// Linear search, the reference.
        fn linear_search(&self, budget: u64) -> MemoryUse {
            (1..=self.0.len()).fold(self.plan(0), |best, layers| {
                let more = self.plan(layers);
                let keep = best.gpu(false) <= budget || best.gpu(false) <= more.gpu(false);
                if keep { best } else { more }
            })
        }

        fn search(&self, budget: u64) -> (MemoryUse, usize) {
            let plans = Cell::new(0);
            let plan = |layers| {
                plans.set(plans.get() + 1);
                self.plan(layers)
            };
            let found = fewest(self.0.len(), &plan, &|found| found.gpu(false), budget);
            (found, plans.get())
        }
    }

    proptest! {
        #[test]
        fn search_equals_linear_search(
            layers in prop::collection::vec([0..40_u64, 0..20_u64, 0..5_u64], 0..40),
            budget in 0..1000_u64,
        ) {
            let layers = Layers(layers);
            prop_assert_eq!(layers.search(budget).0, layers.linear_search(budget));
        }
    }

    #[test]
    fn search_needs_few_estimates() {
        for count in [48, 256, 4096_usize] {
            let limit = 4 * count.ilog2() as usize + 4;
            for layer in [[300_000, 20_000, 10], [20, 20_000, 10]] {
                let layers = Layers(vec![layer; count]);
                let all = layers.plan(0).gpu(false);
                for budget in [0, 1000, all / 10, all / 2, all - 1, all] {
                    let (found, plans) = layers.search(budget);
                    assert_eq!(found, layers.linear_search(budget), "{count} layers, {budget}");
                    assert!(plans <= limit, "{plans} plans for {count} layers, {budget}");
                }
            }
        }
        // The limit holds even if a segment's buffers are as large as its experts.
        let layers = Layers(vec![[1000, 1000, 0]; 4096]);
        assert!(layers.search(0).1 <= MAX_PLANS);
    }
}
