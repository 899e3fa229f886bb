//! Vectorised kernels of the CPU executor: f32 arithmetic on weights in their file's format, compiled for several feature levels of which
//! the best one is chosen at run time (decision 0016).

mod activation;
mod block_bytes;
mod bytes;
#[cfg(any(test, not(target_arch = "wasm32")))]
mod code_books;
#[cfg(all(target_arch = "wasm32", not(test)))]
#[path = "no_code_books.rs"]
mod code_books;
mod formats;
mod gemm;
mod gemv;
mod integer;
mod integer_format;
mod k_quants;
mod lanes;
#[cfg(target_arch = "aarch64")]
mod neon;
mod nibble_bytes;
mod nibbles;
#[cfg(any(test, not(target_arch = "wasm32")))]
mod ternary;
mod unit_bytes;
mod vector;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use activation::{gelu_mul, silu_mul, softcap};
pub(crate) use gemm::{BLOCK_ROWS, GemmScratch, Panels, gemm};
pub(crate) use gemv::{Column, gemv};
pub(crate) use lanes::Lanes;
pub(crate) use vector::{add_scaled, add_scaled_in, dot, dot_in};

/// Code that is compiled for each feature level.
pub(crate) trait Kernel {
    /// What it computes.
    type Output;
    /// Runs it; must be `#[inline(always)]`, like all it calls, to be compiled with the level's features.
    fn run<L: Lanes>(self, lanes: L) -> Self::Output;
}

/// Runs a kernel on the best level of this processor.
#[cfg(target_arch = "x86_64")]
pub(crate) fn run<K: Kernel>(kernel: K) -> K::Output {
    x86::run(x86::Level::HIGHEST, kernel)
}

/// Runs a kernel on the vectors that every browser with this module has.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(crate) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(wasm::Simd128)
}

/// Runs a kernel on the best level of this processor.
#[cfg(target_arch = "aarch64")]
pub(crate) fn run<K: Kernel>(kernel: K) -> K::Output {
    neon::run(neon::Level::highest(), kernel)
}

/// Runs a kernel on the only level of this target.
#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
)))]
pub(crate) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(lanes::Plain)
}

#[cfg(test)]
mod tests;
