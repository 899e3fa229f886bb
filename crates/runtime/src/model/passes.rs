//! The passes of a session with default options: memory is estimated for them, and their kernels are compiled early.

use rullama_models::{
    Catalog,
    decoder::{Config, Pass, PassInput, PassOutput, Segment, decoder},
};

use super::load::LoadOptions;
use crate::session::{DEFAULT_CONTEXT, SHORT_CONTEXT, SessionOptions, chunks, ring};

/// Placement of the parts of a model that may stay on the host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placement {
    /// Whether the per-layer input table is on the device.
    pub(super) table: bool,
    /// Number of last layers whose experts are on the host.
    pub(super) host_experts: usize,
}

/// The passes of a session with default options; another context may need a few other kernels.
pub(super) struct DefaultPasses<'a> {
    config: &'a Config,
    catalog: &'a Catalog,
    pub(super) context: usize,
    session: SessionOptions,
    placement: Placement,
}

impl<'a> DefaultPasses<'a> {
    /// The passes of a model that is loaded with these options.
    pub(super) fn new(
        config: &'a Config,
        catalog: &'a Catalog,
        options: &LoadOptions,
        placement: Placement,
    ) -> Self {
        let context = options.context.unwrap_or(DEFAULT_CONTEXT).min(config.context);
        let usual = SessionOptions::default();
        let chunk = options.chunk.unwrap_or(usual.chunk);
        let session = SessionOptions { cache: options.cache, chunk, ..usual };
        Self { config, catalog, context, session, placement }
    }

    /// Prefill passes of all chunk sizes, because the length of the first prompt is unknown.
    pub(super) fn prefill(&self) -> Vec<Pass> {
        chunks(self.session.chunk.min(self.context)).map(|tokens| self.prefill_of(tokens)).collect()
    }

    /// The largest prefill pass.
    pub(super) fn longest_prefill(&self) -> Pass {
        self.prefill_of(self.session.chunk.min(self.context))
    }

    /// Decode passes with this number of suppressed tokens, for short contexts and for any context.
    pub(super) fn decode(&self, suppressed: usize) -> Vec<Pass> {
        let short = self.short_context();
        let passes =
            [(PassOutput::Drawn, short), (PassOutput::Greedy, short), (PassOutput::Drawn, None)];
        passes.map(|(output, short)| self.decode_of(output, suppressed, short)).into()
    }

    /// The sampling decode passes of a session: for any context, and for a short context if that differs.
    pub(super) fn sampled_decode(&self) -> (Pass, Option<Pass>) {
        let of = |short| self.decode_of(PassOutput::Drawn, 0, short);
        (of(None), self.short_context().map(|short| of(Some(short))))
    }

    /// The graphs of a pass.
    pub(super) fn segments(&self, pass: &Pass) -> Vec<Segment> {
        decoder(self.config, self.catalog, pass).segments
    }

    /// The limit of short contexts, if the context exceeds it.
    fn short_context(&self) -> Option<usize> {
        (self.context > SHORT_CONTEXT).then_some(SHORT_CONTEXT)
    }

    fn prefill_of(&self, tokens: usize) -> Pass {
        Pass {
            tokens,
            input: PassInput::Ids,
            output: PassOutput::Caches,
            ..self.decode_of(PassOutput::Caches, 0, None)
        }
    }

    fn decode_of(&self, output: PassOutput, suppressed: usize, short: Option<usize>) -> Pass {
        Pass {
            tokens: 1,
            input: PassInput::Token,
            table: self.placement.table,
            output,
            context: self.context,
            ring: ring(self.config, self.context, &self.session),
            cache: self.session.cache.into(),
            suppressed,
            traced: false,
            host_experts: self.placement.host_experts,
            blocks: false,
            hidden: false,
            short_context: short,
            pool: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{ops::ControlFlow, rc::Rc};

    use pollster::block_on;
    use rullama_engine::executor::Device;
    use rullama_gguf::Gguf;
    use rullama_source::MemorySource;
    use rullama_testkit::golden;

    use super::{DefaultPasses, LoadOptions, Placement, SessionOptions};
    use crate::Model;

    #[test]
    fn sessions_use_the_passes_compiled_early() {
        for name in ["micro-e2b-Q8_0", "micro-dense-BF16", "micro-moe-Q8_0"] {
            let bytes = golden(&format!("gguf/{name}.gguf"));
            let file = block_on(Gguf::open(Rc::new(MemorySource::new(name, bytes)))).expect("open");
            let options = LoadOptions::default();
            let mut go_on = |_| ControlFlow::Continue(());
            let load = Model::load(file, Device::Cpu, &options, &mut go_on);
            let model = block_on(load).expect("it loads");
            let inner = &model.0;
            let placement =
                Placement { table: inner.table_resident, host_experts: inner.host_experts };
            let passes = DefaultPasses::new(&inner.config, &inner.catalog, &options, placement);
            let session = model.session(&SessionOptions::default()).expect("a session");
            let suppressed = model.tokenizer().expect("a vocabulary").suppressed().len();
            let all = [passes.prefill(), passes.decode(suppressed)].concat();
            assert!(all.len() > 4, "{name}");
            for early in all {
                let mut used = session.pass(early.output, early.tokens);
                // A new session's context is short.
                if early.short_context.is_none() {
                    used.short_context = None;
                }
                assert_eq!(early, used, "{name}");
            }
        }
    }
}
