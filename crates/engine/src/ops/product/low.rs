//! What a product adds beside its weight: `B (A x)`, two thin matrices of an adapter.

use rullama_gguf::DType;

use super::{Begin, Product, Taken, thin::Thin};
use crate::{
    gpu::{Dispatch, GpuCall, Part, Place},
    graph::{Element, Graph, Value},
    ops::AddNorm,
};

static ROWS: Part = Part { kind: "low_rows", name: "rows", source: include_str!("low/rows.wgsl") };

/// Bytes of `A` that a workgroup reads for itself, at most: beyond, a launch of its own costs less. Hundreds of workgroups read it: with
/// 160 KiB, E2B's products of rank 16 took 9 µs more each on an H200, a launch takes 5.
pub const OWN_BYTES: usize = 24 << 10;

/// Buffers of a launch behind residual and norms.
const ADDED_BINDINGS: usize = 8;

/// What is added to the rows of a product, in front of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Low {
    /// Nothing.
    None,
    /// `B (A x)`, of the weights `A` `[r, k]` and `B` `[rows, r]`.
    Own,
    /// `B z`, of `z` `[t, r]` and the weight `B`.
    Given,
    /// Nothing; but `A x` lies behind each row, of the weight `A`: `B` is added by what takes the rows.
    Beside,
}

impl Low {
    /// How many inputs it has; they are the last.
    pub(super) fn inputs(self) -> usize {
        match self {
            Self::None => 0,
            Self::Beside => 1,
            Self::Own | Self::Given => 2,
        }
    }

    /// The rows `y` made of `x` with what is added.
    pub(super) fn added(self, graph: &mut Graph, x: Value, y: Value, inputs: &[Value]) -> Value {
        let [.., first, b] = inputs else { return y };
        let z = match self {
            Self::None => return y,
            Self::Own => graph.linear(x, *first),
            Self::Given => *first,
            Self::Beside => {
                let z = graph.linear(x, *b);
                return graph.join_columns(&[y, z]);
            }
        };
        let more = graph.linear(z, *b);
        graph.add(y, more)
    }
}

impl Product {
    /// `z` in a launch of its own, in front of the others: where no workgroup should make it for itself. That launch also keeps what
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

/// What a launch adds: sizes for its parameters, parts and bindings.
pub(super) struct Added {
    low: Low,
    dtype: DType,
    rank: usize,
    /// Quads of the inner size, and of a row of `B` in memory.
    pub(super) quads: usize,
    pub(super) stride: usize,
    /// Where the inputs are.
    first: usize,
}

impl Added {
    /// `None` if no kernel has it.
    pub(super) fn new(op: &Product, call: &GpuCall<'_>) -> Option<Self> {
        let first = call.inputs() - op.low.inputs();
        if op.low == Low::None {
            let (dtype, rank) = (DType::F32, 0);
            return Some(Self { low: Low::None, dtype, rank, quads: 0, stride: 0, first });
        }
        if op.low == Low::Beside {
            return Self::beside(op, call, first);
        }
        let (b, rank) = (call.slabs(first + 1), call.input(first + 1).shape.width());
        let known = matches!(b.dtype, DType::F16 | DType::F32);
        let stride = b.row_blocks / 4;
        let fits = known && b.rows.len() == 1 && rank.is_multiple_of(4) && op.taken == Taken::All;
        let made = op.low == Low::Given || own_fits(call, first, b.dtype);
        (fits && made).then_some(Self {
            low: op.low,
            dtype: b.dtype,
            rank,
            quads: rank / 4,
            stride,
            first,
        })
    }

    fn beside(op: &Product, call: &GpuCall<'_>, first: usize) -> Option<Self> {
        let (a, rank) = (call.slabs(first), call.input(first).shape.rows());
        let one = call.slabs(op.weight_input()).rows.len() == 1 && a.rows.len() == 1;
        let known = matches!(a.dtype, DType::F16 | DType::F32);
        let x = &call.input(0).shape;
        let fits = one && known && x.rows() == 1 && x.width().is_multiple_of(32);
        let (dtype, stride) = (a.dtype, a.row_blocks / 4);
        fits.then_some(Self { low: op.low, dtype, rank, quads: rank, stride, first })
    }

    /// Bytes of workgroup memory, for so many lanes.
    pub(super) fn shared_bytes(&self, lanes: usize) -> usize {
        match self.low {
            Low::None | Low::Given => 0,
            Low::Own => lanes * 16 + self.rank * 4,
            Low::Beside => lanes * 4,
        }
    }

    /// Workgroups besides those of the product.
    pub(super) fn groups(&self) -> usize {
        if self.low == Low::Beside { self.rank } else { 0 }
    }

    /// Whether the lanes of a workgroup are enough for it.
    pub(super) fn enough(&self, lanes: usize) -> bool {
        self.low != Low::Own || self.quads <= lanes
    }

    /// With its parts.
    pub(super) fn composed(&self, dispatch: Dispatch) -> Dispatch {
        let dispatch = match self.low {
            Low::None => return dispatch.part(part!("low", "none")),
            Low::Own => dispatch.part(part!("low", "own")).constant("RANK", self.rank as u32),
            Low::Given => dispatch.part(part!("low", "given")),
            Low::Beside => {
                let dispatch = dispatch.part(part!("low", "beside")).part(factor(self.dtype));
                assert_eq!(dispatch.bindings.len(), 3, "bindings in front of a factor");
                return dispatch.read(Place::Slab(self.first, 0));
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
}

/// How four numbers of a factor are read.
fn factor(dtype: DType) -> &'static Part {
    match dtype {
        DType::F16 => part!("factor", "f16"),
        _ => part!("factor", "f32"),
    }
}

/// What an adapter adds to the branch in front of a product, where it adds something.
pub(super) struct OfBranch {
    dtype: DType,
    rank: usize,
    /// Quads of a row of `B`, turned, in memory.
    pub(super) stride: usize,
    input: usize,
}

impl OfBranch {
    /// `None` if no kernel has it.
    pub(super) fn new(begin: &Begin, call: &GpuCall<'_>) -> Option<Option<Self>> {
        let Begin::Added(AddNorm { low: true, .. }) = begin else { return Some(None) };
        let input = begin.inputs() - 1;
        let (b, rank) = (call.slabs(input), call.input(input).shape.rows());
        let known = matches!(b.dtype, DType::F16 | DType::F32) && b.rows.len() == 1;
        let fits = known && rank.is_multiple_of(4) && call.input(0).shape.rows() == 1;
        fits.then_some(Some(Self { dtype: b.dtype, rank, stride: b.row_blocks / 4, input }))
    }

    /// With its parts and binding; kernels that have factors besides name their type themselves.
    pub(super) fn composed(&self, dispatch: Dispatch, besides: Option<DType>) -> Option<Dispatch> {
        let spot = match dispatch.bindings.len() {
            7 => part!("branch_spot", "9"),
            8 => part!("branch_spot", "10"),
            9 => part!("branch_spot", "11"),
            _ => return None,
        };
        let dispatch = match besides {
            None => dispatch.part(factor(self.dtype)),
            Some(dtype) if dtype == self.dtype => dispatch,
            Some(_) => return None,
        };
        let dispatch = dispatch.part(part!("branch", "low")).part(spot);
        let dispatch = dispatch.constant("BRANCH_RANK", self.rank as u32);
        Some(dispatch.read(Place::Slab(self.input, 0)))
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
