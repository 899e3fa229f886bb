//! Time and random numbers for ids.

use std::{
    hash::{BuildHasher, RandomState},
    time::SystemTime,
};

use rullama_api::{Environment, Timestamp};

/// The system's clock, and ids that differ between requests and processes. They are no secrets.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    state: RandomState,
    count: u64,
}

impl Environment for Clock {
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }

    fn random(&mut self) -> u64 {
        self.count += 1;
        self.state.hash_one(self.count)
    }
}
