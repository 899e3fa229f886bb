//! How many layers keep their experts on the host: as few as fit a budget, without planning every number of them.

use std::collections::BTreeMap;

use super::memory::MemoryUse;

/// Plans that are made at most. A plan writes the model's graphs, so its time grows with the number of layers; the search needs
/// about twice the logarithm of that number, and more only where experts take hardly more than the buffers of a segment.
const MOST_PLANS: usize = 64;

/// The first of the plans 0 to `most` whose size fits the budget; where none does, the first of the smallest.
///
/// With every layer more whose experts are on the host, weights on the GPU become fewer, first segments shorter and later
/// segments more. So two plans bound all between them, and most numbers need no plan of their own.
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

    /// A size that none of the plans between these two is below.
    fn bound(&mut self, few: usize, many: usize) -> u64 {
        let (few, many) = (self.plan(few), self.plan(many));
        (self.size)(&many) - many.work + many.first_work + (few.work - few.first_work)
    }

    /// A number between these two that is worth a plan; nothing if there is none, or no plan may be made.
    fn between(&mut self, few: usize, many: usize, least: u64) -> Option<usize> {
        let middle = few.midpoint(many);
        let worth = many - few > 1 && self.bound(few, many) <= least;
        (worth && (self.known.len() < MOST_PLANS || self.known.contains_key(&middle)))
            .then_some(middle)
    }

    /// The first plan after `few`, up to `many`, that fits.
    fn first_that_fits(&mut self, few: usize, many: usize) -> Option<MemoryUse> {
        if let Some(middle) = self.between(few, many, self.budget) {
            self.plan(middle);
            let first = self.first_that_fits(few, middle);
            return first.or_else(|| self.first_that_fits(middle, many));
        }
        let last = self.plan(many);
        ((self.size)(&last) <= self.budget).then_some(last)
    }

    /// Makes every plan between these two that may be the smallest.
    fn descend(&mut self, few: usize, many: usize) {
        let least = self.smallest();
        // Of equal ones the first counts.
        let least = (self.size)(&least) - u64::from(few >= least.host_experts);
        if let Some(middle) = self.between(few, many, least) {
            self.plan(middle);
            self.descend(few, middle);
            self.descend(middle, many);
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

    /// Bytes of each layer's experts, of the buffers of its segment, and of what it adds to the first one.
    #[derive(Debug, Clone)]
    struct Layers(Vec<[u64; 3]>);

    impl Layers {
        fn plan(&self, on_host: usize) -> MemoryUse {
            let first = self.0.len() - on_host;
            let sum =
                |layers: &[[u64; 3]], part: usize| layers.iter().map(|layer| layer[part]).sum();
            let (here, host) = self.0.split_at(first);
            let (first_work, later): (u64, u64) = (sum(here, 2), sum(host, 1));
            MemoryUse {
                weights: 7 + sum(here, 0),
                host_experts: on_host,
                caches: 5,
                work: first_work + later,
                first_work,
                ..MemoryUse::default()
            }
        }

        /// Every number in turn: what the search must be equal to.
        fn one_by_one(&self, budget: u64) -> MemoryUse {
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
        fn the_search_finds_what_a_walk_finds(
            layers in prop::collection::vec([0..40_u64, 0..20_u64, 0..5_u64], 0..40),
            budget in 0..1000_u64,
        ) {
            let layers = Layers(layers);
            prop_assert_eq!(layers.search(budget).0, layers.one_by_one(budget));
        }
    }

    #[test]
    fn few_plans_are_made_of_many_layers() {
        for count in [48, 256, 4096_usize] {
            let limit = 4 * count.ilog2() as usize + 4;
            for layer in [[300_000, 20_000, 10], [20, 20_000, 10]] {
                let layers = Layers(vec![layer; count]);
                let all = layers.plan(0).gpu(false);
                for budget in [0, 1000, all / 10, all / 2, all - 1, all] {
                    let (found, plans) = layers.search(budget);
                    assert_eq!(found, layers.one_by_one(budget), "{count} layers, {budget}");
                    assert!(plans <= limit, "{plans} plans for {count} layers, {budget}");
                }
            }
        }
        // Where a segment's buffers weigh as much as its experts, the search ends all the same.
        let layers = Layers(vec![[1000, 1000, 0]; 4096]);
        assert!(layers.search(0).1 <= MOST_PLANS);
    }
}
