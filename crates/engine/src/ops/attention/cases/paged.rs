//! Cases over KV pools: rows of different sequences, and one sequence in pages.

use rullama_gguf::DType;

use super::{super::select::DECODE_TOKENS, score_tolerance};
use crate::{
    cpu::Data,
    graph::{Element, Graph, Step, Type, Value},
    ops::{NewKv, Paging, QueryInputs, Sequences, rope_table},
    suite::{Case, Tolerance, random_bits},
};

const EPS: f32 = 1e-6;
const PAGE: usize = 16;
/// Rows of the weight of a matmul that reads the heads.
const READ: usize = 24;
/// Pages of other sequences, which no row may read.
const SPARE: usize = 3;

/// A pass over a KV pool.
#[derive(Debug, Clone)]
struct Paged {
    element: Element,
    heads: (usize, usize),
    width: usize,
    window: Option<u32>,
    context: usize,
    /// Rows of the graph; the live rows are the first `positions.len()`.
    rows: usize,
    /// The position of each live row, or of the first row of a single sequence.
    positions: Vec<u32>,
    /// The number of live rows of a single sequence; `None`: rows of different sequences.
    one_sequence: Option<u32>,
    /// Whether the op stores keys and values itself.
    stores: bool,
    /// Whether each row must equal a pass of its own bit for bit.
    batch_invariant: bool,
    /// The weight format of a matmul that reads the heads, and may combine KV splits itself.
    reader: Option<DType>,
}

impl Paged {
    fn rows(rows: usize, positions: &[u32]) -> Self {
        Self {
            element: Element::F32,
            heads: (4, 2),
            width: 64,
            window: None,
            context: 300,
            rows,
            positions: positions.into(),
            one_sequence: None,
            stores: true,
            batch_invariant: rows <= 8,
            reader: None,
        }
    }

    fn prefill(rows: usize, position: u32, count: u32) -> Self {
        Self { one_sequence: Some(count), ..Self::rows(rows, &[position]) }
    }

    fn count(&self) -> u32 {
        self.one_sequence.unwrap_or(self.positions.len() as u32)
    }

    /// Entries of a block table: all pages of the context, or a ring buffer for the window and the pass.
    fn entries(&self) -> usize {
        let all = self.context.div_ceil(PAGE);
        let own = self.one_sequence.map_or(1, |count| count as usize);
        self.window.map_or(all, |window| all.min((window as usize + own - 1).div_ceil(PAGE) + 1))
    }

    fn pages(&self) -> usize {
        self.positions.len() * self.entries() + SPARE
    }

    /// Shuffled block tables; each page occurs once.
    fn table(&self, sequence: usize) -> Vec<u32> {
        let pages = self.pages();
        let step = [7, 11, 13].into_iter().find(|step| !pages.is_multiple_of(*step));
        let step = step.expect("a pool has fewer than 1001 pages");
        let page = |entry| (sequence + entry * self.positions.len() + 1) * step % pages;
        (0..self.entries()).map(|entry| page(entry) as u32).collect()
    }

    fn words(&self) -> Vec<u32> {
        let of = |(i, position): (usize, &u32)| {
            Sequences::words(*position, i as u32 + 5, &self.table(i), self.entries())
        };
        let mut words: Vec<u32> = self.positions.iter().enumerate().flat_map(of).collect();
        let rows = if self.one_sequence.is_some() { 1 } else { self.rows };
        words.resize(rows * (Sequences::HEADER + self.entries()), 0);
        words
    }

    fn step(&self) -> Step {
        match self.one_sequence {
            Some(count) => Step { position: self.positions[0], count, ..Step::default() },
            None => Step::of_rows(self.count()),
        }
    }

    /// A pool's values: infinite outside the positions that a sequence has written and still sees, so that a kernel that reads them fails the case.
    fn pool(&self, salt: usize) -> Data {
        let row = self.heads.1 * self.width;
        let poison = if self.element == Element::Q8 { 4.0 } else { f32::INFINITY };
        let mut values = vec![poison; self.pages() * PAGE * row];
        for (sequence, position) in self.positions.iter().enumerate() {
            let table = self.table(sequence);
            let own = if self.stores { 0 } else { self.one_sequence.unwrap_or(1) };
            let end = (position + own) as usize;
            let first = self.window.map_or(0, |window| end.saturating_sub(window as usize + 64));
            for key in first.max(end.saturating_sub(self.entries() * PAGE))..end {
                let slot = table[key / PAGE % table.len()] as usize * PAGE + key % PAGE;
                for i in 0..row {
                    let n = (key * row + i) * (salt * 2 + 1) + sequence * 31 + i / 7;
                    values[slot * row + i] = (n % 1009) as f32 / 1009.0 - 0.5;
                }
            }
        }
        Data::F32(values)
    }

    fn rope(&self) -> Vec<f32> {
        let mut positions = self.positions.clone();
        if let Some(count) = self.one_sequence {
            positions = (positions[0]..positions[0] + count).collect();
        }
        positions.resize(self.rows, 0);
        let of = |position: &u32| rope_table(*position..position + 1, 1e4, self.width, None);
        positions.iter().flat_map(of).collect()
    }

    fn name(&self) -> String {
        let Self { element, heads, width, window, context, rows, positions, .. } = self;
        let kind = if self.one_sequence.is_some() { "one sequence" } else { "rows" };
        let stores = if self.stores { "stores" } else { "reads" };
        let reader = self.reader.map(|dtype| dtype.name()).unwrap_or("nobody");
        format!(
            "paged {kind} {element:?} {rows}x{heads:?}x{width} window {window:?} of {context} at {positions:?}+{} {stores}, read by {reader}",
            self.count()
        )
    }

    fn case(self) -> Case {
        let (name, step) = (self.name(), self.step());
        let (words, rope, k, v) = (self.words(), self.rope(), self.pool(17), self.pool(40));
        let terms = self.width.max(self.context) * if self.reader.is_some() { 8 } else { 1 };
        let tolerance = match self.element {
            Element::F16 => Tolerance { steps: 8.0, ..Tolerance::EXPONENTIAL.half() },
            Element::Q8 => Tolerance { unit: 1.0 / 256.0, steps: 8.0, ..Tolerance::EXPONENTIAL },
            // Prefill: matrix units round the factors of the scores to f16.
            _ if self.rows > DECODE_TOKENS && self.one_sequence.is_some() => {
                score_tolerance(self.width, terms * self.heads.0)
            }
            _ => Tolerance::EXPONENTIAL.terms(terms * self.heads.0),
        };
        let bits = self.reader.filter(|dtype| dtype.block_elements() > 32);
        let bits = bits.map(|dtype| random_bits(dtype, [READ, self.heads.0 * self.width]));
        let case = Case::new("attention_qkv", name, move |g: &mut Graph| self.build(g))
            .step(step.position, step.count)
            .given("sequences", Data::U32(words))
            .given("rope", Data::F32(rope))
            .given("k_cache", k)
            .given("v_cache", v)
            .tolerance(tolerance);
        match bits {
            Some(bits) => case.given("w", bits),
            None => case,
        }
    }

    fn build(&self, g: &mut Graph) -> Vec<Value> {
        let one_sequence = self.one_sequence.is_some();
        if !one_sequence && self.batch_invariant {
            *g = Graph::new_batch_invariant();
        }
        let (t, width, (heads, kv_heads)) = (self.rows, self.width, self.heads);
        let cache = Type::cache(self.element, [self.pages() * PAGE, kv_heads, width]);
        let norm = Type::weight(DType::F32, [width]);
        let sequences = if one_sequence { 1 } else { t };
        let sequences =
            g.input("sequences", Type::u32([sequences, Sequences::HEADER + self.entries()]));
        let paging = Paging { page: PAGE, context: self.context, one_sequence };
        let queries = QueryInputs {
            q: g.input("q", Type::f32([t, heads * width])).into(),
            q_norm: g.weight("q_norm", norm.clone()),
            rope: g.input("rope", Type::f32([t, width / 2, 2])),
            k_cache: g.state("k_cache", cache.clone()),
            v_cache: g.state("v_cache", cache),
            sequences: Some(Sequences { value: sequences, paging }),
        };
        let new_kv = self.stores.then(|| NewKv {
            k: g.input("k", Type::f32([t, kv_heads * width])).into(),
            v: g.input("v", Type::f32([t, kv_heads * width])).into(),
            k_norm: g.weight("k_norm", norm),
        });
        let mut y = g.attention_qkv(queries, new_kv, self.window, EPS);
        if let Some(dtype) = self.reader {
            let weight = g.weight("w", Type::weight(dtype, [READ, heads * width]));
            y = g.linear(y, weight);
        }
        if one_sequence {
            return vec![y, queries.k_cache, queries.v_cache];
        }
        let caches = [queries.k_cache, queries.v_cache];
        // Rows beyond the live ones are not compared.
        let made = (self.count() as usize == t).then_some(y);
        caches.into_iter().chain(made).collect()
    }
}

pub(super) fn cases() -> Vec<Case> {
    let many: Vec<u32> = (0..32).map(|i| i * 37 % 300).collect();
    // Rows over few keys are larger than means over many; the tolerance of a matmul supposes rows of one size.
    let far: Vec<u32> = (0..32).map(|i| 500 + i * 37 % 300).collect();
    let mut all = vec![
        // Few and many rows, in the first page, at its end and far beyond.
        Paged::rows(1, &[0]),
        Paged::rows(1, &[299]),
        Paged::rows(2, &[15, 16]),
        Paged::rows(8, &[0, 1, 15, 16, 63, 64, 200, 299]),
        Paged::rows(8, &[70, 2, 130]),
        Paged { stores: false, ..Paged::rows(4, &[0, 40, 64, 290]) },
        // More rows than are computed batch-invariantly, not all of them live.
        Paged::rows(16, &many[..16]),
        Paged::rows(32, &many[..27]),
        Paged { stores: false, ..Paged::rows(9, &many[..9]) },
        Paged { reader: Some(DType::Q8_0), ..Paged::rows(16, &many[..16]) },
        Paged { reader: Some(DType::Q4_K), context: 1000, ..Paged::rows(27, &far[..27]) },
        Paged { reader: Some(DType::F16), width: 128, context: 1000, ..Paged::rows(9, &far[..9]) },
        Paged { window: Some(20), element: Element::F16, ..Paged::rows(16, &many[..16]) },
    ];
    for element in [Element::F16, Element::Q8] {
        all.push(Paged { element, ..Paged::rows(4, &[3, 64, 100, 257]) });
        all.push(Paged { element, ..Paged::prefill(17, 20, 17) });
    }
    // Windows: not yet full, just full, and ring buffers of pages that have wrapped; with one KV split and with several.
    for window in [8, 100] {
        let positions = [6, 7, 1001, 262_143];
        all.push(Paged { window: Some(window), context: 1 << 18, ..Paged::rows(4, &positions) });
    }
    // The reader combines KV splits, some without keys.
    let wide = Paged { heads: (8, 1), width: 128, context: 1000, ..Paged::rows(1, &[5]) };
    all.push(Paged { reader: Some(DType::Q4_K), ..wide.clone() });
    for rows in [2, 8] {
        let positions: Vec<u32> = [0, 5, 300, 999, 64, 63, 500, 1].into_iter().take(rows).collect();
        all.push(Paged { rows, positions, reader: Some(DType::Q8_0), ..wide.clone() });
    }
    // One sequence: few tokens, many tokens, and partially filled chunks.
    for (rows, position, count) in [(8, 0, 8), (8, 100, 5), (17, 0, 17), (65, 130, 40)] {
        all.push(Paged::prefill(rows, position, count));
        let window = Some(30);
        all.push(Paged { window, context: 5000, ..Paged::prefill(rows, position + 1000, count) });
    }
    all.into_iter().map(Paged::case).collect()
}
