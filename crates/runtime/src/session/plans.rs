//! The passes of a session, each prepared when it is first needed.

use std::collections::HashMap;

use rullama_engine::executor::Device;
use rullama_models::decoder::{Inputs, Pass, PassInput, PassOutput};

use super::{Session, prepared::PreparedPass, sees_blocks};
use crate::error::RuntimeError;

/// Up to this position, decode passes use kernels for short KV caches; most conversations are shorter than their context.
pub(crate) const SHORT_CONTEXT: usize = 1024;

/// Prepared passes by output, number of tokens, whether some tokens are soft, and short-context limit.
#[derive(Debug, Default)]
pub(super) struct Plans(HashMap<Key, PreparedPass>);

type Key = (PassOutput, usize, bool, Option<usize>);

impl Plans {
    pub(super) fn put(&mut self, output: PassOutput, tokens: usize, prepared: PreparedPass) {
        self.0.insert((output, tokens, false, None), prepared);
    }

    pub(super) fn remove(&mut self, output: PassOutput, tokens: usize) {
        self.0.remove(&(output, tokens, false, None));
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Discards verification passes, because the draft options changed.
    pub(super) fn forget_drafts(&mut self) {
        self.0.retain(|(output, ..), _| !output.batch_invariant());
    }

    pub(super) fn gpu_bytes(&self) -> u64 {
        self.0.values().map(|prepared| prepared.gpu_bytes()).sum()
    }
}

impl Session {
    /// The pass with this output and number of tokens.
    pub(crate) fn pass(&self, output: PassOutput, tokens: usize) -> Pass {
        let input = match output {
            PassOutput::Caches | PassOutput::Logits | PassOutput::LogitsEach => PassInput::Ids,
            PassOutput::Greedy | PassOutput::Drawn => PassInput::Token,
            PassOutput::GreedyEach | PassOutput::DrawnEach => PassInput::Drafts,
        };
        Pass {
            tokens,
            input,
            table: self.model.0.table_resident,
            output,
            context: self.context,
            ring: self.ring,
            cache: self.options.cache.into(),
            suppressed: if output == PassOutput::Caches { 0 } else { self.options.suppress.len() },
            traced: false,
            host_experts: self.model.0.host_experts,
            blocks: false,
            hidden: input == PassInput::Drafts && self.keeps_hidden,
            short_context: self.short_context(output),
            pool: None,
        }
    }

    /// The position limit of decode passes, if it is not the end of the context. Passes with and without drafts use the same limit, so
    /// that they compute bit-identical results.
    fn short_context(&self, output: PassOutput) -> Option<usize> {
        let decodes = matches!(
            output,
            PassOutput::Greedy | PassOutput::Drawn | PassOutput::GreedyEach | PassOutput::DrawnEach
        );
        (decodes && self.decode_limit() < self.context).then_some(SHORT_CONTEXT)
    }

    /// The position limit of decode passes.
    pub(super) fn decode_limit(&self) -> usize {
        let position = self.filled + self.in_flight.len();
        if position < SHORT_CONTEXT { self.context.min(SHORT_CONTEXT) } else { self.context }
    }

    /// The prepared pass with this output and number of tokens.
    pub(super) async fn prepared(
        &mut self,
        output: PassOutput,
        tokens: usize,
    ) -> Result<&PreparedPass, RuntimeError> {
        self.prepared_for(output, tokens, false).await
    }

    /// The prepared pass, for soft tokens if `soft` is set.
    pub(super) async fn prepared_for(
        &mut self,
        output: PassOutput,
        tokens: usize,
        soft: bool,
    ) -> Result<&PreparedPass, RuntimeError> {
        let key = (output, tokens, soft, self.short_context(output));
        if !self.plans.0.contains_key(&key) {
            let mut pass = self.pass(output, tokens);
            if soft {
                pass = Pass {
                    input: PassInput::Rows,
                    blocks: sees_blocks(self.model.config()),
                    ..pass
                };
            }
            let prepared = prepare(self, &pass).await?;
            self.plans.0.insert(key, prepared);
        }
        Ok(&self.plans.0[&key])
    }
}

async fn prepare(session: &mut Session, pass: &Pass) -> Result<PreparedPass, RuntimeError> {
    let model = session.model.clone();
    let decoder = session.graph(pass);
    let adapters = session.adapters.as_ref();
    let prepared = PreparedPass::new(decoder, &model.0, adapters, &mut session.memory).await?;
    if pass.suppressed > 0 {
        prepared.write_ids(Inputs::SUPPRESSED, &session.options.suppress);
    }
    if pass.short_context.is_some() {
        warm_long_context(session, pass);
    }
    Ok(prepared)
}

/// Compiles the kernels for long contexts while the context is short, unless loading the model did so.
fn warm_long_context(session: &Session, short: &Pass) {
    let Device::Gpu(gpu) = session.model.device() else { return };
    if gpu.is_software() {
        return;
    }
    let long = session.graph(&Pass { short_context: None, ..short.clone() });
    // Errors are reported again when a plan needs the kernel.
    long.segments.iter().for_each(|segment| drop(gpu.warm(&segment.graph)));
}
