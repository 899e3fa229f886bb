//! Kernels for matmuls with a narrow operand, such as those of LoRA pairs and their gradients: they read the wide operand once, in vec4s,
//! and have enough workgroups for a large GPU without split-K where that is possible.

use bytemuck::NoUninit;

use super::{
    Form, Strides,
    gpu::{Operands, word},
};
use crate::{
    gpu::{Dispatch, Kernel, Part},
    ops::split_k::{Base, add_up_onto, chunks, parts_at},
};

static COLUMNS: Kernel =
    Kernel { name: "matmul/narrow_columns", source: include_str!("narrow_columns.wgsl") };
static UPDATE: Kernel =
    Kernel { name: "matmul/rank_update", source: include_str!("rank_update.wgsl") };
static OUTER: Kernel =
    Kernel { name: "matmul/outer_products", source: include_str!("outer_products.wgsl") };

/// Largest width of a narrow operand.
const NARROW: usize = 64;
/// Rows that a lane of `narrow_columns` sums.
const LANE_ROWS: usize = 8;
/// Workgroups of `narrow_columns` from which sums are not split: adding the chunks up takes a dispatch.
const UNSPLIT: usize = 96;
/// Terms from which workgroups of `narrow_columns` have more rows: each of them reads the whole narrow operand.
const LONG: usize = 4096;
/// Minimum terms of a split-K chunk.
const LEAST_CHUNK: usize = 512;
/// Rows and columns of a workgroup of `rank_update`.
const UPDATE_TILE: [usize; 2] = [16, 256];
/// Ranks of a workgroup of `outer_products`.
const OUTER_RANKS: usize = 16;
/// Workgroups that `outer_products` should have.
const OUTER_GROUPS: usize = 256;

/// Which operand is narrow, and the tile of its kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NarrowForm {
    /// Few columns of the result, and long sums.
    Columns {
        /// Teams of eight rows of a workgroup.
        teams: usize,
        /// Split-K chunks.
        chunks: usize,
    },
    /// Few terms: an update of the base of low rank.
    Update,
    /// Few rows or columns of a result that sums over the operands' rows.
    Outer {
        /// vec4s of the wide operand's columns of a workgroup.
        columns4: usize,
    },
}

impl NarrowForm {
    /// The kernel for a matmul, if it has a narrow operand and rows of whole vec4s.
    pub(super) fn new(form: Form, strides: &Strides) -> Option<Self> {
        let Strides { m, n, k, .. } = *strides;
        let [y_row, y_first] = strides.y;
        let sides = if form == Form::Tn { [m, n] } else { [n, k] };
        let at = [strides.a_row(), strides.a_first, y_row, y_first];
        if !sides.iter().chain(&at).all(|columns| columns.is_multiple_of(4)) {
            return None;
        }
        match form {
            Form::Tn => (m.min(n) <= NARROW).then(|| Self::outer([m, n])),
            Form::Nt | Form::Nn if n <= NARROW && k > n => {
                strides.is_whole().then(|| Self::columns(m, k))
            }
            Form::Nt | Form::Nn => (k <= NARROW).then_some(Self::Update),
        }
    }

    fn columns(m: usize, k: usize) -> Self {
        let teams = if k >= LONG && m >= 8 * LANE_ROWS { 4 } else { 1 };
        let groups = m.div_ceil(LANE_ROWS * teams);
        let chunks = if groups >= UNSPLIT { 1 } else { chunks(groups, k, LEAST_CHUNK) };
        Self::Columns { teams, chunks }
    }

    fn outer(sizes: [usize; 2]) -> Self {
        let [narrow, wide] = [sizes[0].min(sizes[1]), sizes[0].max(sizes[1])];
        let groups = |columns4: usize| wide.div_ceil(4 * columns4) * narrow.div_ceil(OUTER_RANKS);
        let columns4 = [16, 8, 4].into_iter().find(|columns4| groups(*columns4) >= OUTER_GROUPS);
        Self::Outer { columns4: columns4.unwrap_or(2) }
    }

    /// The dispatches of a matmul that this was selected for.
    pub(super) fn dispatches(
        self,
        form: Form,
        strides: &Strides,
        scale: f32,
        operands: &Operands,
    ) -> Vec<Dispatch> {
        let (m, n) = (strides.m, strides.n);
        let Operands { a, b, base, output } = *operands;
        match self {
            Self::Columns { teams, chunks } => {
                let is_split = chunks > 1;
                let sums = if is_split { parts_at(0, m * n, chunks) } else { output };
                let dispatch = Dispatch::new(&COLUMNS)
                    .constant("COLUMNS4", word((n / 4).next_power_of_two()))
                    .constant("TEAMS", word(teams))
                    .part(orientation(form))
                    .params(&params(strides, scale, chunks))
                    .read(a)
                    .read(b)
                    .write(sums)
                    .grid_over(m.div_ceil(LANE_ROWS * teams) * chunks);
                // The base must be added only once.
                let matmul = with_base4(dispatch, if is_split { Base::None } else { base });
                let sum = is_split.then(|| add_up_onto(base, sums, m * n, chunks, output));
                [matmul].into_iter().chain(sum).collect()
            }
            Self::Update => {
                let [rows, columns] = UPDATE_TILE;
                let dispatch = Dispatch::new(&UPDATE)
                    .constant("STAGED", u32::from(form == Form::Nt))
                    .part(orientation(form))
                    .params(&params(strides, scale, 1))
                    .read(a)
                    .read(b)
                    .write(output)
                    .grid_over(m.div_ceil(rows) * n.div_ceil(columns));
                vec![with_base4(dispatch, base)]
            }
            Self::Outer { columns4 } => {
                let rows = Side { columns: m, row: strides.a_row(), first: strides.a_first, y: n };
                let columns = Side { columns: n, row: n, first: 0, y: 1 };
                let sides = [(rows, a), (columns, b)];
                let [(wide, wide_at), (narrow, narrow_at)] =
                    if m >= n { sides } else { [sides[1], sides[0]] };
                let params = OuterParams {
                    terms: word(strides.k),
                    wide4: word(wide.columns / 4),
                    wide_row4: word(wide.row / 4),
                    wide_first4: word(wide.first / 4),
                    narrow4: word(narrow.columns / 4),
                    narrow_row4: word(narrow.row / 4),
                    narrow_first4: word(narrow.first / 4),
                    y_wide: word(wide.y),
                    y_narrow: word(narrow.y),
                    scale,
                };
                let groups = wide.columns.div_ceil(4 * columns4);
                let dispatch = Dispatch::new(&OUTER)
                    .constant("COLUMNS4", word(columns4))
                    .params(&params)
                    .read(wide_at)
                    .read(narrow_at)
                    .write(output)
                    .grid_over(groups * narrow.columns.div_ceil(OUTER_RANKS));
                vec![base.composed(dispatch)]
            }
        }
    }
}

/// An operand of `outer_products`: columns that take part, row width, first column, and the stride of the result along them.
#[derive(Clone, Copy)]
struct Side {
    columns: usize,
    row: usize,
    first: usize,
    y: usize,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    rows: u32,
    columns4: u32,
    k4: u32,
    scale: f32,
    chunks: u32,
    a_row4: u32,
    a_first4: u32,
    y_row4: u32,
    y_first4: u32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct OuterParams {
    terms: u32,
    wide4: u32,
    wide_row4: u32,
    wide_first4: u32,
    narrow4: u32,
    narrow_row4: u32,
    narrow_first4: u32,
    y_wide: u32,
    y_narrow: u32,
    scale: f32,
}

fn params(strides: &Strides, scale: f32, chunks: usize) -> Params {
    Params {
        rows: word(strides.m),
        columns4: word(strides.n / 4),
        k4: word(strides.k / 4),
        scale,
        chunks: word(chunks),
        a_row4: word(strides.a_row() / 4),
        a_first4: word(strides.a_first / 4),
        y_row4: word(strides.y[0] / 4),
        y_first4: word(strides.y[1] / 4),
    }
}

fn orientation(form: Form) -> &'static Part {
    match form {
        Form::Nt => part!("orientation", "rows"),
        Form::Nn | Form::Tn => part!("orientation", "columns"),
    }
}

fn with_base4(dispatch: Dispatch, base: Base) -> Dispatch {
    match base {
        Base::None => dispatch.part(part!("base4", "none")),
        Base::Added(base) => dispatch.part(part!("base4", "added")).read_as("addend", base),
        Base::Own => dispatch.part(part!("base4", "own")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Form, NarrowForm, Strides};

    fn select(form: Form, m: usize, n: usize, k: usize) -> Option<NarrowForm> {
        let a = if form == Form::Tn { [1, m] } else { [k, 1] };
        let b = if form == Form::Nt { [k, 1] } else { [1, n] };
        NarrowForm::new(form, &Strides::whole([m, n, k], a, b))
    }

    #[test]
    fn products_of_lora_pairs_have_kernels_of_their_own() {
        let columns = |teams, chunks| Some(NarrowForm::Columns { teams, chunks });
        let outer = |columns4| Some(NarrowForm::Outer { columns4 });
        for (form, [m, n, k], wanted) in [
            // Down-projections and their gradients: one dispatch, unless the sums are long.
            (Form::Nt, [1024, 16, 1536], columns(1, 1)),
            (Form::Nn, [2048, 16, 2048], columns(1, 1)),
            (Form::Nn, [1024, 16, 12_288], columns(4, 16)),
            (Form::Nt, [2048, 16, 6144], columns(4, 8)),
            (Form::Nt, [128, 16, 1536], columns(1, 3)),
            (Form::Nt, [1024, 16, 256], columns(1, 1)),
            // Up-projections and gradients of x.
            (Form::Nt, [1024, 2048, 16], Some(NarrowForm::Update)),
            (Form::Nn, [1024, 1536, 64], Some(NarrowForm::Update)),
            // Gradients of A and B.
            (Form::Tn, [16, 1536, 1024], outer(2)),
            (Form::Tn, [4096, 16, 1024], outer(4)),
            (Form::Tn, [12_288, 16, 1024], outer(8)),
            (Form::Tn, [256, 16, 1024], outer(2)),
            // Neither narrow nor in whole vec4s.
            (Form::Nt, [1024, 2048, 1536], None),
            (Form::Tn, [1536, 1536, 16], None),
            (Form::Nt, [1024, 1536, 18], None),
            (Form::Tn, [1536, 1, 1024], None),
        ] {
            assert_eq!(select(form, m, n, k), wanted, "{form:?} {m} × {n} over {k}");
        }
    }

    #[test]
    fn long_products_fill_a_large_gpu() {
        for tokens in [1024, 2048] {
            for wide in [256, 1536, 2048, 4096, 6144, 12_288] {
                let Some(NarrowForm::Columns { teams, chunks }) =
                    select(Form::Nn, tokens, 16, wide)
                else {
                    panic!("{wide} terms have another form")
                };
                assert!(tokens / (8 * teams) * chunks >= 128, "{tokens} tokens, {wide} terms");
            }
        }
    }
}
