//! Speculative decoding: drafted tokens are verified by the model in one pass.
//! A round computes the last token and the drafts after it in one batch-invariant pass. The next token after each of them is sampled
//! with the same random number as without drafts; a draft is accepted if it equals the sampled token. The output is therefore
//! bit-identical to decoding without drafts, greedy or sampled. For sampling this is the standard acceptance rule with deterministic
//! drafts: accepted with the model's probability, otherwise another token is sampled.

use std::collections::{HashMap, VecDeque};

use rullama_engine::{
    cpu::Data,
    executor::{Device, Plan},
    gpu::profile::Table,
    graph::{Graph, Origin, Step, Type, Value, ValueInfo},
};
use rullama_models::{
    decoder::{Inputs, PassOutput},
    gemma4::assistant::{DraftInputs, DraftPass, draft},
};

use super::{
    DeviceSampling, Session, Tap,
    gain::{Gain, RoundCost},
    keep_tapped,
    lookup::look_up,
    steps::step,
    tap,
};
use crate::{drafter::Drafter, error::RuntimeError};

/// Maximum drafts of a round: batched GEMV kernels take at most eight rows.
pub const MAX_DRAFTS: usize = 7;
/// Default maximum of drafts per round.
pub const DEFAULT_DRAFTS: usize = 6;

/// Where drafts come from.
#[derive(Debug, Clone)]
pub enum DraftSource {
    /// A draft model.
    Drafter(Drafter),
    /// Prompt lookup: tokens that followed the same n-gram before.
    Text,
}

/// Options of speculative decoding.
#[derive(Debug, Clone)]
pub struct DraftOptions {
    /// Where drafts come from.
    pub source: DraftSource,
    /// Maximum drafts per round.
    pub most: usize,
    /// Whether the number of drafts adapts to the acceptance rate.
    pub adapt: bool,
    /// Fixed share of drafts that count as accepted, to measure speed with random weights. The output is then not the model's.
    pub pretend: Option<f32>,
}

impl DraftOptions {
    /// Default options.
    pub fn new(source: DraftSource) -> Self {
        Self { source, most: DEFAULT_DRAFTS, adapt: true, pretend: None }
    }
}

/// Acceptance counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DraftCounts {
    /// Verification passes.
    pub rounds: usize,
    /// Drafted tokens.
    pub drafted: usize,
    /// Accepted drafts.
    pub accepted: usize,
}

/// Intermediate values of a drafter, for comparison with other implementations.
#[derive(Debug, Clone, PartialEq)]
pub struct DraftTrace {
    /// The drafted tokens.
    pub ids: Vec<u32>,
    /// `step0.logits` (if the head scores the whole vocabulary), `step0.hidden` and so on.
    pub taps: Vec<Tap>,
}

/// Speculative decoding state of a session.
#[derive(Debug)]
pub(super) struct Drafting {
    options: DraftOptions,
    gain: Gain,
    counts: DraftCounts,
    /// Verified tokens that were not returned yet.
    chosen: VecDeque<u32>,
    chosen_by: Option<DeviceSampling>,
    /// Number of cached tokens for which the last hidden state is known, and its row in [`Inputs::HIDDEN`].
    hidden: Option<(usize, usize)>,
    /// Graphs of the drafter, by the number of drafts.
    plans: HashMap<usize, Plan>,
    /// With [`DraftOptions::pretend`]: accepted drafts so far, and the exact share.
    pretended: (usize, f64),
}

impl Drafting {
    fn new(options: DraftOptions, cost: RoundCost) -> Self {
        let gain = Gain::new(options.most, cost, !options.adapt || options.pretend.is_some());
        Self {
            options,
            gain,
            counts: DraftCounts::default(),
            chosen: VecDeque::new(),
            chosen_by: None,
            hidden: None,
            plans: HashMap::new(),
            pretended: (0, 0.0),
        }
    }

    /// Discards verified tokens that were not returned.
    pub(super) fn forget(&mut self) {
        self.chosen.clear();
        self.chosen_by = None;
        self.hidden = None;
    }

    /// Bytes of the drafter and its graphs on the GPU.
    pub(super) fn gpu_bytes(&self) -> u64 {
        let weights = match &self.options.source {
            DraftSource::Drafter(drafter) => drafter.gpu_bytes(),
            DraftSource::Text => 0,
        };
        weights + self.plans.values().map(Plan::gpu_bytes).sum::<u64>()
    }

    /// A copy for a forked session, without its graphs.
    pub(super) fn fork(&self) -> Self {
        Self { gain: self.gain.clone(), ..Self::new(self.options.clone(), RoundCost::default()) }
    }

    /// Number of accepted drafts, given the sampled tokens.
    fn accepted(&mut self, drafts: &[u32], chosen: &[u32]) -> usize {
        let Some(share) = self.options.pretend else {
            return drafts.iter().zip(chosen).take_while(|(draft, chosen)| draft == chosen).count();
        };
        let (done, wanted) = &mut self.pretended;
        *wanted += drafts.len() as f64 * f64::from(share);
        let accepted = (*wanted as usize).saturating_sub(*done).min(drafts.len());
        *done += accepted;
        accepted
    }
}

impl Session {
    /// Enables or disables speculative decoding.
    ///
    /// # Errors
    /// If the drafter belongs to another model.
    pub fn draft(&mut self, options: Option<DraftOptions>) -> Result<(), RuntimeError> {
        self.drop_in_flight();
        self.plans.forget_drafts();
        let Some(mut options) = options else {
            self.drafting = None;
            return Ok(());
        };
        options.most = options.most.clamp(1, MAX_DRAFTS);
        if let DraftSource::Drafter(drafter) = &options.source {
            drafter.config().check(self.model.config())?;
        }
        self.keeps_hidden = matches!(options.source, DraftSource::Drafter(_));
        let cost = self.draft_cost(&options.source);
        self.drafting = Some(Drafting::new(options, cost));
        Ok(())
    }

    /// Acceptance counts so far; `None` without speculative decoding.
    pub fn draft_counts(&self) -> Option<DraftCounts> {
        self.drafting.as_ref().map(|drafting| drafting.counts)
    }

    /// Estimated cost of a round: drafting and verification.
    fn draft_cost(&self, source: &DraftSource) -> RoundCost {
        let config = self.model.config();
        // On a GPU, decoding without drafts keeps steps in flight, and rounds need a few more dispatches.
        let (start, checking) = match (self.model.device(), config.experts) {
            // Each draft reads the weights of its own experts.
            (Device::Gpu(_), Some(_)) => (0.3, 0.3),
            // Dispatch latency dominates, and a few rows need as many dispatches as one. Re-tune with `rullama bench` if kernels change.
            (Device::Gpu(_), None) => (0.4, 0.13),
            (Device::Cpu, _) => (0.0, 0.45),
        };
        let drafting_cost = match source {
            DraftSource::Text => 0.0,
            DraftSource::Drafter(drafter) => {
                drafter.config().layers.len() as f64 / config.layers.len() as f64
            }
        };
        RoundCost { start, draft: checking + drafting_cost }
    }

    /// Whether the next token comes from a round with drafts.
    pub(super) fn drafts_now(&self) -> bool {
        let Some(drafting) = &self.drafting else { return false };
        let length = drafting.gain.length();
        let found = match drafting.options.source {
            DraftSource::Drafter(_) => length > 0,
            DraftSource::Text => !look_up(&self.tokens, length).is_empty(),
        };
        found || !drafting.chosen.is_empty()
    }

    /// The next token: left over from the last round, or from a new one; `None` at the end of the context.
    pub(super) async fn next_drafted(
        &mut self,
        sampling: DeviceSampling,
    ) -> Result<Option<u32>, RuntimeError> {
        if self.drafting.as_ref().is_some_and(|drafting| drafting.chosen_by != Some(sampling)) {
            self.drop_in_flight();
        }
        if self.drafting.as_ref().is_some_and(|drafting| drafting.chosen.is_empty()) {
            self.in_flight.clear();
            self.in_flight_sampling = None;
            self.round(sampling).await?;
        }
        let drafting = self.drafting.as_mut().expect("speculative decoding is enabled");
        let token = drafting.chosen.pop_front().expect("a round samples a token");
        self.filled += 1;
        self.tokens.push(token);
        Ok(Some(token))
    }

    /// One round: drafts, verifies, and queues the verified tokens.
    async fn round(&mut self, sampling: DeviceSampling) -> Result<(), RuntimeError> {
        self.keep(self.tokens.len() - 1);
        self.prefill(&mut |_| true).await?;
        let most = self.decode_limit() - 1 - self.filled;
        let mut drafting = self.drafting.take().expect("speculative decoding is enabled");
        let result = self.verify(&mut drafting, sampling, most).await;
        self.drafting = Some(drafting);
        result
    }

    async fn verify(
        &mut self,
        drafting: &mut Drafting,
        sampling: DeviceSampling,
        most: usize,
    ) -> Result<(), RuntimeError> {
        let rows = drafting.options.most + 1;
        let length = drafting.gain.length().min(most);
        let last = self.tokens.last().copied().unwrap_or(0);
        let mut known = vec![last];
        let mut count = 1;
        let output = output_each(sampling);
        let model = self.model.clone();
        self.prepared(output, rows).await?;
        match (&drafting.options.source, drafting.hidden) {
            (DraftSource::Text, _) => {
                known.extend(look_up(&self.tokens, length));
                count = known.len();
                self.write_drafts(output, rows, &known).await?;
            }
            (DraftSource::Drafter(drafter), Some((filled, row)))
                if filled == self.filled && length > 0 =>
            {
                let drafter = drafter.clone();
                self.write_drafts(output, rows, &known).await?;
                self.run_drafter(drafting, &drafter, (length, row)).await?;
                count += length;
            }
            (DraftSource::Drafter(_), _) => self.write_drafts(output, rows, &known).await?,
        }
        let range = self.filled..self.filled + count;
        self.write_each(output, rows, &range).await?;
        let seed = match sampling {
            DeviceSampling::Greedy => 0,
            DeviceSampling::Drawn { seed, .. } => seed,
        };
        let prepared = self.prepared(output, rows).await?;
        if let DeviceSampling::Drawn { draw, .. } = sampling {
            prepared.write_f32(Inputs::DRAW, &<[f32; 4]>::from(draw));
        }
        let chosen = prepared.result.expect("a sampling graph has a result");
        let wanted: Vec<Value> = [chosen].into_iter().chain(prepared.drafts()).collect();
        let results = prepared.run_reading(&model.0, &step(&range, seed), &wanted).await?;
        // The next round is likely to have the same length.
        prepared.prepare();
        drafting.plans.get(&length).into_iter().for_each(Plan::prepare);
        self.written = self.written.max(range.end);
        let (chosen, drafts) = match results.wait().await?.as_slice() {
            [Data::U32(chosen), Data::U32(drafts)] => (chosen.clone(), drafts[1..count].to_vec()),
            // The graph is split, and the drafts are in another segment.
            [Data::U32(chosen)] => (chosen.clone(), self.drafts(rows).await?[1..count].to_vec()),
            other => panic!("sampled tokens and drafts are ids, not {other:?}"),
        };
        let accepted = drafting.accepted(&drafts, &chosen);
        drafting.gain.learn(drafts.len(), accepted);
        drafting.counts.rounds += 1;
        drafting.counts.drafted += drafts.len();
        drafting.counts.accepted += accepted;
        drafting.chosen.extend(drafts.iter().take(accepted).copied().chain([chosen[accepted]]));
        drafting.chosen_by = Some(sampling);
        drafting.hidden = Some((self.filled + accepted + 1, accepted));
        Ok(())
    }

    /// Writes the last token and known drafts.
    async fn write_drafts(
        &mut self,
        output: PassOutput,
        rows: usize,
        known: &[u32],
    ) -> Result<(), RuntimeError> {
        let mut ids = known.to_vec();
        ids.resize(rows, 0);
        self.prepared(output, rows).await?.write_ids(Inputs::DRAFTS, &ids);
        Ok(())
    }

    /// Writes RoPE tables, and rows of the per-layer input table if it is not on the device: that requires reading back the drafts.
    async fn write_each(
        &mut self,
        output: PassOutput,
        rows: usize,
        range: &std::ops::Range<usize>,
    ) -> Result<(), RuntimeError> {
        self.write_positions(output, rows, range.clone()).await?;
        if self.model.0.table_resident || self.model.config().per_layer.is_none() {
            return Ok(());
        }
        let mut ids = self.drafts(rows).await?;
        ids.truncate(range.len());
        let width = self.model.config().table_width();
        if let Some(mut table_rows) = self.model.0.table_rows(&ids).await? {
            table_rows.resize(rows * width, 0.0);
            self.prepared(output, rows).await?.write_f32(Inputs::PER_LAYER, &table_rows);
        }
        Ok(())
    }

    /// Reads back the last token and the drafts after it.
    async fn drafts(&self, rows: usize) -> Result<Vec<u32>, RuntimeError> {
        let bytes = self.memory.read(Inputs::DRAFTS, &Type::u32([rows])).await?.unwrap_or_default();
        let id = |b: &[u8]| u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        Ok(bytes.chunks_exact(4).map(id).collect())
    }

    /// Runs the drafter, which writes drafts after the last token.
    async fn run_drafter(
        &mut self,
        drafting: &mut Drafting,
        drafter: &Drafter,
        (drafts, row): (usize, usize),
    ) -> Result<(), RuntimeError> {
        if !drafting.plans.contains_key(&drafts) {
            let graph = self.draft_graph(drafting, drafter, drafts);
            drafting.plans.insert(drafts, self.draft_plan(graph, drafter).await?);
        }
        let plan = &drafting.plans[&drafts];
        plan.run(&self.write_draft_inputs(plan, drafter, row))?;
        Ok(())
    }

    fn draft_graph(&self, drafting: &Drafting, drafter: &Drafter, drafts: usize) -> Graph {
        let pass = DraftPass {
            drafts,
            rows: drafting.options.most + 1,
            context: self.context,
            ring: self.ring,
            cache: self.options.cache.into(),
        };
        draft(&drafter.0.config, self.model.config(), &drafter.0.catalog, &pass).graph
    }

    /// The plan of a draft graph, with its constant inputs written.
    async fn draft_plan(&mut self, graph: Graph, drafter: &Drafter) -> Result<Plan, RuntimeError> {
        let plan = Plan::new(graph, &drafter.0.weights, &mut self.memory).await?;
        if !drafter.0.members.is_empty() {
            plan.write_ids(DraftInputs::MEMBERS, drafter.0.members.clone());
        }
        Ok(plan)
    }

    /// Writes the other inputs of a draft graph; returns the step it runs with.
    fn write_draft_inputs(&self, plan: &Plan, drafter: &Drafter, row: usize) -> Step {
        let inner = &drafter.0;
        let last = self.tokens.last().copied().unwrap_or(0);
        plan.write_ids(Inputs::TOKEN, vec![last]);
        plan.write_ids(DraftInputs::ROW, vec![row as u32]);
        // Drafts are computed at the last token's position and attend to the tokens before it.
        for (name, table) in inner.rope_tables(self.filled) {
            plan.write_f32(name, table);
        }
        Step { position: (self.filled - 1) as u32, count: 1, ..Step::default() }
    }

    /// The drafts after the last token, with the drafter's logits and hidden states; `None` without a drafter or before the first round.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn trace_drafts(
        &mut self,
        drafts: usize,
    ) -> Result<Option<DraftTrace>, RuntimeError> {
        let Some(drafting) = &self.drafting else { return Ok(None) };
        let (DraftSource::Drafter(drafter), Some((filled, row))) =
            (&drafting.options.source, drafting.hidden)
        else {
            return Ok(None);
        };
        if filled != self.filled {
            return Ok(None);
        }
        let (drafter, drafts) = (drafter.clone(), drafts.clamp(1, drafting.options.most));
        let mut graph = self.draft_graph(drafting, &drafter, drafts);
        let mut values = keep_tapped(&mut graph);
        let names: Vec<_> = values.iter().map(|value| graph.info(*value).clone()).collect();
        let state =
            |(_, info): &(Value, &ValueInfo)| info.origin == Origin::State(Inputs::DRAFTS.into());
        values.extend(graph.values().find(state).map(|(value, _)| value));
        let plan = self.draft_plan(graph, &drafter).await?;
        let step = self.write_draft_inputs(&plan, &drafter, row);
        let mut data = plan.run_reading(&step, &values).await?.wait().await?;
        let ids = match data.pop() {
            Some(Data::U32(ids)) => ids[1..=drafts].to_vec(),
            other => panic!("drafts are ids, not {other:?}"),
        };
        let taps = names.iter().zip(data).map(|(info, data)| tap(info, data)).collect();
        Ok(Some(DraftTrace { ids, taps }))
    }

    /// Profiles the drafting and the verification of a round, with the inputs of the last round. Tokens do not change. `None` on the
    /// CPU, or if nothing was drafted.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn profile_drafts(&mut self) -> Result<Option<(Table, Table)>, RuntimeError> {
        let Some(drafting) = self.drafting.as_ref() else { return Ok(None) };
        let (rows, row) = (drafting.options.most + 1, drafting.hidden.map_or(0, |(_, row)| row));
        let DraftSource::Drafter(drafter) = &drafting.options.source else { return Ok(None) };
        let Some((_, plan)) = drafting.plans.iter().max_by_key(|(drafts, _)| **drafts) else {
            return Ok(None);
        };
        let Some(draft_table) = plan.profile(&self.write_draft_inputs(plan, drafter, row)).await?
        else {
            return Ok(None);
        };
        let range = self.filled..self.filled + rows;
        let prepared = self.prepared(PassOutput::GreedyEach, rows).await?;
        let Some(plan) = prepared.whole_on_gpu() else { return Ok(None) };
        let step = step(&range, 0);
        let mut runs = Vec::new();
        for _ in 0..5 {
            runs.push(plan.profile(&step).await?);
        }
        Ok(Some((draft_table, plan.profile_table(&runs, &step, None))))
    }

    /// Records a token generated without drafts.
    pub(super) fn undrafted(&mut self) {
        if let Some(drafting) = &mut self.drafting {
            drafting.gain.rested();
            drafting.hidden = None;
        }
    }
}

fn output_each(sampling: DeviceSampling) -> PassOutput {
    match sampling {
        DeviceSampling::Greedy => PassOutput::GreedyEach,
        DeviceSampling::Drawn { .. } => PassOutput::DrawnEach,
    }
}
