//! The graphs of a scheduler over its KV pool, each prepared when it is first needed.

use std::collections::HashMap;

use rullama_engine::{
    executor::{Memory, Results},
    gpu::Fence,
    graph::Step,
    ops::{Draw, Sequences},
};
use rullama_models::gemma4::{
    Inputs, Kind, Pass, PassInput, PassOutput, PoolPages, PoolShape, adapted_decoder,
};

use super::SchedulerOptions;
use crate::{
    adapters::Adapters,
    error::RuntimeError,
    kv_pool::{KINDS, SequencePages},
    model::Model,
    session::{DEFAULT_CONTEXT, PreparedPass, SHORT_CONTEXT, chunk},
};

/// Rows of decode passes: weights are read once for up to eight of them.
const ROWS: [usize; 4] = [1, 2, 4, 8];
/// Most rows of a decode pass.
pub(super) const MOST_ROWS: usize = 8;

/// Requests without adapters.
const NO_ADAPTER: u64 = 0;

/// Which graph: the adapter, what comes out, rows, and whether it is for positions before [`SHORT_CONTEXT`].
type Key = (u64, PassOutput, usize, bool);

/// The graphs, and the memory they share.
pub(super) struct Passes {
    model: Model,
    context: usize,
    chunk: usize,
    options: SchedulerOptions,
    suppress: Vec<u32>,
    shape: PoolShape,
    memory: Memory,
    prepared: HashMap<Key, PreparedPass>,
    /// Adapters of running requests, by number.
    adapters: Vec<(u64, Adapters)>,
    last_adapter: u64,
}

/// The next tokens of a prompt that go through one pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk {
    /// Tokens the pass has room for.
    pub(super) size: usize,
    /// Tokens it computes.
    pub(super) count: usize,
    /// Whether every prompt that begins with the tokens up to its end computes them so.
    pub(super) is_full: bool,
}

/// A row of a decode pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    /// The last token.
    pub(super) token: u32,
    pub(super) position: usize,
    pub(super) pages: &'a SequencePages,
    /// How its next token is drawn, and the seed.
    pub(super) draw: Draw,
    pub(super) seed: u32,
}

/// Takes the most likely token.
pub(super) const GREEDY: Draw = Draw { temperature: 0.0, top_p: 1.0, min_p: 0.0, top_k: 0.0 };

impl Passes {
    pub(super) fn new(model: &Model, options: &SchedulerOptions) -> Result<Self, RuntimeError> {
        let config = model.config();
        let trained = config.context;
        let context = options.context.unwrap_or(DEFAULT_CONTEXT.min(trained));
        if context == 0 || context > trained {
            return Err(RuntimeError::BadContext { asked: context, trained });
        }
        config.check_cache(options.cache.into())?;
        let (chunk, page) = (options.chunk.clamp(1, context), options.page.clamp(1, context));
        let entries = context.div_ceil(page);
        // The window of a pass's first token, all of its tokens, and what is left of the first and the last page.
        let ring = config.window.saturating_add(chunk).saturating_sub(1).div_ceil(page) + 1;
        let sliding = entries.min(ring);
        let pool = options.pool.unwrap_or_else(|| context.saturating_mul(8));
        let shape = PoolShape {
            page,
            global: PoolPages { pages: pool.div_ceil(page).max(1), entries },
            sliding: PoolPages {
                pages: options.sequences.max(1).saturating_mul(sliding),
                entries: sliding,
            },
        };
        let mut suppress = options.suppress.clone();
        if let Ok(tokenizer) = model.tokenizer() {
            suppress.extend(tokenizer.suppressed());
        }
        suppress.sort_unstable();
        suppress.dedup();
        Ok(Self {
            model: model.clone(),
            context,
            chunk,
            options: options.clone(),
            suppress,
            shape,
            memory: Memory::new(model.device()),
            prepared: HashMap::new(),
            adapters: Vec::new(),
            last_adapter: NO_ADAPTER,
        })
    }

    pub(super) fn model(&self) -> &Model {
        &self.model
    }

    pub(super) fn context(&self) -> usize {
        self.context
    }

    pub(super) fn shape(&self) -> PoolShape {
        self.shape
    }

    pub(super) fn gpu_bytes(&self) -> u64 {
        self.memory.gpu_bytes() + self.prepared.values().map(PreparedPass::gpu_bytes).sum::<u64>()
    }

    pub(super) fn fence(&self) -> Result<Option<Fence>, RuntimeError> {
        Ok(self.model.0.weights.fence()?)
    }

    /// The number of a request's adapters.
    pub(super) fn adapter_id(&mut self, adapters: Option<Adapters>) -> u64 {
        let Some(adapters) = adapters else { return NO_ADAPTER };
        if let Some((id, _)) = self.adapters.iter().find(|(_, known)| known.is(&adapters)) {
            return *id;
        }
        self.last_adapter += 1;
        self.adapters.push((self.last_adapter, adapters));
        self.last_adapter
    }

    /// Drops adapters that no request has any more, with their graphs; false for requests without.
    pub(super) fn forget(&mut self, adapter: u64) -> bool {
        self.adapters.retain(|(id, _)| *id != adapter);
        if adapter != NO_ADAPTER {
            self.prepared.retain(|(id, ..), _| *id != adapter);
        }
        adapter != NO_ADAPTER
    }

    /// The next chunk of a prompt of which the first `filled` of `all` tokens are done: as a session cuts it.
    pub(super) fn chunk(&self, filled: usize, all: usize) -> Chunk {
        let left = all - filled;
        let size = chunk(left, self.chunk);
        let count = left.min(size);
        let is_full = count == self.chunk && filled.is_multiple_of(self.chunk);
        Chunk { size, count, is_full }
    }

    /// Whether passes that choose a token at this position read a short context, as those of a session do.
    pub(super) fn is_short(&self, position: usize) -> bool {
        position < SHORT_CONTEXT && SHORT_CONTEXT < self.context
    }

    /// Queues a chunk of a prompt that starts at a position.
    pub(super) async fn prefill(
        &mut self,
        adapter: u64,
        chunk: Chunk,
        tokens: &[u32],
        position: usize,
        pages: &SequencePages,
    ) -> Result<(), RuntimeError> {
        let model = self.model.clone();
        let size = chunk.size;
        let mut ids = tokens.to_vec();
        let rows = model.0.table_rows(&ids).await?;
        ids.resize(size, 0);
        let key = (adapter, PassOutput::Caches, size, false);
        self.prepare(key).await?;
        let prepared = &self.prepared[&key];
        // Positions fit: a context has fewer than 2^24 tokens.
        for (input, table) in model.0.rope_tables(position as u32..(position + size) as u32) {
            prepared.write_numbers(input, &table);
        }
        self.write_table_rows(prepared, rows, size);
        prepared.write_ids(Inputs::IDS, &ids);
        self.write_sequences(prepared, &[(position, 0, pages)], 1);
        let step = Step { position: position as u32, count: chunk.count as u32, ..Step::default() };
        prepared.run(&model.0, &step).await
    }

    /// Queues a token of each row; what comes back are tokens `u32[rows]` or logits.
    pub(super) async fn decode(
        &mut self,
        (adapter, output, short): (u64, PassOutput, bool),
        rows: &[Row<'_>],
    ) -> Result<Results, RuntimeError> {
        let model = self.model.clone();
        let size = ROWS.into_iter().find(|size| *size >= rows.len()).unwrap_or(MOST_ROWS);
        let mut ids: Vec<u32> = rows.iter().map(|row| row.token).collect();
        let table_rows = model.0.table_rows(&ids).await?;
        ids.resize(size, 0);
        let key = (adapter, output, size, short);
        self.prepare(key).await?;
        let prepared = &self.prepared[&key];
        for (input, table) in rope_rows(&model, rows, size) {
            prepared.write_numbers(input, &table);
        }
        self.write_table_rows(prepared, table_rows, size);
        prepared.write_ids(Inputs::IDS, &ids);
        let sequences: Vec<_> =
            rows.iter().map(|row| (row.position, row.seed, row.pages)).collect();
        self.write_sequences(prepared, &sequences, size);
        if output == PassOutput::DrawnEach {
            let mut draws: Vec<f32> =
                rows.iter().flat_map(|row| <[f32; 4]>::from(row.draw)).collect();
            draws.resize(size * 4, 0.0);
            prepared.write_numbers(Inputs::DRAW, &draws);
        }
        let result = prepared.result.expect("a graph that chooses has a result");
        prepared.run_reading(&model.0, &Step::of_rows(rows.len() as u32), &[result]).await
    }

    fn write_table_rows(&self, prepared: &PreparedPass, rows: Option<Vec<f32>>, size: usize) {
        if let Some(mut rows) = rows {
            rows.resize(size * self.model.config().table_width(), 0.0);
            prepared.write_numbers(Inputs::PER_LAYER, &rows);
        }
    }

    /// Writes positions, seeds and block tables for both kinds of layers.
    fn write_sequences(
        &self,
        prepared: &PreparedPass,
        sequences: &[(usize, u32, &SequencePages)],
        rows: usize,
    ) {
        for (number, kind) in KINDS.into_iter().enumerate() {
            let entries = self.shape.of(kind).entries;
            let words = |(position, seed, pages): &(usize, u32, &SequencePages)| {
                Sequences::words(*position as u32, *seed, &pages.table(number), entries)
            };
            let mut words: Vec<u32> = sequences.iter().flat_map(words).collect();
            words.resize(rows * (Sequences::HEADER + entries), 0);
            let name = match kind {
                Kind::Global => Inputs::SEQUENCES_GLOBAL,
                Kind::Sliding => Inputs::SEQUENCES_SLIDING,
            };
            prepared.write_ids(name, &words);
        }
    }

    async fn prepare(&mut self, key: Key) -> Result<(), RuntimeError> {
        if self.prepared.contains_key(&key) {
            return Ok(());
        }
        let model = self.model.clone();
        let (adapter, output, tokens, short) = key;
        let pass = self.pass(output, tokens, short);
        let known = self.adapters.iter().find(|(id, _)| *id == adapter);
        let adapters = known.map(|(_, adapters)| adapters);
        let adapted = adapters.map(Adapters::adapted);
        let decoder = adapted_decoder(&model.0.config, &model.0.catalog, &pass, adapted);
        let prepared = PreparedPass::new(decoder, &model.0, adapters, &mut self.memory).await?;
        if pass.suppressed > 0 {
            prepared.write_ids(Inputs::SUPPRESSED, &self.suppress);
        }
        self.prepared.insert(key, prepared);
        Ok(())
    }

    fn pass(&self, output: PassOutput, tokens: usize, short: bool) -> Pass {
        Pass {
            tokens,
            input: PassInput::Ids,
            table: self.model.0.table_resident,
            output,
            context: self.context,
            ring: self.context,
            cache: self.options.cache.into(),
            suppressed: if output == PassOutput::Caches { 0 } else { self.suppress.len() },
            traced: false,
            host_experts: self.model.0.host_experts,
            blocks: false,
            hidden: false,
            short_context: short.then_some(SHORT_CONTEXT),
            pool: Some(self.shape),
        }
    }
}

/// The RoPE tables of rows at their own positions.
fn rope_rows(model: &Model, rows: &[Row<'_>], size: usize) -> Vec<(&'static str, Vec<f32>)> {
    let mut tables: Vec<(&'static str, Vec<f32>)> = Vec::new();
    let positions = rows.iter().map(|row| row.position as u32).chain(std::iter::repeat(0));
    for position in positions.take(size) {
        for (i, (input, table)) in
            model.0.rope_tables(position..position + 1).into_iter().enumerate()
        {
            match tables.get_mut(i) {
                Some((_, rows)) => rows.extend(table),
                None => tables.push((input, table)),
            }
        }
    }
    tables
}
