//! Splits work over an output into bands, one per thread.

/// Work from which starting threads pays, in operations.
const WORTH_THREADS: usize = 1 << 20;
const MAX_THREADS: usize = 16;

/// Fills `out`, which has lines of `line` elements (the last may be shorter): `fill` gets a band of lines and the index of its first.
/// Each band has its own thread if `steps`, the operations in all, are worth it.
pub(crate) fn in_bands<T: Send>(
    out: &mut [T],
    line: usize,
    steps: usize,
    fill: impl Fn(usize, &mut [T]) + Sync,
) {
    // In browsers this is an error: there is one thread.
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let bands = if steps < WORTH_THREADS { 1 } else { cores.min(MAX_THREADS) };
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
                    for (line, values) in band.chunks_mut(3).enumerate() {
                        values.iter_mut().for_each(|value| *value += first + line + 1);
                    }
                });
                let wanted: Vec<usize> = (0..length).map(|i| i / 3 + 1).collect();
                assert_eq!(out, wanted, "{length} values, {steps} steps");
            }
        }
    }
}
