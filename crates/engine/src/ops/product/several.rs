//! The dispatches of a product of several tokens whose weight is read once for all of them, each to the last bit as by itself.

use super::{
    Begin, End, Product,
    choice::{Column, Cut, Wants},
    gpu::{Orders, Params, SUMS, WORDS, based, begun, bound, ended, held, y_of},
    handoff::KEPT_DIGITS,
    low::{self, Low},
};
use crate::{
    gpu::{Dispatch, GpuCall, Kernel, Part, Place, Slabs},
    ops::parts,
};

static SEVERAL: Kernel = Kernel { name: "product/several", source: include_str!("several.wgsl") };
static KEEP: Kernel = Kernel { name: "product/keep", source: include_str!("keep.wgsl") };

static KEPT: Part = Part { kind: "shared", name: "kept", source: include_str!("held/kept.wgsl") };

/// Tokens of a dispatch, at most.
const MOST_TOKENS: usize = 8;
/// Rows of a weight that a team takes at a time where x is kept; they share what is read of it.
const ROWS: usize = 2;
/// Reading a weight once pays if it has so many units for each lane of a busy device: where x is read as it lies, and where a dispatch more
/// keeps it.
const WORTH: (usize, usize) = (1, 4);

/// `None` where tokens are better computed by workgroups of their own.
pub(super) fn dispatches(
    op: &Product,
    call: &GpuCall<'_>,
    (wants, one, tokens, orders): (&Wants, &Cut, usize, Orders),
    (slabs, slab, params): (&Slabs, usize, Params),
) -> Option<Vec<Dispatch>> {
    let kept = one.column != Column::Direct;
    let least = call.facts.busy_lanes as usize * if kept { WORTH.1 } else { WORTH.0 };
    // What the end of such a product reads has no place among what keeps x.
    let odd = kept && matches!(op.end, End::GeluMul { .. });
    if tokens > MOST_TOKENS || odd || wants.rows * wants.row_units < least {
        return None;
    }
    let rows = if kept { ROWS } else { wants.rows_each };
    let y = Place::Output(y_of(op));
    let width = call.input(op.weight_input()).shape.width();
    // As one token's, but for what is no matter to the bits.
    let lanes = wants.whole(one.team, rows, one.team.group());
    if lanes > call.facts.invocations as usize {
        return None;
    }
    let turns = wants.rows.div_ceil(lanes / one.team.size() * rows);
    let cut = Cut { rows, lanes, turns, groups: turns, ..*one };
    let packed = matches!(one.column, Column::Packed | Column::Pairs);
    let (pieces, groups) = (wants.row_units / one.column.piece_units(), one.column.piece_groups());
    let words = if packed { groups / 2 + 1 } else { groups + 1 };
    let x = Place::Scratch(0, (tokens * pieces * words * 16) as u64);
    let several = based(&SEVERAL, call, (slabs, &cut))
        .part(&SUMS)
        .constant("ROWS", rows as u32)
        .constant("TOKENS", tokens as u32)
        .params(&params)
        .grid_over(cut.groups)
        .read(Place::Slab(op.weight_input(), slab))
        .read(if kept { x } else { Place::Input(0) })
        .write(y);
    let several = held((&cut, wants.row_units), orders, ended(op, (&cut, orders), several));
    // Workgroups of one token know digits, since they make x.
    let several = match orders.gives_digits() {
        true => several.part(part!("form", "digits")),
        false => several,
    };
    let several = match op.end {
        End::GeluMul { .. } => several.read(Place::Input(op.weight_input() + 1)),
        End::Plain | End::Geglu | End::Softcap { .. } => several,
    };
    if orders.takes_digits() {
        return Some(vec![several]);
    }
    if !kept {
        return Some(vec![several.part(parts::columns(width))]);
    }
    let several = several.constant("PIECES", pieces as u32);
    let several = match packed {
        true => several.part(&KEPT_DIGITS).constant("GROUPS", groups as u32),
        false => several.part(&KEPT).part(&WORDS).constant("QUADS", wants.row_units as u32 * 8),
    };
    let keep = low::none(based(&KEEP, call, (slabs, one)))
        .part(parts::columns(width))
        .part(if packed { part!("keep", "digits") } else { part!("keep", "floats") })
        .params(&params)
        .grid(tokens, 1, 1);
    let keep = begun(op, (one, call.facts), (wants.row_units, orders), keep);
    let keep = bound(op, (slab, x, orders), call, keep);
    let keep = match &op.begin {
        Begin::Added(_) => keep.part(part!("branch", "plain")),
        Begin::Plain | Begin::Norm { .. } => keep,
    };
    debug_assert_eq!(op.low, Low::None, "adapters are for tokens apart");
    let fits = keep.bindings.len() <= call.facts.storage_buffers as usize;
    fits.then(|| vec![keep, several])
}
