//! Quantised hand-off. Packed dot products take x as digits, int8 hi/lo pairs. Where another product makes x for one that reads it as it
//! lies, it writes the digits itself: x is quantised once instead of by every reader, and is half as much to read.

use super::{
    Product,
    choice::{Column, Cut, Wants},
    gpu::{self, DIGITS, Orders},
};
use crate::gpu::{Dispatch, GpuCall, Order, Part};

/// Reads digits that lie in memory.
pub(super) static KEPT_DIGITS: Part =
    Part { kind: "words", name: "kept_digits", source: include_str!("held/kept_digits.wgsl") };

/// The order that a product lays its result in where this one is wanted: in digits if its workgroups know them and make whole halves of
/// units at a time.
pub(super) fn laid(op: &Product, call: &GpuCall<'_>, order: Order) -> Order {
    let orders = Orders { y: Some(order), ..Orders::default() };
    let halves =
        || gpu::cut(op, call, orders).is_some_and(|(wants, cut)| makes_halves(&wants, &cut));
    match order.digits && halves() && gpu::dispatches(op, call, orders).is_some() {
        true => order,
        false => order.of_floats(),
    }
}

fn makes_halves(wants: &Wants, cut: &Cut) -> bool {
    let digits = matches!(cut.column, Column::Packed | Column::Pairs);
    let whole = |results: usize| results.is_multiple_of(Order::HALF);
    digits && whole(wants.rows / wants.rows_each) && whole(cut.made(wants))
}

/// Adds the parts by which a producer writes digits.
pub(super) fn given(cut: &Cut, order: Order, dispatch: Dispatch) -> Dispatch {
    // After gates a result is made of two rows.
    let made = cut.lanes / cut.team.size() * cut.rows / 2;
    let dispatch = Order::lay(None, dispatch.part(part!("given", "digits")));
    order.told(dispatch).constant("MADE", made as u32).constant("MADE_TWICE", 2 * made as u32)
}

/// Adds the parts by which a reader takes them.
pub(super) fn taken(row_units: usize, dispatch: Dispatch) -> Dispatch {
    dispatch
        .part(part!("held", "packed"))
        .part(&DIGITS)
        .part(&KEPT_DIGITS)
        .constant("PIECES", row_units as u32)
        .constant("GROUPS", 8u32)
}
