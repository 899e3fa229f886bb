//! What a product adds beside its weight: `B (A x)`, two thin matrices of an adapter.

use rullama_gguf::DType;

use super::{Begin, Product, Taken, gpu::Orders, own::Own, thin::Thin};
use crate::{
    gpu::{Dispatch, GpuCall, Order, Part, Place},
    graph::{Element, Graph, Value},
};

static ROWS: Part = Part { kind: "low_rows", name: "rows", source: include_str!("low/rows.wgsl") };

/// Bytes of `A` that a workgroup reads for itself, at most: beyond, a dispatch of its own costs less. Hundreds of workgroups read it: with
/// 160 KiB, E2B's products of rank 16 took 9 µs more each on an H200, a dispatch takes 5.
pub const OWN_BYTES: usize = 24 << 10;

/// Quads that a lane of a workgroup beside a product prefetches at once, at most.
const MOST_EACH: usize = 8;

/// Buffers of a dispatch after residual and norms.
const ADDED_BINDINGS: usize = 8;

/// What is added to the rows of a product, in front of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Low {
    /// Nothing.
    None,
    /// `B (A x)`, of the weights `A` `[r, k]` and `B` `[rows, r]`.
    Own,
    /// The same where `A x` is known up to the factors of the norms in front: see [`Ahead`].
    Ahead {
        /// Rows of other products' first factors in front.
        behind: usize,
    },
    /// `B z`, of `z` `[t, r]` and the weight `B`.
    Given,
    /// Nothing; but `A x` lies after each row, of the weight `A`: `B` is added by what takes the rows.
    Beside,
    /// The same, and after that `P h` for each row, of the rows `h` and the weight `P`.
    BesideBoth,
}

/// The first factor `A` `[r, d]` of a product that follows a branch and two norms, taken apart so that it is met before those are known.
/// What the product takes is `x = m · (h + n · (w1 ⊙ a)) ⊙ w2`, where `m` and `n` are one number a row and the branch is `a = W u`. So
/// `A x = m · (P h + n · Q u)` of `P = A ⊙ w2`, by columns, and `Q = (A ⊙ w2 ⊙ w1) W`, and both are products with what the dispatch that makes
/// the branch has at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    /// The weight `Q` `[r, k]`, after the rows of the branch's own first factor, where it has one.
    pub q: Value,
    /// The residual stream `h` `[t, d]`.
    pub h: Value,
    /// The weight `P` `[r, d]`.
    pub p: Value,
}

impl Low {
    /// How many inputs it has; they are the last.
    pub(super) fn inputs(self) -> usize {
        match self {
            Self::None => 0,
            Self::Beside => 1,
            Self::Own | Self::Ahead { .. } | Self::Given => 2,
            Self::BesideBoth => 3,
        }
    }

    /// The rows `y` made of `x` with what is added.
    pub(super) fn added(self, graph: &mut Graph, x: Value, y: Value, inputs: &[Value]) -> Value {
        let [.., first, b] = inputs else { return y };
        let z = match self {
            Self::None => return y,
            Self::Own | Self::Ahead { .. } => graph.linear(x, *first),
            Self::Given => *first,
            Self::Beside => {
                let z = graph.linear(x, *b);
                return graph.join_columns(&[y, z]);
            }
            Self::BesideBoth => {
                let (a, h, p) = (inputs[inputs.len() - 3], *first, *b);
                let (z, more) = (graph.linear(x, a), graph.linear(h, p));
                return graph.join_columns(&[y, z, more]);
            }
        };
        let more = graph.linear(z, *b);
        graph.add(y, more)
    }
}

impl Product {
    /// `z` in a dispatch of its own, in front of the others: where no workgroup should make it for itself. That dispatch also keeps what
    /// the begin makes, where a kernel may bind that many buffers, so that the others need not make it again.
    pub(super) fn in_two(&self, graph: &mut Graph, inputs: &[Value], most: usize) -> Vec<Value> {
        let at = self.weight_input();
        let (begin, [weight, long @ .., a, b]) = inputs.split_at(at) else {
            unreachable!("a product with an adapter has its factors")
        };
        let keeps = match &self.begin {
            Begin::Plain => false,
            Begin::Norm { .. } => true,
            Begin::Added(op) => op.next && most > ADDED_BINDINGS + usize::from(op.low),
        };
        let thin = Thin { begin: self.begin.clone(), keeps };
        let made = graph.apply_all(thin, &[begin, &[*a]].concat());
        let z = made[made.len() - 1];
        let h1 = matches!(self.begin, Begin::Added(_)).then(|| made[0]);
        let (begin, mut inputs) = match &self.begin {
            _ if keeps => (Begin::Plain, vec![made[made.len() - 2]]),
            Begin::Added(op) => match op.next_input() {
                Some(next) => (Begin::Norm { eps: op.eps }, vec![made[0], begin[next]]),
                None => (Begin::Plain, vec![made[0]]),
            },
            same => (same.clone(), begin.to_vec()),
        };
        inputs.push(*weight);
        inputs.extend(long);
        inputs.extend([z, *b]);
        let rest = Self { begin, taken: Taken::All, end: self.end, low: Low::Given };
        let y = graph.apply(rest, &inputs);
        h1.into_iter().chain([y]).collect()
    }
}

/// What a dispatch adds: sizes for its parameters, parts and bindings.
pub(super) struct Added {
    low: Low,
    dtype: DType,
    rank: usize,
    /// Columns of x, where it is met beside.
    width: usize,
    /// Quads of the inner size, and of a row of `B` in memory.
    pub(super) quads: usize,
    pub(super) stride: usize,
    /// Where the inputs are.
    first: usize,
    /// Of what is made of the stream too: rows, and the quads of one. Of what was made ahead: where it starts, and how many rows it has.
    more: [usize; 2],
    /// The product's own pair, where it adds that itself.
    own: Option<Own>,
}

impl Added {
    /// `None` if no kernel has it.
    pub(super) fn new(op: &Product, call: &GpuCall<'_>, orders: Orders) -> Option<Self> {
        let first = call.inputs() - op.low.inputs();
        if op.low == Low::None {
            let (dtype, rank) = (DType::F32, 0);
            let more = [0, 0];
            let (width, quads, stride, own) = (0, 0, 0, None);
            return Some(Self {
                low: Low::None,
                dtype,
                rank,
                width,
                quads,
                stride,
                first,
                more,
                own,
            });
        }
        if matches!(op.low, Low::Beside | Low::BesideBoth) {
            return Self::beside(op, call, (first, Own::new(call, orders.parts)));
        }
        let (b, rank) = (call.slabs(first + 1), call.input(first + 1).shape.width());
        let known = matches!(b.dtype, DType::F16 | DType::F32);
        let stride = b.row_blocks / 4;
        let fits = known && b.rows.len() == 1 && rank.is_multiple_of(4) && op.taken == Taken::All;
        let mut more = [0, 0];
        let made = match (op.low, &op.begin) {
            (Low::Ahead { behind }, Begin::Added(add)) => {
                more = [call.input(1).shape.width() - add.ahead + behind, add.ahead / 2];
                let there = behind + rank <= add.ahead / 2;
                add.next && there && call.input(0).shape.rows() == 1
            }
            (Low::Own, _) => own_fits(call, first, b.dtype),
            (low, _) => low == Low::Given,
        };
        let (low, dtype, width, quads, own) = (op.low, b.dtype, 0, rank / 4, None);
        (fits && made).then_some(Self { low, dtype, rank, width, quads, stride, first, more, own })
    }

    fn beside(
        op: &Product,
        call: &GpuCall<'_>,
        (first, own): (usize, Option<Own>),
    ) -> Option<Self> {
        let (a, rank) = (call.slabs(first), call.input(first).shape.rows());
        let one = call.slabs(op.weight_input()).rows.len() == 1 && a.rows.len() == 1;
        let known = matches!(a.dtype, DType::F16 | DType::F32);
        let x = &call.input(0).shape;
        let fits = one && known && x.rows() == 1 && x.width().is_multiple_of(32);
        let (low, dtype, stride) = (op.low, a.dtype, a.row_blocks / 4);
        let mut more = [0, 0];
        if low == Low::BesideBoth {
            let (h, p) = (&call.input(first + 1).shape, call.slabs(first + 2));
            let packed = p.row_blocks == h.width() && h.width().is_multiple_of(4);
            if p.dtype != dtype || p.rows.len() > 1 || h.rows() > 1 || !packed {
                return None;
            }
            more = [call.input(first + 2).shape.rows(), p.row_blocks / 4];
        }
        let (width, quads) = (x.width(), rank);
        fits.then_some(Self { low, dtype, rank, width, quads, stride, first, more, own })
    }

    /// How numbers of a factor are stored, where a branch in front may have factors besides.
    pub(super) fn besides(&self) -> Option<DType> {
        matches!(self.low, Low::Ahead { .. }).then_some(self.dtype)
    }

    /// Bytes of workgroup memory, for so many lanes.
    pub(super) fn shared_bytes(&self, lanes: usize) -> usize {
        match self.low {
            Low::None | Low::Given => 0,
            Low::Ahead { .. } => self.rank * 4,
            Low::Own => lanes * 16 + self.rank * 4,
            Low::Beside | Low::BesideBoth => {
                lanes * 4 + self.own.as_ref().map_or(0, Own::shared_bytes)
            }
        }
    }

    /// Workgroups besides those of the product.
    pub(super) fn groups(&self) -> usize {
        match self.low {
            Low::Beside | Low::BesideBoth => {
                self.rank + self.more[0] - self.own.as_ref().map_or(0, |own| own.met.rows)
            }
            Low::None | Low::Own | Low::Ahead { .. } | Low::Given => 0,
        }
    }

    /// Whether the lanes of a workgroup are enough for it.
    pub(super) fn enough(&self, lanes: usize) -> bool {
        match self.low {
            Low::Own => self.quads <= lanes,
            Low::Ahead { .. } => self.rank <= lanes,
            Low::None | Low::Given | Low::Beside | Low::BesideBoth => true,
        }
    }

    /// With its parts; x lies so, and workgroups have so many lanes.
    pub(super) fn composed(&self, dispatch: Dispatch, orders: Orders, lanes: usize) -> Dispatch {
        let dispatch = match self.low {
            Low::None => return none(dispatch),
            Low::Own => dispatch.part(part!("low", "own")).constant("RANK", self.rank as u32),
            Low::Given => dispatch.part(part!("low", "given")),
            Low::Ahead { .. } => return self.composed_ahead(dispatch),
            Low::Beside | Low::BesideBoth => {
                let dispatch = match orders.parts {
                    Some(_) => dispatch.part(part!("beside_x", "parts")),
                    None if orders.takes_digits() => dispatch.part(part!("beside_x", "digits")),
                    None => Order::lay(orders.x, dispatch.part(part!("beside_x", "lying"))),
                };
                let columns = if orders.takes_digits() { Order::HALF } else { 4 };
                return self.composed_beside(dispatch, (lanes, columns));
            }
        };
        let spot = match dispatch.bindings.len() {
            3 => part!("spot", "5"),
            4 => part!("spot", "6"),
            others => {
                assert_eq!(others, 8, "bindings in front of an adapter's");
                part!("spot", "10")
            }
        };
        let first = match self.low {
            Low::Own => Place::Slab(self.first, 0),
            _ => Place::Input(self.first),
        };
        let last = Place::Slab(self.first + 1, 0);
        dispatch.part(&ROWS).part(factor(self.dtype)).part(spot).read(first).read(last)
    }

    /// For so many lanes, which take so many columns at a time.
    fn composed_beside(&self, dispatch: Dispatch, (lanes, columns): (usize, usize)) -> Dispatch {
        assert_eq!(dispatch.bindings.len(), 3, "bindings in front of a factor");
        let each = |pieces: usize| pieces.div_ceil(lanes).next_power_of_two().min(MOST_EACH) as u32;
        let dispatch = dispatch
            .part(part!("low", "beside"))
            .part(factor(self.dtype))
            .constant("BESIDE_EACH", each(self.width / columns));
        let dispatch = dispatch.read(Place::Slab(self.first, 0));
        let owned = |dispatch: Dispatch| match &self.own {
            Some(own) => own.composed(dispatch),
            None => dispatch.part(part!("low_own", "none")),
        };
        if self.low == Low::Beside {
            return owned(dispatch.part(part!("stream", "none")));
        }
        let [rows, quads] = self.more.map(|n| n as u32);
        let dispatch = dispatch
            .part(part!("stream", "given"))
            .constant("STREAM_ROWS", rows)
            .constant("STREAM_QUADS", quads)
            .constant("STREAM_EACH", each(self.more[1]))
            .read(Place::Input(self.first + 1))
            .read(Place::Slab(self.first + 2, 0));
        owned(dispatch)
    }

    fn composed_ahead(&self, dispatch: Dispatch) -> Dispatch {
        let spot = match dispatch.bindings.len() {
            8 => part!("ahead_spot", "10"),
            others => {
                assert_eq!(others, 9, "bindings in front of an adapter's");
                part!("ahead_spot", "11")
            }
        };
        dispatch
            .part(part!("low", "ahead"))
            .part(&ROWS)
            .part(factor(self.dtype))
            .part(spot)
            .constant("RANK", self.rank as u32)
            .constant("AHEAD_AT", self.more[0] as u32)
            .constant("AHEAD_ROWS", self.more[1] as u32)
            .read(Place::Slab(self.first + 1, 0))
    }
}

/// With the parts of nothing that is added.
pub(super) fn none(dispatch: Dispatch) -> Dispatch {
    dispatch.part(part!("low", "none")).part(part!("low_own", "none"))
}

/// How four numbers of a factor are read.
pub(crate) fn factor(dtype: DType) -> &'static Part {
    match dtype {
        DType::F16 => part!("factor", "f16"),
        _ => part!("factor", "f32"),
    }
}

/// Whether workgroups can make `z` for themselves.
fn own_fits(call: &GpuCall<'_>, first: usize, dtype: DType) -> bool {
    let a = call.slabs(first);
    let width = call.input(first).shape.width();
    let bytes = call.input(first).shape.len() * dtype.block_bytes();
    let same = call.input(first).element == Element::Weight(dtype);
    same && a.rows.len() == 1 && width.is_multiple_of(32) && bytes <= OWN_BYTES
}
