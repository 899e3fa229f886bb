//! LoRA of rows with different adapters: `y[t] = base[t] + B[s] (A[s] x[t])`, where `s` is the adapter slot of the row's sequence. The factors of all slots
//! are two weights, padded with zeros to the largest rank, which changes no bit. Rows without an adapter are copied.

pub(crate) mod cases;
mod gpu;

pub(in crate::ops::matmul) use gpu::SlotPlan;

use rullama_gguf::DType;

use crate::{
    cpu::{CpuCall, Weight},
    gpu::{Dispatch, GpuCall},
    graph::{Element, Graph, Op, Type, Value},
    ops::{
        Sequences,
        matmul::{
            op::SlotFactors,
            reference::{RowBatch, matmul_rows},
        },
    },
    threads::for_pieces,
};

/// Rows of `B` that the reference multiplies at a time.
const ROWS: usize = 8;

/// Adds the LoRA of each row's slot. Inputs: base `[t, r]`, x `[t, k]`, `A`, `B`, sequences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotLora;

impl Graph {
    /// `base` `[t, r]` with the LoRA of each row's slot, for `x` `[t, k]`.
    pub fn slot_lora(&mut self, base: Value, x: Value, factors: &SlotFactors) -> Value {
        let SlotFactors { a, b, sequences } = *factors;
        self.apply(SlotLora, &[base, x, a, b, sequences])
    }
}

/// The slot that a sequence's words name, if any.
fn slot(words: &[u32], slots: usize) -> Option<usize> {
    (words[Sequences::ADAPTER] as usize).min(slots).checked_sub(1)
}

impl Op for SlotLora {
    fn name(&self) -> &'static str {
        "slot_lora"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let [base, x, a, b, sequences] = inputs else { panic!("slot_lora takes five inputs") };
        let (t, rank) = (base.shape.rows(), b.shape.width());
        let plain = |ty: &Type| {
            matches!(ty.element, Element::Weight(DType::F16) | Element::Weight(DType::F32))
        };
        let fits = plain(a)
            && plain(b)
            && rank.is_multiple_of(4)
            && x.shape.rows() == t
            && a.shape.width() == x.shape.width()
            && a.shape.rows() / rank * rank == a.shape.rows()
            && b.shape.rows() == a.shape.rows() / rank * base.shape.width()
            && sequences.shape.rows() == t
            && sequences.shape.width() > Sequences::ADAPTER;
        assert!(fits, "slot_lora: {base} and {x} with A {a}, B {b} of {sequences}");
        vec![(*base).clone()]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, a, b, words) = (call.f32(1), call.weight(2), call.weight(3), call.u32(4));
        let (rank, rows) = (b.shape.width(), call.input(0).shape.width());
        let slots = a.shape.rows() / rank;
        let slots: Vec<Option<usize>> =
            words.chunks_exact(call.input(4).shape.width()).map(|it| slot(it, slots)).collect();
        let mut z = vec![0.0; slots.len() * rank];
        let rows_of_x = x.chunks_exact(a.shape.width());
        let batches: Vec<RowBatch<'_>> = (0..)
            .zip(slots.iter().zip(rows_of_x))
            .filter_map(|(t, (slot, x))| {
                Some(RowBatch { first_row: (*slot)? * rank, columns: vec![(t, x)] })
            })
            .collect();
        matmul_rows(&a, rank, (&batches, true), &mut z);
        let mut y = call.out(0);
        y.copy_from_slice(&call.f32(0));
        for ((slot, z), y) in slots.iter().zip(z.chunks_exact(rank)).zip(y.chunks_exact_mut(rows)) {
            if let Some(slot) = slot {
                add_up(&b, slot * rows, z, y);
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::dispatches(call)
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        let [base, _, a, b, _] = inputs else { return 0 };
        2 * base.shape.rows() as u64 * slot_elements(a, b) as u64
    }
}

/// Elements of the factors of one slot.
pub(in crate::ops::matmul) fn slot_elements(a: &Type, b: &Type) -> usize {
    let slots = a.shape.rows() / b.shape.width();
    (a.shape.len() + b.shape.len()) / slots.max(1)
}

/// `y[r] += Σ B[first + r, i] · z[i]`, in the order of `i`: zeros between change no bit.
fn add_up(b: &Weight, first: usize, z: &[f32], y: &mut [f32]) {
    let operations = (y.len() * z.len()) as u64;
    let scratch = || vec![0.0; ROWS * z.len()];
    for_pieces(y, ROWS, operations, scratch, |decoded: &mut Vec<f32>, block, y| {
        for (r, row) in decoded.chunks_exact_mut(z.len()).take(y.len()).enumerate() {
            b.row(first + block * ROWS + r, row);
        }
        let mut sums = [0.0; ROWS];
        for (i, value) in z.iter().enumerate() {
            for (r, sum) in sums.iter_mut().enumerate() {
                *sum += decoded[r * z.len() + i] * value;
            }
        }
        y.iter_mut().zip(sums).for_each(|(y, sum)| *y += sum);
    });
}
