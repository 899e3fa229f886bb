//! Parallel work on all cores; without threads, as in a browser, the same work sequentially.

use std::fmt;
#[cfg(not(target_arch = "wasm32"))]
use std::{
    cell::Cell,
    collections::VecDeque,
    hint,
    sync::{
        Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

#[cfg(not(target_arch = "wasm32"))]
use rayon::{ThreadPool, ThreadPoolBuilder, Yield};

/// Multiplications from which threads pay: some microseconds.
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
        in_order(out, size, scratch, work);
    } else {
        let least = (WORTH_SHARING / 2).div_ceil(operations.div_ceil(pieces as u64));
        share(out, size, least as usize, scratch, work);
    }
}

/// All pieces on this thread.
fn in_order<S>(
    out: &mut [f32],
    size: usize,
    scratch: impl Fn() -> S,
    work: impl Fn(&mut S, usize, &mut [f32]),
) {
    let mut scratch = scratch();
    let pieces = out.chunks_mut(size).enumerate();
    pieces.for_each(|(index, piece)| work(&mut scratch, index, piece));
}

/// The threads beside the caller's, one per further core; `None` with one core, or where no threads can be started.
#[cfg(not(target_arch = "wasm32"))]
static HELPERS: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    let count = rayon::current_num_threads().checked_sub(1).filter(|count| *count > 0)?;
    let name = |index| format!("rullama-cpu-{index}");
    ThreadPoolBuilder::new().num_threads(count).thread_name(name).build().ok()
});
/// Parallel regions that have been opened: helpers watch it for work.
#[cfg(not(target_arch = "wasm32"))]
static REGIONS: AtomicUsize = AtomicUsize::new(0);
/// Helpers that watch [`REGIONS`].
#[cfg(not(target_arch = "wasm32"))]
static WATCHING: AtomicUsize = AtomicUsize::new(0);
/// Groups of pieces per thread: more balance threads of different speed, fewer read more memory in a row.
#[cfg(not(target_arch = "wasm32"))]
const GROUPS_PER_THREAD: usize = 16;
/// How often a waiting thread looks again before it sleeps: some ten microseconds. A graph has hundreds of regions a few microseconds apart,
/// while to wake a thread takes tens. It does not yield: on a busy machine, a thread that yields waits longer than one that is woken.
#[cfg(not(target_arch = "wasm32"))]
const LOOKS: usize = 1024;

/// Runs the pieces on all cores, at least `least` of them at a time. The calling thread takes its share; all threads take groups of pieces
/// until none is left.
#[cfg(not(target_arch = "wasm32"))]
fn share<S>(
    out: &mut [f32],
    size: usize,
    least: usize,
    scratch: impl Fn() -> S + Send + Sync,
    work: impl Fn(&mut S, usize, &mut [f32]) + Send + Sync,
) {
    let pieces = out.len().div_ceil(size);
    let helpers = HELPERS.as_ref().filter(|_| pieces > least && !Backoff::skips());
    let Some(helpers) = helpers else { return in_order(out, size, scratch, work) };
    let threads = helpers.current_num_threads() + 1;
    let group = least.max(pieces / (GROUPS_PER_THREAD * threads)).max(1);
    let groups = Mutex::new(out.chunks_mut(size * group).enumerate());
    let next = || groups.lock().unwrap_or_else(PoisonError::into_inner).next();
    let task = || {
        let mut memory = None;
        while let Some((index, group_out)) = next() {
            let memory = memory.get_or_insert_with(&scratch);
            for (i, piece) in group_out.chunks_mut(size).enumerate() {
                work(memory, index * group + i, piece);
            }
        }
    };
    let tasks = (threads - 1).min(pieces.div_ceil(group) - 1);
    let (waiting, running) = (AtomicUsize::new(tasks), AtomicUsize::new(tasks));
    helpers.in_place_scope(|scope| {
        for _ in 0..tasks {
            scope.spawn(|_| {
                waiting.fetch_sub(1, Ordering::Relaxed);
                task();
                running.fetch_sub(1, Ordering::Release);
            });
        }
        call(helpers);
        task();
        // The scope blocks until all tasks are done; most are by now, or will be soon.
        let all_done = wait_while(|| running.load(Ordering::Acquire) > 0);
        Backoff::learn(all_done || waiting.load(Ordering::Relaxed) < tasks);
    });
}

/// How a thread avoids helpers that do not get a core: the machine has other work, and to wait for helpers would take longer than to do theirs.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Clone, Copy, Default)]
struct Backoff {
    /// Regions to compute without helpers.
    left: u32,
    /// What `left` was last set to.
    last: u32,
}

#[cfg(not(target_arch = "wasm32"))]
thread_local! {
    static BACKOFF: Cell<Backoff> = Cell::default();
}

#[cfg(not(target_arch = "wasm32"))]
impl Backoff {
    /// Most regions between two attempts.
    const MOST: u32 = 63;

    /// Whether this region is computed without helpers.
    fn skips() -> bool {
        let Self { left, last } = BACKOFF.get();
        BACKOFF.set(Self { left: left.saturating_sub(1), last });
        left > 0
    }

    /// Takes note of whether a helper came before its work was done.
    fn learn(helped: bool) {
        let left = if helped { 0 } else { (2 * BACKOFF.get().last + 1).min(Self::MOST) };
        BACKOFF.set(Self { left, last: left });
    }
}

/// Tells helpers that there is work.
#[cfg(not(target_arch = "wasm32"))]
fn call(helpers: &ThreadPool) {
    REGIONS.fetch_add(1, Ordering::Release);
    for _ in WATCHING.load(Ordering::Relaxed)..helpers.current_num_threads() {
        WATCHING.fetch_add(1, Ordering::Relaxed);
        helpers.spawn(watch);
    }
}

/// Takes the work of one region after the other, until none is opened for a while.
#[cfg(not(target_arch = "wasm32"))]
fn watch() {
    loop {
        let seen = REGIONS.load(Ordering::Acquire);
        while rayon::yield_now() == Some(Yield::Executed) {}
        if !wait_while(|| REGIONS.load(Ordering::Acquire) == seen) {
            break;
        }
    }
    WATCHING.fetch_sub(1, Ordering::Relaxed);
}

/// Waits for a bounded time; whether the condition has ended.
#[cfg(not(target_arch = "wasm32"))]
fn wait_while(condition: impl Fn() -> bool) -> bool {
    for _ in 0..LOOKS {
        if !condition() {
            return true;
        }
        hint::spin_loop();
    }
    false
}

#[cfg(target_arch = "wasm32")]
fn share<S>(
    out: &mut [f32],
    size: usize,
    _: usize,
    scratch: impl Fn() -> S,
    work: impl Fn(&mut S, usize, &mut [f32]),
) {
    in_order(out, size, scratch, work);
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

    use super::{Backoff, JobQueue, WORTH_SHARING, for_pieces, in_parallel};

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

    #[test]
    fn helpers_that_do_not_come_are_called_ever_less_often() {
        let skipped = || (0..).take_while(|_| Backoff::skips()).count();
        assert_eq!(skipped(), 0);
        let attempts: Vec<usize> = (0..8)
            .map(|_| {
                Backoff::learn(false);
                skipped()
            })
            .collect();
        assert_eq!(attempts, [1, 3, 7, 15, 31, 63, 63, 63]);
        Backoff::learn(true);
        assert_eq!(skipped(), 0);
        Backoff::learn(false);
        assert_eq!(skipped(), 1);
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
