//! Gated activations: `out = gate · σ(f(gate)) · up`, which is GELU's tanh form or SiLU, by `f`; and the soft cap of logits.

use super::{
    Kernel,
    lanes::{Lanes, WIDTH},
    run,
};

/// `gelu(gate) · up`, in the tanh form: `(1 + tanh u) / 2 = σ(2u)`.
pub(crate) fn gelu_mul(gate: &[f32], up: &[f32], out: &mut [f32]) {
    run(Gated { gate, up, out, inner: |z| 2.0 * ROOT_2_OVER_PI * (z + CUBIC * z * z * z) });
}

/// `gate · σ(gate) · up`
pub(crate) fn silu_mul(gate: &[f32], up: &[f32], out: &mut [f32]) {
    run(Gated { gate, up, out, inner: |z| z });
}

/// `cap · tanh(x / cap)`
pub(crate) fn softcap(cap: f32, x: &[f32], out: &mut [f32]) {
    run(Softcap { cap, x, out });
}

const ROOT_2_OVER_PI: f32 = 0.797_884_6;
const CUBIC: f32 = 0.044_715;

struct Gated<'a, F> {
    gate: &'a [f32],
    up: &'a [f32],
    out: &'a mut [f32],
    inner: F,
}

impl<F: Fn(f32) -> f32> Kernel for Gated<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, _: L) {
        let gates = self.gate.chunks(WIDTH);
        let rest = self.up.chunks(WIDTH).zip(self.out.chunks_mut(WIDTH));
        for (gate, (up, out)) in gates.zip(rest) {
            let (mut z, mut factor) = ([0.0; WIDTH], [0.0; WIDTH]);
            z[..gate.len()].copy_from_slice(gate);
            factor[..up.len()].copy_from_slice(up);
            // The compiler turns this loop into vectors of the level.
            for (z, factor) in z.iter_mut().zip(factor) {
                *z = *z / (1.0 + exp(-(self.inner)(*z))) * factor;
            }
            out.copy_from_slice(&z[..out.len()]);
        }
    }
}

struct Softcap<'a> {
    cap: f32,
    x: &'a [f32],
    out: &'a mut [f32],
}

impl Kernel for Softcap<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, _: L) {
        for (x, out) in self.x.chunks(WIDTH).zip(self.out.chunks_mut(WIDTH)) {
            let mut y = [0.0; WIDTH];
            y[..x.len()].copy_from_slice(x);
            for y in &mut y {
                *y = self.cap * tanh(*y / self.cap);
            }
            out.copy_from_slice(&y[..out.len()]);
        }
    }
}

/// `tanh x` within a few units in the last place (Cephes' `tanhf`).
#[inline(always)]
fn tanh(x: f32) -> f32 {
    let square = x * x;
    let p = -5.704_988_7e-3 * square + 2.063_909e-2;
    let p = (p * square - 5.373_971_7e-2) * square + 1.333_144_2e-1;
    let small = x + x * square * (p * square - 3.333_328e-1);
    let large = (1.0 - 2.0 / (exp(2.0 * x.abs()) + 1.0)).copysign(x);
    if x.abs() < 0.625 { small } else { large }
}

/// `e^x` within two units in the last place, for `x` clamped to where the result is a normal number (Cephes' `expf`).
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// Added to a number of less than 2²² in magnitude, it leaves the nearest integer in the lowest bits.
    const TO_INTEGER: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + TO_INTEGER;
    let n = shifted - TO_INTEGER;
    // ln 2 in two parts, the first of few bits.
    let r = x - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let p = 1.987_569_1e-4 * r + 1.398_199_9e-3;
    let p = (p * r + 8.333_452e-3) * r + 4.166_579_6e-2;
    let p = (p * r + 1.666_666_5e-1) * r + 0.5;
    let power = (shifted.to_bits() << 23).wrapping_add(1.0_f32.to_bits());
    (p * r * r + r + 1.0) * f32::from_bits(power)
}

#[cfg(test)]
mod tests {
    use super::{exp, gelu_mul, silu_mul, softcap};

    #[test]
    fn exponentials_are_exact_to_three_units_in_the_last_place() {
        for i in -870..=880 {
            let x = i as f32 / 10.0;
            let wanted = f64::from(x).exp();
            let error = (f64::from(exp(x)) / wanted - 1.0).abs();
            assert!(error < 3.0 * f64::from(f32::EPSILON) / 2.0, "e^{x}: {error:e}");
        }
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(f32::NEG_INFINITY) < 1e-37 && exp(f32::INFINITY).is_finite());
    }

    #[test]
    fn soft_caps_are_exact_to_a_few_units_in_the_last_place() {
        let mut x: Vec<f32> = (-4000..=4000).map(|i| i as f32 / 20.0).collect();
        x.extend([1e-30, -1e-9, 3e38, f32::INFINITY, f32::NEG_INFINITY]);
        let mut out = vec![f32::NAN; x.len()];
        softcap(30.0, &x, &mut out);
        for (x, got) in x.iter().zip(&out) {
            let wanted = 30.0 * (f64::from(*x) / 30.0).tanh();
            let error = (f64::from(*got) - wanted).abs();
            assert!(
                error <= 3.0 * f64::from(f32::EPSILON) * wanted.abs(),
                "{x}: {got}, not {wanted}"
            );
        }
        softcap(30.0, &[f32::NAN], &mut out[..1]);
        assert!(out[0].is_nan());
    }

    /// The argument of the exponential is rounded a few times, which counts as often as it is large; below `e^-87` all results are 0 in effect.
    #[test]
    fn gated_activations_equal_their_definition() {
        let gate: Vec<f32> = (-500..=500).map(|i| i as f32 / 40.0).collect();
        let up: Vec<f32> = (0..gate.len()).map(|i| 1.0 + (i % 7) as f32).collect();
        let (mut gelu, mut silu) = (vec![f32::NAN; gate.len()], vec![f32::NAN; gate.len()]);
        gelu_mul(&gate, &up, &mut gelu);
        silu_mul(&gate, &up, &mut silu);
        for (i, (z, up)) in gate.iter().zip(&up).enumerate() {
            let (z, up) = (f64::from(*z), f64::from(*up));
            let u = 2.0 * (2.0 / std::f64::consts::PI).sqrt() * (z + 0.044_715 * z * z * z);
            for (got, inner) in [(gelu[i], u), (silu[i], z)] {
                let wanted = z / (1.0 + (-inner).exp()) * up;
                let bound = (8.0 + 8.0 * inner.abs()) * f64::from(f32::EPSILON) * wanted.abs();
                let error = (f64::from(got) - wanted).abs();
                assert!(error <= bound + 1e-34, "{z}: {got}, not {wanted}");
            }
        }
        let mut out = [0.0];
        gelu_mul(&[f32::NAN], &[1.0], &mut out);
        assert!(out[0].is_nan());
    }
}
