//! The graphs of a scheduler over its KV pool, each prepared when it is first needed.

use std::ops::Range;

use rullama_engine::{
    executor::{Device, Memory, Results},
    gpu::{Fence, profile::Table},
    graph::{Step, Type},
    ops::{Draw, GatherTokens, Sequences},
};
use rullama_models::decoder::{
    Inputs, Kind, Pass, PassInput, PassOutput, PoolPages, PoolShape, adapted_decoder, kv_caches,
};

use super::{
    SchedulerOptions,
    adapters::{AdapterTable, Factors, NO_ADAPTER, mixes_plain_rows},
    running::Content,
};
use crate::{
    adapters::Adapters,
    error::RuntimeError,
    kv_pool::{KINDS, SequencePages},
    model::Model,
    session::{
        BatchKey, DEFAULT_CONTEXT, MAX_IN_FLIGHT, PreparedPass, SHORT_CONTEXT, chunk, feeds_itself,
        is_soft, sees_blocks,
    },
};

/// Rows of decode passes.
const ROWS: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// Rows of a pass up to which each gives what it gives alone, whatever the options say.
pub(super) const INVARIANT_ROWS: usize = 8;

/// Passes averaged by a profile.
const PROFILED_PASSES: usize = 5;

/// Which graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    factors: Factors,
    output: PassOutput,
    tokens: usize,
    /// Whether it is for positions before [`SHORT_CONTEXT`].
    is_short: bool,
    /// Whether some tokens may be soft.
    has_soft: bool,
}

/// The graphs, and the memory they share.
pub(super) struct Passes {
    model: Model,
    context: usize,
    chunk: usize,
    /// Most rows of a decode pass.
    most_rows: usize,
    options: SchedulerOptions,
    suppress: Vec<u32>,
    shape: PoolShape,
    memory: Memory,
    /// A few dozen at most.
    prepared: Vec<(Key, PreparedPass)>,
    adapters: AdapterTable,
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
    pub(super) token: LastToken,
    pub(super) position: usize,
    pub(super) pages: &'a SequencePages,
    /// How its next token is drawn, and the seed.
    pub(super) draw: Draw,
    pub(super) seed: u32,
    /// Where the device keeps the sequence's latest token.
    pub(super) slot: u32,
    /// The word of its adapter in the pass: see [`Passes::place`].
    pub(super) adapter: u32,
}

/// The last token of a sequence.
#[derive(Debug, Clone, Copy)]
pub(super) enum LastToken {
    /// The host knows it.
    Known(u32),
    /// The pass before chooses it.
    OnDevice,
}

/// Takes the most likely token.
pub(super) const GREEDY: Draw = Draw { temperature: 0.0, top_p: 1.0, min_p: 0.0, top_k: 0.0 };

/// Whether GEMM tiles are faster than reading weights once for 8 rows.
fn has_matrix_units(device: &Device) -> bool {
    matches!(device, Device::Gpu(gpu) if gpu.facts().matrix.is_some())
}

impl Passes {
    pub(super) fn new(model: &Model, options: &SchedulerOptions) -> Result<Self, RuntimeError> {
        let config = model.config();
        let trained = config.context;
        let context = options.context.unwrap_or(DEFAULT_CONTEXT.min(trained));
        if context == 0 || context > trained {
            return Err(RuntimeError::BadContext { requested: context, trained });
        }
        config.check_cache(options.cache.into())?;
        let (chunk, page) = (options.chunk.clamp(1, context), options.page.clamp(1, context));
        let entries = context.div_ceil(page);
        // The window of a pass's first token, all of its tokens, and what is left of the first and the last page.
        let block = if sees_blocks(config) { options.block.min(context) } else { 0 };
        let pass = chunk.max(block);
        let ring = config.window.saturating_add(pass).saturating_sub(1).div_ceil(page) + 1;
        let sliding = entries.min(ring);
        let pool = options.pool.unwrap_or_else(|| context.saturating_mul(8));
        let sequences = options.sequences.max(1);
        let pages = pool.div_ceil(page).max(1);
        let shape = PoolShape {
            page,
            global: PoolPages { pages, entries },
            // No sequence takes more pages of sliding layers than of global ones.
            sliding: PoolPages {
                pages: sequences.saturating_mul(sliding).min(pages),
                entries: sliding,
            },
            gemm: !options.batch_invariant.unwrap_or_else(|| !has_matrix_units(model.device())),
            slots: sequences,
        };
        let most_rows = ROWS[ROWS.len() - 1];
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
            most_rows,
            options: options.clone(),
            suppress,
            shape,
            memory: Memory::new(model.device()),
            prepared: Vec::new(),
            adapters: AdapterTable::default(),
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
        self.memory.gpu_bytes()
            + self.adapters.gpu_bytes()
            + self.prepared.iter().map(|(_, pass)| pass.gpu_bytes()).sum::<u64>()
    }

    pub(super) fn fence(&self) -> Result<Option<Fence>, RuntimeError> {
        Ok(self.model.0.weights.fence()?)
    }

    /// What sessions have in common whose passes compute what these compute.
    pub(super) fn batch_key(&self) -> BatchKey {
        BatchKey::new(self.context, self.options.cache, self.chunk, &self.suppress)
    }

    /// Names, layer kinds and types of the KV pool's states.
    pub(super) fn kv_caches(&self) -> Vec<(String, Kind, Type)> {
        let output = PassOutput::Caches;
        let key =
            Key { factors: Factors::None, output, tokens: 1, is_short: false, has_soft: false };
        kv_caches(self.model.config(), &self.pass(key))
    }

    /// Creates the KV pool, if no graph has done so.
    ///
    /// # Errors
    /// If memory runs out.
    pub(super) async fn create_pool(&mut self) -> Result<(), RuntimeError> {
        for (name, _, ty) in self.kv_caches() {
            self.memory.create(&name, &ty).await?;
        }
        Ok(())
    }

    /// The states.
    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The number of a request's adapters.
    pub(super) fn adapter_id(&mut self, adapters: Option<&Adapters>) -> u64 {
        self.adapters.id(adapters)
    }

    /// Lets requests with different adapters share decode passes, as far as they can.
    ///
    /// # Errors
    /// If the device fails.
    pub(super) async fn share_adapters(&mut self) -> Result<(), RuntimeError> {
        if self.adapters.is_placed() {
            return Ok(());
        }
        let output = PassOutput::LogitsEach;
        let key =
            Key { factors: Factors::None, output, tokens: 1, is_short: false, has_soft: false };
        let (model, pass) = (self.model.clone(), self.pass(key));
        self.adapters.share(&model, &pass).await?;
        self.prepared.retain(|(key, _)| self.adapters.has(key.factors));
        Ok(())
    }

    /// The factors of a request's decode passes, and its word in their sequences.
    pub(super) fn place(&self, adapter: u64) -> (Factors, u32) {
        self.adapters.place(adapter)
    }

    /// Whether requests without adapters may share passes with those that have some.
    pub(super) fn mixes_plain_rows(&self) -> bool {
        mixes_plain_rows(self.model.device())
    }

    /// Drops adapters that no request has any more, with their graphs; false for requests without.
    pub(super) fn forget(&mut self, adapter: u64) -> bool {
        if adapter == NO_ADAPTER {
            return false;
        }
        self.adapters.forget(adapter);
        self.prepared.retain(|(key, _)| self.adapters.has(key.factors));
        true
    }

    /// The same graphs over a KV pool of half the size; `None` if one of them is prepared and uses the pool.
    pub(super) fn with_smaller_pool(&self) -> Option<Self> {
        let PoolShape { page, global, .. } = self.shape;
        let options = SchedulerOptions {
            pool: Some(global.pages / 2 * page),
            sequences: (self.shape.slots / 2).max(1),
            ..self.options.clone()
        };
        let smaller = self.prepared.is_empty() && global.pages > 1;
        smaller.then(|| Self::new(&self.model, &options).ok()).flatten()
    }

    /// The slots of latest tokens, the first one last.
    pub(super) fn slots(&self) -> Vec<u32> {
        // Slots are as many as sequences, whose rows fit 32 bits.
        (0..self.shape.slots as u32).rev().collect()
    }

    /// Decode passes that may be in flight.
    pub(super) fn in_flight(&self) -> usize {
        let most = self.options.in_flight.clamp(1, MAX_IN_FLIGHT);
        if feeds_itself(&self.model) { most } else { 1 }
    }

    /// Whether passes of more than 8 rows compute what each row gives alone.
    pub(super) fn is_batch_invariant(&self) -> bool {
        !self.shape.gemm
    }

    /// Most rows of a decode pass.
    pub(super) fn most_rows(&self) -> usize {
        self.most_rows
    }

    /// Half the rows of a pass for so many: the device has no memory for that one.
    pub(super) fn fewer_rows(&mut self, rows: usize) -> usize {
        self.most_rows = (rows_for(rows) / 2).max(1);
        self.most_rows
    }

    /// The next chunk of a prompt of which the first `filled` tokens are done: as a session cuts it.
    ///
    /// # Errors
    /// If an image is longer than sliding windows have room for.
    pub(super) fn chunk(&self, content: &Content, filled: usize) -> Result<Chunk, RuntimeError> {
        let left = content.tokens.len() - 1 - filled;
        let size = chunk(left, self.chunk);
        let config = self.model.config();
        let most = (filled, left.min(size));
        let count = match content.media.is_empty() {
            true => left.min(size),
            false => content.soft.uncut(config, &content.tokens, most, self.block_room())?,
        };
        let is_full = count == self.chunk && filled.is_multiple_of(self.chunk);
        Ok(Chunk { size: size.max(count), count, is_full })
    }

    /// Most tokens of a pass that the block tables of sliding layers have room for, wherever in a page it begins.
    fn block_room(&self) -> usize {
        let PoolShape { page, global, sliding, .. } = self.shape;
        if sliding.entries == global.entries {
            return usize::MAX;
        }
        ((sliding.entries - 1) * page + 2).saturating_sub(self.model.config().window)
    }

    /// Whether passes that choose a token at this position read a short context, as those of a session do.
    pub(super) fn is_short(&self, position: usize) -> bool {
        position < SHORT_CONTEXT && SHORT_CONTEXT < self.context
    }

    /// Queues a chunk of a prompt.
    pub(super) async fn prefill(
        &mut self,
        adapter: u64,
        chunk: Chunk,
        content: &Content,
        range: Range<usize>,
        pages: &SequencePages,
    ) -> Result<(), RuntimeError> {
        let model = self.model.clone();
        let (size, position) = (chunk.size, range.start);
        // Soft tokens have the per-layer inputs of the first token, which is padding.
        let id = |id: &u32| if is_soft(*id) { 0 } else { *id };
        let mut ids: Vec<u32> = content.tokens[range.clone()].iter().map(id).collect();
        let rows = model.0.table_rows(&ids).await?;
        ids.resize(size, 0);
        let has_soft = content.has_soft(range.clone());
        let output = PassOutput::Caches;
        let factors = if adapter == NO_ADAPTER { Factors::None } else { Factors::Adapter(adapter) };
        let key = Key { factors, output, tokens: size, is_short: false, has_soft };
        let index = self.prepare(key).await?;
        let prepared = &self.prepared[index].1;
        if has_soft {
            let (rows, blocks) = content.soft.rows(&model.0, &content.tokens, range, size).await?;
            prepared.write_f32(Inputs::ROWS, &rows);
            prepared.write_ids(Inputs::BLOCKS, &blocks);
        }
        // Positions fit: a context has fewer than 2^24 tokens.
        for (input, table) in model.0.rope_tables(&(position as u32..(position + size) as u32)) {
            prepared.write_f32(input, &table);
        }
        self.write_table_rows(prepared, rows, size);
        prepared.write_ids(Inputs::IDS, &ids);
        let token = LastToken::OnDevice;
        let row = Row { token, position, pages, draw: GREEDY, seed: 0, slot: 0, adapter: 0 };
        self.write_sequences(prepared, &[row], 1);
        let step = Step { position: position as u32, count: chunk.count as u32, ..Step::default() };
        prepared.run(&model.0, &step).await
    }

    /// Queues a token of each row; what comes back are tokens `u32[rows]` or logits.
    pub(super) async fn decode(
        &mut self,
        (factors, output, is_short): (Factors, PassOutput, bool),
        rows: &[Row<'_>],
    ) -> Result<Results, RuntimeError> {
        let model = self.model.clone();
        let size = rows_for(rows.len());
        let known = |row: &Row<'_>| match row.token {
            LastToken::Known(token) => token,
            LastToken::OnDevice => 0,
        };
        let table_rows = model.0.table_rows(&rows.iter().map(known).collect::<Vec<_>>()).await?;
        let id = |row: &Row<'_>| match row.token {
            LastToken::Known(token) => token,
            LastToken::OnDevice => GatherTokens::ON_DEVICE | row.slot,
        };
        let mut ids: Vec<u32> = rows.iter().map(id).collect();
        ids.resize(size, 0);
        let key = Key { factors, output, tokens: size, is_short, has_soft: false };
        let index = self.prepare(key).await?;
        let prepared = &self.prepared[index].1;
        let positions = rows.iter().map(|row| row.position as u32).chain(std::iter::repeat(0));
        for (input, table) in model.0.rope_tables(&positions.take(size)) {
            prepared.write_f32(input, &table);
        }
        self.write_table_rows(prepared, table_rows, size);
        prepared.write_ids(Inputs::IDS, &ids);
        self.write_sequences(prepared, rows, size);
        if output == PassOutput::DrawnEach {
            let mut draws: Vec<f32> =
                rows.iter().flat_map(|row| <[f32; 4]>::from(row.draw)).collect();
            draws.resize(size * 4, 0.0);
            prepared.write_f32(Inputs::DRAW, &draws);
        }
        let result = prepared.result.expect("a graph that chooses has a result");
        prepared.run_reading(&model.0, &Step::of_rows(rows.len() as u32), &[result]).await
    }

    /// Profiles the decode pass for so many rows, on the inputs of its last run; `None` if none ran, or on the CPU.
    pub(super) async fn profile(&self, rows: usize) -> Result<Option<Table>, RuntimeError> {
        let is_it = |key: &Key| key.tokens == rows_for(rows) && key.output != PassOutput::Caches;
        let found = self.prepared.iter().find(|(key, _)| is_it(key));
        let Some(plan) = found.and_then(|(_, prepared)| prepared.whole_on_gpu()) else {
            return Ok(None);
        };
        let step = Step::of_rows(rows as u32);
        let mut runs = Vec::with_capacity(PROFILED_PASSES);
        for _ in 0..PROFILED_PASSES {
            runs.push(plan.profile(&step).await?);
        }
        Ok(Some(plan.profile_table(&runs, &step, None)))
    }

    fn write_table_rows(&self, prepared: &PreparedPass, rows: Option<Vec<f32>>, size: usize) {
        if let Some(mut rows) = rows {
            rows.resize(size * self.model.config().table_width(), 0.0);
            prepared.write_f32(Inputs::PER_LAYER, &rows);
        }
    }

    /// Writes positions, seeds, slots, adapters and block tables for both kinds of layers.
    fn write_sequences(&self, prepared: &PreparedPass, sequences: &[Row<'_>], rows: usize) {
        for (number, kind) in KINDS.into_iter().enumerate() {
            let entries = self.shape.of(kind).entries;
            let words = |row: &Row<'_>| {
                let table = row.pages.table(number);
                let mut words = Sequences::words(row.position as u32, row.seed, &table, entries);
                words[Sequences::SLOT] = row.slot;
                words[Sequences::ADAPTER] = row.adapter;
                words
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

    /// Prepares a graph, unless that was done before; its index.
    async fn prepare(&mut self, key: Key) -> Result<usize, RuntimeError> {
        if let Some(index) = self.prepared.iter().position(|(known, _)| *known == key) {
            return Ok(index);
        }
        let model = self.model.clone();
        let pass = self.pass(key);
        let (adapters, slots) = match key.factors {
            Factors::None => (None, None),
            Factors::Adapter(id) => (self.adapters.get(id), None),
            Factors::Pool(id) => (None, self.adapters.pool(id)),
        };
        let adapted = adapters.map(Adapters::adapted).or(slots.map(|slots| &slots.adapted));
        let decoder = adapted_decoder(&model.0.config, &model.0.catalog, &pass, adapted);
        let own = adapters.map_or(&model.0.weights, Adapters::weights);
        let weights = slots.map_or(own, |slots| &slots.weights);
        let prepared =
            PreparedPass::with_weights(decoder, weights, adapters, &mut self.memory).await?;
        if pass.suppressed > 0 {
            prepared.write_ids(Inputs::SUPPRESSED, &self.suppress);
        }
        self.prepared.push((key, prepared));
        Ok(self.prepared.len() - 1)
    }

    fn pass(&self, key: Key) -> Pass {
        let Key { output, tokens, is_short, has_soft, .. } = key;
        Pass {
            tokens,
            input: if has_soft { PassInput::Rows } else { PassInput::Ids },
            table: self.model.0.table_resident,
            output,
            context: self.context,
            ring: self.context,
            cache: self.options.cache.into(),
            suppressed: if output == PassOutput::Caches { 0 } else { self.suppress.len() },
            traced: false,
            host_experts: self.model.0.host_experts,
            blocks: has_soft && sees_blocks(self.model.config()),
            hidden: false,
            short_context: is_short.then_some(SHORT_CONTEXT),
            pool: Some(self.shape),
        }
    }
}

/// Rows of the pass for so many.
fn rows_for(rows: usize) -> usize {
    ROWS.into_iter().find(|size| *size >= rows).unwrap_or(ROWS[ROWS.len() - 1])
}
