//! Work that falls into bands, shared among the machine's cores.

/// Steps of work from which on threads are worth their start.
const WORTH_THREADS: usize = 1 << 20;
const MOST_THREADS: usize = 16;

/// Fills `out`, which has lines of `line` numbers (the last one may be shorter), band by band: `fill` gets the index of a band's
/// first line and the band. Bands have threads of their own where there are cores and so many steps of work are worth it.
pub(crate) fn in_bands<T: Send>(
    out: &mut [T],
    line: usize,
    steps: usize,
    fill: impl Fn(usize, &mut [T]) + Sync,
) {
    // Browsers have one thread for us and say so by an error.
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let bands = if steps < WORTH_THREADS { 1 } else { cores.min(MOST_THREADS) };
    if bands == 1 {
        return fill(0, out);
    }
    let lines = out.len().div_ceil(line).div_ceil(bands).max(1);
    std::thread::scope(|scope| {
        for (index, band) in out.chunks_mut(lines * line).enumerate() {
            let fill = &fill;
            scope.spawn(move || fill(index * lines, band));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::{WORTH_THREADS, in_bands};

    #[test]
    fn every_line_is_filled_once() {
        for steps in [0, WORTH_THREADS] {
            for length in [0, 1, 7, 100, 101] {
                let mut out = vec![0; length];
                in_bands(&mut out, 3, steps, |first, band| {
                    for (line, numbers) in band.chunks_mut(3).enumerate() {
                        numbers.iter_mut().for_each(|number| *number += first + line + 1);
                    }
                });
                let wanted: Vec<usize> = (0..length).map(|i| i / 3 + 1).collect();
                assert_eq!(out, wanted, "{length} numbers, {steps} steps");
            }
        }
    }
}
