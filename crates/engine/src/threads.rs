//! Parallel work on all cores; without threads, as in a browser, the same work sequentially.

use std::fmt;
#[cfg(not(target_arch = "wasm32"))]
use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

#[cfg(not(target_arch = "wasm32"))]
use rayon::prelude::*;

/// Multiplications from which threads pay: some tens of microseconds.
const WORTH_SHARING: u64 = 1 << 17;

/// Fills `out` in pieces of `size` elements (the last may be shorter), each by one call of `work`, which gets the piece's index and scratch
/// memory of its thread. `operations` is the cost of all pieces, in multiplications.
pub(crate) fn for_pieces<S>(
    out: &mut [f32],
    size: usize,
    operations: u64,
    scratch: impl Fn() -> S + Send + Sync,
    work: impl Fn(&mut S, usize, &mut [f32]) + Send + Sync,
) {
    if size == 0 {
        return;
    }
    let pieces = out.len().div_ceil(size);
    if operations < WORTH_SHARING || pieces < 2 {
        let mut scratch = scratch();
        let pieces = out.chunks_mut(size).enumerate();
        pieces.for_each(|(index, piece)| work(&mut scratch, index, piece));
    } else {
        let least = (WORTH_SHARING / 2).div_ceil(operations.div_ceil(pieces as u64));
        share(out, size, least as usize, scratch, work);
    }
}

/// Runs the pieces on all cores, at least `least` of them per task.
#[cfg(not(target_arch = "wasm32"))]
fn share<S>(
    out: &mut [f32],
    size: usize,
    least: usize,
    scratch: impl Fn() -> S + Send + Sync,
    work: impl Fn(&mut S, usize, &mut [f32]) + Send + Sync,
) {
    let pieces = out.par_chunks_mut(size).enumerate().with_min_len(least);
    pieces.for_each_init(scratch, |scratch, (index, piece)| work(scratch, index, piece));
}

#[cfg(target_arch = "wasm32")]
fn share<S>(
    out: &mut [f32],
    size: usize,
    _: usize,
    scratch: impl Fn() -> S,
    work: impl Fn(&mut S, usize, &mut [f32]),
) {
    let mut scratch = scratch();
    let pieces = out.chunks_mut(size).enumerate();
    pieces.for_each(|(index, piece)| work(&mut scratch, index, piece));
}

/// Calls `work` with each item, on several threads. They are its own: those of the pool may be busy compiling.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn in_parallel<T: Send>(
    items: impl ExactSizeIterator<Item = T> + Send,
    work: impl Fn(T) + Sync,
) {
    const MOST: usize = 8;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(MOST).min(items.len());
    if threads < 2 {
        return items.for_each(work);
    }
    let items = Mutex::new(items);
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let each = || std::iter::from_fn(next).for_each(&work);
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| _ = scope.spawn(each));
        each();
    });
}

/// Calls `work` with each item.
#[cfg(target_arch = "wasm32")]
pub(crate) fn in_parallel<T>(items: impl Iterator<Item = T>, work: impl Fn(T)) {
    items.for_each(work);
}

/// Background jobs that never outlive their owner. Dropping the queue discards the jobs that have not started and waits for
/// those that run, so that whatever a job holds (a GPU device, say) is released before the owner's drop returns: a driver
/// must not be torn down by a worker thread while the process exits.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Default)]
pub(crate) struct JobQueue(Arc<Shared>);

#[cfg(not(target_arch = "wasm32"))]
type Job = Box<dyn FnOnce() + Send>;

/// State shared by the queue and the worker threads. Workers hold no job outside of [`Shared::run_next`].
#[cfg(not(target_arch = "wasm32"))]
#[derive(Default)]
struct Shared {
    jobs: Mutex<Jobs>,
    idle: Condvar,
}

#[cfg(not(target_arch = "wasm32"))]
#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    running: usize,
}

#[cfg(not(target_arch = "wasm32"))]
impl JobQueue {
    /// Runs a job on a worker thread.
    pub(crate) fn spawn(&self, job: impl FnOnce() + Send + 'static) {
        self.0.lock().waiting.push_back(Box::new(job));
        let shared = Arc::clone(&self.0);
        rayon::spawn(move || shared.run_next());
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Shared {
    /// Jobs run outside of the lock, so that a panic cannot leave it in a bad state.
    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_next(&self) {
        let job = {
            let mut jobs = self.lock();
            let Some(job) = jobs.waiting.pop_front() else { return };
            jobs.running += 1;
            job
        };
        // The panic hook has already reported a panic, and the receiver of the job's result sees a closed channel; without `catch_unwind`,
        // rayon would abort the process.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
        self.lock().running -= 1;
        self.idle.notify_all();
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Drop for JobQueue {
    fn drop(&mut self) {
        // Dropped outside of the lock: what a job holds may take a while to release.
        let discarded = std::mem::take(&mut self.0.lock().waiting);
        drop(discarded);
        let mut jobs = self.0.lock();
        while jobs.running > 0 {
            jobs = self.0.idle.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Without threads, a job runs when it is spawned.
#[cfg(target_arch = "wasm32")]
#[derive(Default)]
pub(crate) struct JobQueue;

#[cfg(target_arch = "wasm32")]
impl JobQueue {
    /// Runs a job now.
    #[expect(clippy::unused_self, reason = "the native queue keeps its jobs")]
    pub(crate) fn spawn(&self, job: impl FnOnce()) {
        job();
    }
}

impl fmt::Debug for JobQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobQueue")
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc, Barrier,
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    use super::{JobQueue, WORTH_SHARING, for_pieces, in_parallel};

    #[test]
    fn every_item_is_worked_on_once() {
        for items in [0, 1, 2, 100] {
            let times: Vec<AtomicUsize> = (0..items).map(|_| AtomicUsize::new(0)).collect();
            in_parallel(times.iter(), |times| _ = times.fetch_add(1, Ordering::Relaxed));
            assert!(times.iter().all(|times| times.load(Ordering::Relaxed) == 1), "{items} items");
        }
    }

    /// Every piece is filled once, by its index, in parallel or not.
    fn check(len: usize, size: usize, operations: u64) {
        let mut out = vec![0.0; len];
        for_pieces(
            &mut out,
            size,
            operations,
            || 0,
            |calls, index, piece| {
                *calls += 1;
                assert!(piece.len() == size || (index + 1) * size > len);
                piece.iter_mut().for_each(|x| *x += (index + 1) as f32);
            },
        );
        let wanted: Vec<f32> = (0..len).map(|i| (i / size + 1) as f32).collect();
        assert_eq!(out, wanted, "{len} in pieces of {size}, {operations} operations");
    }

    #[test]
    fn every_piece_is_filled_once() {
        for operations in [0, 1, WORTH_SHARING, u64::MAX] {
            for (len, size) in [(0, 1), (1, 1), (3, 7), (1000, 1), (1000, 3), (4096, 64)] {
                check(len, size, operations);
            }
        }
    }

    #[test]
    fn regions_nested_in_a_region_are_filled() {
        let mut out = vec![0.0; 64 * 64];
        for_pieces(
            &mut out,
            64,
            u64::MAX,
            || (),
            |(), outer, piece| {
                let fill = |(): &mut (), inner: usize, x: &mut [f32]| x[0] = (outer + inner) as f32;
                for_pieces(piece, 1, u64::MAX, || (), fill);
            },
        );
        for (i, x) in out.iter().enumerate() {
            assert_eq!(*x, (i / 64 + i % 64) as f32);
        }
    }

    /// A stand-in for the device that jobs hold.
    struct Held(Arc<AtomicUsize>);

    impl Drop for Held {
        fn drop(&mut self) {
            // Drivers take a while, too.
            std::thread::sleep(Duration::from_millis(5));
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn nothing_a_job_holds_outlives_the_queue() {
        for round in 0..20 {
            let (alive, ran) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let queue = JobQueue::default();
            let started = Arc::new(Barrier::new(2));
            for job in 0..64 {
                alive.fetch_add(1, Ordering::SeqCst);
                let (held, ran) = (Held(Arc::clone(&alive)), Arc::clone(&ran));
                let started = (job == 0).then(|| Arc::clone(&started));
                queue.spawn(move || {
                    if let Some(started) = started {
                        started.wait();
                    }
                    std::thread::sleep(Duration::from_millis(round % 3));
                    ran.fetch_add(1, Ordering::SeqCst);
                    drop(held);
                });
            }
            started.wait();
            drop(queue);
            assert_eq!(alive.load(Ordering::SeqCst), 0, "round {round}");
            // No discarded job runs later.
            let before = ran.load(Ordering::SeqCst);
            assert!(before >= 1);
            std::thread::sleep(Duration::from_millis(5));
            assert_eq!(ran.load(Ordering::SeqCst), before, "round {round}");
        }
    }

    #[test]
    fn a_panicking_job_neither_blocks_the_drop_nor_the_jobs_after_it() {
        let (sender, results) = std::sync::mpsc::channel();
        let queue = JobQueue::default();
        queue.spawn(|| panic!("a compiler bug, on purpose"));
        queue.spawn(move || sender.send(7).expect("the test waits"));
        assert_eq!(results.recv_timeout(Duration::from_secs(20)), Ok(7));
        drop(queue);
    }
}
