//! The adapters of running requests. Requests with different adapters, and requests without, share decode passes: the factors of up to
//! [`MAX_SLOTS`] adapters are the slots of a pool. Adapters that have no place in a pool take passes of their own.

use rullama_engine::executor::Device;
use rullama_models::decoder::Pass;

use super::faults::is_out_of_memory;
use crate::{
    adapters::{Adapters, MAX_SLOTS, SlotWeights, WeakAdapters},
    error::RuntimeError,
    model::Model,
};

/// Storage buffers of a dispatch that adds the LoRA of slots after a residual add. With fewer, such passes are computed by other kernels than
/// those of requests without adapters, which then take passes of their own.
const BUFFERS: u32 = 10;

/// Requests without adapters.
pub(super) const NO_ADAPTER: u64 = 0;

/// The factors that a graph reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Factors {
    /// None.
    None,
    /// Those of one request's adapters: prompts, and adapters that share no passes.
    Adapter(u64),
    /// Those of a pool of slots.
    Pool(u64),
}

/// Where decode passes find a request's factors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    factors: Factors,
    /// The adapter's word in the sequences of a pass: its slot plus one, or 0.
    word: u32,
}

struct Known {
    id: u64,
    adapters: Adapters,
    /// `None` until its first decode pass.
    place: Option<Place>,
}

struct Pool {
    id: u64,
    /// The adapters of its slots; some may have no request, or be gone.
    members: Vec<WeakAdapters>,
    slots: SlotWeights,
}

/// The adapters of running requests, by number, and the pools.
#[derive(Default)]
pub(super) struct AdapterTable {
    known: Vec<Known>,
    pools: Vec<Pool>,
    /// The last number of adapters or a pool.
    last: u64,
}

impl AdapterTable {
    /// The number of a request's adapters.
    pub(super) fn id(&mut self, adapters: Option<&Adapters>) -> u64 {
        let Some(adapters) = adapters else { return NO_ADAPTER };
        if let Some(known) = self.known.iter().find(|known| known.adapters.is(adapters)) {
            return known.id;
        }
        let id = self.next();
        self.known.push(Known { id, adapters: adapters.clone(), place: None });
        id
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Adapters by number.
    pub(super) fn get(&self, id: u64) -> Option<&Adapters> {
        self.known.iter().find(|known| known.id == id).map(|known| &known.adapters)
    }

    /// The factors of a pool.
    pub(super) fn pool(&self, id: u64) -> Option<&SlotWeights> {
        self.pools.iter().find(|pool| pool.id == id).map(|pool| &pool.slots)
    }

    pub(super) fn gpu_bytes(&self) -> u64 {
        self.pools.iter().map(|pool| pool.slots.gpu_bytes).sum()
    }

    /// Drops adapters that no request has any more. Pools stay for the next requests with the same adapters, as long as these exist.
    pub(super) fn forget(&mut self, id: u64) {
        self.known.retain(|known| known.id != id);
        let used = |pool: &Pool| self.known.iter().any(|known| known.is_in(pool.id));
        let exists = |pool: &Pool| pool.members.iter().any(|it| it.upgrade().is_some());
        self.pools.retain(|pool| used(pool) || exists(pool));
    }

    /// The factors of a request's decode passes, and its word in their sequences.
    pub(super) fn place(&self, id: u64) -> (Factors, u32) {
        let known = self.known.iter().find(|known| known.id == id);
        match known.map(|known| known.place) {
            None => (Factors::None, 0),
            Some(place) => {
                let Place { factors, word } = place.unwrap_or(Place::own(id));
                (factors, word)
            }
        }
    }

    /// Whether a pool is still there.
    pub(super) fn has(&self, factors: Factors) -> bool {
        match factors {
            Factors::None => true,
            Factors::Adapter(id) => self.get(id).is_some(),
            Factors::Pool(id) => self.pool(id).is_some(),
        }
    }

    /// Whether all adapters have a place.
    pub(super) fn is_placed(&self) -> bool {
        self.known.iter().all(|known| known.place.is_some())
    }

    /// Gives all adapters a place: a slot of a pool, where there is room for them.
    ///
    /// # Errors
    /// If the device fails; without memory for a pool, adapters take passes of their own.
    pub(super) async fn share(&mut self, model: &Model, pass: &Pass) -> Result<(), RuntimeError> {
        while let Some(index) = self.known.iter().position(|known| known.place.is_none()) {
            let place = match self.find_place(index, model, pass).await {
                Err(error) if is_out_of_memory(&error) => None,
                found => found?,
            };
            let known = &mut self.known[index];
            known.place = Some(place.unwrap_or(Place::own(known.id)));
        }
        Ok(())
    }

    async fn find_place(
        &mut self,
        index: usize,
        model: &Model,
        pass: &Pass,
    ) -> Result<Option<Place>, RuntimeError> {
        let adapters = self.known[index].adapters.clone();
        if !adapters.can_share() {
            return Ok(None);
        }
        let slot = |pool: &Pool| pool.members.iter().position(|member| member.is(&adapters));
        let found = self.pools.iter().find_map(|pool| Some(Place::slot(pool.id, slot(pool)?)));
        if found.is_some() {
            return Ok(found);
        }
        for number in 0..self.pools.len() {
            // With adapters that have no request, if there is room for them.
            for idle in [true, false] {
                let members = self.members(number, idle);
                let members: Vec<Adapters> =
                    members.into_iter().chain([adapters.clone()]).collect();
                if let Some(slots) = model.share_adapters(&members, pass).await? {
                    return Ok(Some(self.replace(number, &members, slots)));
                }
            }
        }
        let alone = [adapters];
        let Some(slots) = model.share_adapters(&alone, pass).await? else { return Ok(None) };
        let id = self.next();
        self.pools.push(Pool { id, members: vec![alone[0].downgrade()], slots });
        Ok(Some(Place::slot(id, 0)))
    }

    /// The adapters of a pool that requests have, and if asked for, those that none has.
    fn members(&self, number: usize, idle: bool) -> Vec<Adapters> {
        let pool = &self.pools[number];
        let used = |adapters: &Adapters| {
            self.known.iter().any(|known| known.is_in(pool.id) && known.adapters.is(adapters))
        };
        let members = pool.members.iter().filter_map(WeakAdapters::upgrade);
        members.filter(|adapters| idle || used(adapters)).collect()
    }

    /// Replaces a pool by one with other members, of which the last is new; its place.
    fn replace(&mut self, number: usize, members: &[Adapters], slots: SlotWeights) -> Place {
        let (id, before) = (self.next(), self.pools[number].id);
        let members: Vec<WeakAdapters> = members.iter().map(Adapters::downgrade).collect();
        for known in self.known.iter_mut().filter(|known| known.is_in(before)) {
            let slot = members.iter().position(|member| member.is(&known.adapters));
            known.place = slot.map(|slot| Place::slot(id, slot));
        }
        let last = members.len() - 1;
        self.pools[number] = Pool { id, members, slots };
        Place::slot(id, last)
    }
}

impl Known {
    fn is_in(&self, pool: u64) -> bool {
        self.place.is_some_and(|place| place.factors == Factors::Pool(pool))
    }
}

impl Place {
    fn own(id: u64) -> Self {
        Self { factors: Factors::Adapter(id), word: 0 }
    }

    fn slot(pool: u64, slot: usize) -> Self {
        debug_assert!(slot < MAX_SLOTS, "a pool has few slots");
        Self { factors: Factors::Pool(pool), word: slot as u32 + 1 }
    }
}

/// Whether requests without adapters are computed alike in passes with and without slots.
pub(super) fn mixes_plain_rows(device: &Device) -> bool {
    match device {
        Device::Cpu => true,
        Device::Gpu(gpu) => gpu.facts().storage_buffers >= BUFFERS,
    }
}
