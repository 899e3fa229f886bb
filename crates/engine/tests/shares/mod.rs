//! The variants of the suite, shared out over cores: naga takes a minute for all of them on one.

use std::{num::NonZero, thread};

use rullama_engine::{
    gpu::Dialect,
    suite::{Variant, variants},
};

/// The variants that one core checks.
#[derive(Clone, Copy)]
pub(crate) struct Share {
    first: usize,
    step: usize,
}

impl Share {
    /// Those in naga's dialect.
    pub(crate) fn variants(self) -> impl Iterator<Item = Variant> {
        let all = variants().into_iter().filter(|variant| variant.is_in(Dialect::Naga));
        all.skip(self.first).step_by(self.step)
    }
}

/// Calls a function for every share of the variants, each on a core of its own.
pub(crate) fn on_all_cores<R: Send>(check: fn(Share) -> R) -> Vec<R> {
    let step = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let start = |first| scope.spawn(move || check(Share { first, step }));
        let threads: Vec<_> = (0..step).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("a share was checked")).collect()
    })
}
