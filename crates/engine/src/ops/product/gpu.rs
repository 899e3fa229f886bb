//! The dispatches of a product of one token, or of several that are computed apart: one per slab.

use bytemuck::NoUninit;

use super::{
    Begin, End, Product, Taken,
    choice::{Column, Cut, Wants},
    handoff,
    low::{Added, Low},
    of_branch::OfBranch,
    several,
};
use crate::{
    gpu::{DeviceFacts, Dispatch, GpuCall, Kernel, Order, Part, Place, Slabs, SplitKvPartials},
    ops::{
        linear_experts::Sizes,
        parts::{self, ACTIVATION, UNIT, WEIGHTS, X_UNIT, quant},
    },
};

static VECTOR: Kernel = Kernel { name: "product/vector", source: include_str!("vector.wgsl") };

static SHARED: Part =
    Part { kind: "shared", name: "shared", source: include_str!("begin/shared.wgsl") };

pub(super) static DIGITS: Part =
    Part { kind: "digits", name: "digits", source: include_str!("held/digits.wgsl") };

/// What a lane sums at a time.
pub(super) static SUMS: Part =
    Part { kind: "sums", name: "sums", source: include_str!("sums.wgsl") };

/// Reads x as it is held.
pub(super) static WORDS: Part =
    Part { kind: "words", name: "words", source: include_str!("held/words.wgsl") };

/// What kernels of products know.
pub(super) static PARAMS: Part =
    Part { kind: "params", name: "params", source: include_str!("params.wgsl") };

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
pub(super) struct Params {
    planes: [u32; 4],
    width: u32,
    row_pieces: u32,
    pieces: u32,
    rows: u32,
    first_row: u32,
    turns: u32,
    groups: u32,
    eps: f32,
    scaled: u32,
    offset: u32,
    expert_rows: u32,
    low_quads: u32,
    low_stride: u32,
    x_columns: u32,
    y_width: u32,
    long_width: u32,
    chosen: u32,
    branch_stride: u32,
}

/// The dispatches of a product of one token, or of tokens apart; `None` if it must be made by the operations it stands for.
pub(crate) fn vector(op: &Product, call: &GpuCall<'_>) -> Option<Vec<Dispatch>> {
    let parts = call.input_parts();
    let x = if parts.is_some() { None } else { call.input_order() };
    dispatches(op, call, Orders { x, parts, y: call.result_order(y_of(op)) })
}

/// How the input and the result of a product lie, where not row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Orders {
    pub(super) x: Option<Order>,
    /// The input is to be combined first.
    pub(super) parts: Option<SplitKvPartials>,
    pub(super) y: Option<Order>,
}

impl Orders {
    /// Whether x comes by quantised hand-off: its producer writes it as digits.
    pub(super) fn takes_digits(self) -> bool {
        self.x.is_some_and(|order| order.digits)
    }

    /// Whether the result goes on by quantised hand-off.
    pub(super) fn gives_digits(self) -> bool {
        self.y.is_some_and(|order| order.digits)
    }
}

/// Which result the product is.
pub(super) fn y_of(op: &Product) -> usize {
    usize::from(matches!(op.begin, Begin::Added(_)))
}

/// Whether a product is made by the kernels of this file.
pub(super) fn made_here(op: &Product, call: &GpuCall<'_>) -> bool {
    dispatches(op, call, Orders::default()).is_some()
}

/// Whether a product with nothing before or after it can combine what it takes.
pub(crate) fn takes_parts(call: &GpuCall<'_>, low: Low, parts: SplitKvPartials) -> bool {
    let known = matches!(low, Low::None | Low::Beside | Low::BesideBoth);
    let op = Product { begin: Begin::Plain, taken: Taken::All, end: End::Plain, low };
    let orders = Orders { parts: Some(parts), ..Orders::default() };
    known
        && call.input(0).shape.width().is_multiple_of(32)
        && dispatches(&op, call, orders).is_some()
}

/// The order that a product with nothing before or after it wants x in: where every team reads x as it lies in memory. What a token's
/// experts take lies as one long row.
pub(crate) fn wanted_order(call: &GpuCall<'_>, taken: Taken, low: Low) -> Option<Order> {
    let op = Product { begin: Begin::Plain, taken, end: End::Plain, low };
    let slabs = call.slabs(1);
    let met = Met::new(&op, call)?;
    let row_units = slabs.row_units() * met.times;
    let direct = |slab: usize| {
        let wants = wants(&op, (&met, false, Orders::default()), (&slabs, slab));
        Cut::new(&wants, call.facts).is_some_and(|cut| cut.column == Column::Direct)
    };
    let direct = call.input(0).shape.width().is_multiple_of(32)
        && (0..slabs.rows.len()).all(direct)
        && made_here(&op, call);
    let digits = parts::is_packed(slabs.dtype) && call.facts.packed_dot;
    let order = Order::new(slabs.dtype, row_units).filter(|_| direct);
    order.map(|order| Order { digits, ..order })
}

pub(super) fn dispatches(
    op: &Product,
    call: &GpuCall<'_>,
    orders: Orders,
) -> Option<Vec<Dispatch>> {
    let at = op.weight_input();
    let slabs = call.slabs(at);
    let whole = slabs.rows.len() == 1;
    let halves_apart = op.end == End::Geglu && !whole;
    // Norms read four columns at a time.
    let odd = op.begin != Begin::Plain && !call.input(0).shape.width().is_multiple_of(32);
    if halves_apart || odd || extra(op).is_none() {
        return None;
    }
    let (met, added) = (Met::new(op, call)?, Added::new(op, call, orders)?);
    let branch = OfBranch::new(&op.begin, call)?;
    let both = branch.is_some() && !matches!(op.low, Low::None | Low::Ahead { .. });
    if (op.taken != Taken::All && !whole) || both {
        return None;
    }
    let low = (&added, branch.as_ref());
    let mut dispatches = Vec::new();
    for slab in 0..slabs.rows.len() {
        dispatches.extend(dispatch(op, call, (&met, low, orders), (&slabs, slab))?);
    }
    Some(dispatches)
}

/// How many rows there are, and how long they are, where a token meets some of a weight.
pub(super) struct Met {
    /// Rows of results, or twice as many; `None` if they are those of a slab.
    rows: Option<usize>,
    /// How often a row of the weight fits the row of x.
    times: usize,
    /// Rows of one expert.
    expert_rows: usize,
    /// Experts of a token; 0 if there are none.
    chosen: usize,
    /// How many tokens there are.
    pub(super) tokens: usize,
}

impl Met {
    /// `None` if several tokens are computed together, or no kernel has the combination.
    fn new(op: &Product, call: &GpuCall<'_>) -> Option<Self> {
        let (at, x) = (op.weight_input(), &call.input(0).shape);
        let Taken::Experts(experts) = op.taken else {
            let tokens = x.rows();
            let apart = tokens == 1 || call.tokens_apart();
            let met = Self { rows: None, times: 1, expert_rows: 0, chosen: 0, tokens };
            return apart.then_some(met);
        };
        let sizes = Sizes::new(call.input(at), call.input(at + 1));
        let (chosen, tokens) = (sizes.chosen, sizes.slots / sizes.chosen);
        let apart = tokens == 1 || call.tokens_apart();
        let one = apart && sizes.width.is_multiple_of(32);
        let expert_rows = sizes.rows;
        let met = Self { rows: Some(sizes.rows), times: 1, expert_rows, chosen, tokens };
        match (&op.begin, experts.summed, op.end) {
            (Begin::Norm { .. }, false, End::Plain | End::Geglu) if one => {
                Some(Self { rows: Some(chosen * sizes.rows), ..met })
            }
            (Begin::Plain, true, End::Plain) if one && x.rows() == sizes.slots => {
                Some(Self { times: chosen, ..met })
            }
            _ => None,
        }
    }
}

/// What a dispatch asks of its cut.
fn wants(
    op: &Product,
    (met, adds, orders): (&Met, bool, Orders),
    (slabs, slab): (&Slabs, usize),
) -> Wants {
    Wants {
        rows: met.rows.unwrap_or(slabs.rows[slab].len()),
        row_units: slabs.row_units() * met.times,
        rows_each: if op.end == End::Geglu { 2 } else { 1 },
        step: if orders.gives_digits() { Order::HALF } else { 1 },
        makes_x: op.begin != Begin::Plain || orders.parts.is_some(),
        kv_splits: orders.parts.map_or(0, |parts| parts.splits),
        adds,
        bytes: parts::is_packed(slabs.dtype),
        pairs: parts::is_paired(slabs.dtype),
    }
}

/// How a product that is one dispatch is cut.
pub(super) fn cut(op: &Product, call: &GpuCall<'_>, orders: Orders) -> Option<(Wants, Cut)> {
    let slabs = call.slabs(op.weight_input());
    let adds = OfBranch::new(&op.begin, call)?.is_some();
    let wants = wants(op, (&Met::new(op, call)?, adds, orders), (&slabs, 0));
    Some((wants, Cut::new(&wants, call.facts)?))
}

fn dispatch(
    op: &Product,
    call: &GpuCall<'_>,
    (met, (added, branch), orders): (&Met, (&Added, Option<&OfBranch>), Orders),
    (slabs, slab): (&Slabs, usize),
) -> Option<Vec<Dispatch>> {
    let weight = &call.input(op.weight_input()).shape;
    let wants = wants(op, (met, branch.is_some(), orders), (slabs, slab));
    let Wants { rows, rows_each, .. } = wants;
    let cut = Cut::new(&wants, call.facts)?;
    let cut = if met.tokens > 1 { cut.of_several(&wants) } else { cut };
    let given = if orders.gives_digits() { cut.made(&wants) * 8 } else { 0 };
    let shared = cut.shared_bytes(wants.row_units) + added.shared_bytes(cut.lanes) + given;
    if !added.enough(cut.lanes) || shared > call.facts.workgroup_bytes as usize {
        return None;
    }
    let (eps, scaled) = match &op.begin {
        Begin::Plain => (0.0, false),
        Begin::Norm { eps } => (*eps, false),
        Begin::Added(op) => (op.eps, op.scaled),
    };
    let offset = if let End::GeluMul { slice } = op.end { slice * weight.rows() } else { 0 };
    let row_pieces = slabs.row_units() / cut.column.piece_units();
    let word = |n: usize| u32::try_from(n).expect("sizes of one weight fit 32 bits");
    let params = Params {
        planes: slabs.planes(slab),
        width: word(weight.width()),
        row_pieces: word(row_pieces),
        pieces: word(row_pieces * met.times),
        rows: word(rows),
        first_row: word(slabs.rows[slab].start),
        turns: word(cut.turns),
        groups: word(cut.groups),
        eps,
        scaled: u32::from(scaled),
        offset: word(offset),
        expert_rows: word(met.expert_rows),
        low_quads: word(added.quads),
        low_stride: word(added.stride),
        x_columns: word(met.times),
        y_width: word(met.rows.unwrap_or(weight.rows()) / rows_each),
        long_width: word(long_width(op, call)),
        chosen: word(met.chosen),
        branch_stride: word(branch.map_or(0, |branch| branch.stride)),
    };
    if met.tokens > 1 && op.taken == Taken::All && op.low == Low::None && branch.is_none() {
        let several = several::dispatches(
            op,
            call,
            (&wants, &cut, met.tokens, orders),
            (slabs, slab, params),
        );
        if several.is_some() {
            return several;
        }
    }
    let dispatch = based(&VECTOR, call, (slabs, &cut))
        .constant("ROWS", cut.rows as u32)
        .constant("TOKENS", met.tokens as u32)
        .params(&params)
        .grid_over(cut.groups * met.tokens + added.groups());
    let dispatch = match op.taken {
        Taken::All => dispatch.part(part!("taken", "all")),
        Taken::Experts(experts) if experts.summed => dispatch
            .part(part!("taken", "summed"))
            .constant("ROW_PIECES", row_pieces as u32)
            .constant("EXPERTS", word(weight.rows() / met.expert_rows)),
        Taken::Experts(_) => dispatch
            .part(part!("taken", "chosen"))
            .constant("EXPERTS", word(weight.rows() / met.expert_rows))
            .constant("PART_ROWS", word(met.expert_rows / rows_each))
            .constant("BAND_ROWS", word(rows / rows_each)),
    };
    let dispatch = ended(op, (&cut, orders), dispatch).part(&SUMS);
    let dispatch = match orders.takes_digits() {
        true => dispatch,
        false => dispatch.part(parts::columns(weight.width())),
    };
    // Where x is made first, weights can be on their way meanwhile; with x in digits that makes kernels longer than it saves.
    let early = wants.makes_x && cut.column == Column::Floats && op.taken == Taken::All;
    let dispatch = dispatch.part(match early && parts::is_read_in_words(slabs.dtype) {
        true => part!("fetch", "ahead"),
        false => part!("fetch", "now"),
    });
    let held = held((&cut, wants.row_units), orders, dispatch);
    let dispatch = begun(op, (&cut, call.facts), (wants.row_units, orders), held);
    let y = Place::Output(y_of(op));
    let dispatch = bound(op, (slab, y, orders), call, dispatch);
    let dispatch = match (branch, &op.begin) {
        (Some(branch), _) => branch.composed(dispatch, added.besides())?,
        (None, Begin::Added(_)) => dispatch.part(part!("branch", "plain")),
        (None, _) => dispatch,
    };
    let dispatch = added.composed(dispatch, orders, cut.lanes);
    (dispatch.bindings.len() <= call.facts.storage_buffers as usize).then(|| vec![dispatch])
}

/// With what all kernels of products have: a weight, and lanes that read it.
pub(super) fn based(
    kernel: &'static Kernel,
    call: &GpuCall<'_>,
    (slabs, cut): (&Slabs, &Cut),
) -> Dispatch {
    let dispatch = Dispatch::new(kernel)
        .part(&PARAMS)
        .part(&WEIGHTS)
        .part(quant(slabs.dtype))
        .part(&UNIT)
        .part(parts::team(call.facts))
        .constant("WG", cut.lanes as u32)
        .constant("LANES", cut.team.lanes as u32)
        .constant("SPLIT", cut.team.split as u32);
    match call.facts.subgroups {
        Some((least, _)) => {
            dispatch.constant("WIDE", wide(cut.lanes, least)).constant("SUMS", cut.rows as u32)
        }
        None => dispatch,
    }
}

/// Lanes that sum by exchange where all of a workgroup do: no more than a subgroup has, and the workgroup has whole groups of them.
fn wide(lanes: usize, least: u32) -> u32 {
    let whole = 1 << lanes.trailing_zeros();
    least.min(32).min(whole)
}

/// Numbers of a token in what the end reads besides.
fn long_width(op: &Product, call: &GpuCall<'_>) -> usize {
    match op.end {
        End::GeluMul { .. } => call.input(op.weight_input() + 1).shape.width(),
        End::Plain | End::Geglu | End::Softcap { .. } => 0,
    }
}

/// With the parts of its end.
pub(super) fn ended(op: &Product, (cut, orders): (&Cut, Orders), dispatch: Dispatch) -> Dispatch {
    let given = |dispatch: Dispatch| dispatch.part(part!("given", "floats"));
    if op.end == End::Geglu {
        let dispatch = dispatch.part(part!("finish", "geglu")).part(&ACTIVATION);
        return match orders.y.filter(|order| order.digits) {
            Some(order) => handoff::given(cut, order, dispatch),
            None => Order::lay(orders.y, given(dispatch)),
        };
    }
    let dispatch = given(dispatch.part(part!("finish", "each")));
    match op.end {
        End::Plain | End::Geglu => dispatch.part(part!("made", "plain")),
        End::GeluMul { .. } => dispatch.part(part!("made", "gelu_mul")).part(&ACTIVATION),
        End::Softcap { cap } => {
            dispatch.part(part!("made", "softcap")).part(&ACTIVATION).constant("CAP", cap)
        }
    }
}

/// With the parts that know weights and x as the sums take them.
pub(super) fn held(
    (cut, row_units): (&Cut, usize),
    orders: Orders,
    dispatch: Dispatch,
) -> Dispatch {
    match cut.column {
        Column::Direct if orders.takes_digits() => handoff::taken(row_units, dispatch),
        Column::Direct if orders.x.is_some() => dispatch.part(part!("held", "ordered")),
        Column::Direct => dispatch.part(part!("held", "direct")).part(&X_UNIT),
        Column::Floats => dispatch.part(part!("held", "floats")),
        Column::Packed => dispatch.part(part!("held", "packed")).part(&DIGITS),
        Column::Pairs => dispatch.part(part!("held", "pairs")).part(&DIGITS),
    }
}

/// With the parts of its begin.
pub(super) fn begun(
    op: &Product,
    (cut, facts): (&Cut, &DeviceFacts),
    (row_units, orders): (usize, Orders),
    dispatch: Dispatch,
) -> Dispatch {
    let next = |next: bool| if next { part!("next", "norm") } else { part!("next", "none") };
    let dispatch = match &op.begin {
        Begin::Plain if orders.takes_digits() => return dispatch.part(part!("begin", "handoff")),
        Begin::Plain if cut.column == Column::Direct => {
            return dispatch.part(part!("begin", "direct"));
        }
        Begin::Plain if let Some(parts) = orders.parts => dispatch
            .part(part!("begin", "parts"))
            .constant("SPLITS", parts.splits as u32)
            .constant("PART_TILE", parts.tile as u32)
            .constant("PART_APART", u32::from(parts.apart))
            .constant("PART_WINDOW", parts.window.min(i32::MAX as u32))
            .constant("HEAD_QUADS", parts.quads as u32)
            .constant("ROWS_AT", parts.rows_at() as u32),
        Begin::Plain => dispatch.part(part!("begin", "staged")),
        Begin::Norm { .. } => dispatch.part(part!("begin", "normed")).part(next(true)),
        Begin::Added(add) => {
            let dispatch = dispatch.part(part!("begin", "added")).part(next(add.next));
            match op.low {
                Low::Ahead { .. } => dispatch.part(part!("ahead", "given")),
                _ => dispatch.part(part!("ahead", "none")),
            }
        }
    };
    let dispatch = dispatch.part(&SHARED).part(match cut.column {
        Column::Packed | Column::Pairs => part!("form", "digits"),
        Column::Floats | Column::Direct => part!("form", "floats"),
    });
    dispatch
        .part(holding(op, cut, facts))
        .part(&WORDS)
        .constant("PIECES", (row_units / cut.column.piece_units()) as u32)
        .constant("QUADS", row_units as u32 * 8)
        .constant("GROUPS", cut.column.piece_groups() as u32)
}

/// How x is held: by exchange where subgroups have whole pieces, unless a workgroup's own factor meets x in memory first.
fn holding(op: &Product, cut: &Cut, facts: &DeviceFacts) -> &'static Part {
    let lanes = cut.column.piece_groups() / 2;
    let whole = facts.subgroups.is_some_and(|(least, _)| least as usize >= lanes)
        && cut.lanes.is_multiple_of(lanes);
    match whole && op.low != Low::Own {
        true => part!("hold", "exchanged"),
        false => part!("hold", "memory"),
    }
}

/// With its bindings: weight, x or h, y; what the begin or the end reads besides; then what tells experts, or makes the residual stream.
pub(super) fn bound(
    op: &Product,
    (slab, y, orders): (usize, Place, Orders),
    call: &GpuCall<'_>,
    dispatch: Dispatch,
) -> Dispatch {
    let x = orders.parts.map_or(Place::Input(0), SplitKvPartials::place);
    let mut dispatch = dispatch.read(Place::Slab(op.weight_input(), slab)).read(x).write(y);
    if let Some(Some(extra)) = extra(op) {
        dispatch = dispatch.read(Place::Input(extra));
    }
    if let Taken::Experts(experts) = op.taken {
        let ids = op.weight_input() + 1;
        dispatch = dispatch.read(Place::Input(ids));
        return if experts.summed { dispatch.read(Place::Input(ids + 1)) } else { dispatch };
    }
    if let Begin::Added(add) = &op.begin {
        debug_assert!(call.inputs() > 3, "a branch and a weight");
        dispatch = dispatch
            .read(Place::Input(1))
            .read(Place::Input(2))
            // Without a scale the weight stands in for it, unread.
            .read(Place::Input(add.scale_input().unwrap_or(2)))
            .write(Place::Output(0));
    }
    dispatch
}

/// Which input the fourth binding is, if there is one. `None` if there would be two (eight bindings are all that every device has), or
/// none in front of others (no model wants that).
pub(super) fn extra(op: &Product) -> Option<Option<usize>> {
    let next = match &op.begin {
        Begin::Plain => None,
        Begin::Norm { .. } => Some(1),
        Begin::Added(add) => add.next_input(),
    };
    let long = matches!(op.end, End::GeluMul { .. }).then_some(op.weight_input() + 1);
    match (next, long) {
        (Some(_), Some(_)) => None,
        (None, None) if op.begin != Begin::Plain => None,
        (one, other) => Some(one.or(other)),
    }
}
