//! Kernels compiled while the weights are on their way.

use rullama_engine::executor::Device;
use rullama_models::{
    Catalog,
    gemma4::{Config, Feed, Pass, Want, decoder},
};

use super::load::LoadOptions;
use crate::session::{DEFAULT_CONTEXT, NEAR, SessionOptions, chunks, ring};

/// The graphs that the first answer will need, of a session with the usual options; one of another context may need a few other kernels.
pub(super) struct Graphs<'a> {
    config: &'a Config,
    catalog: &'a Catalog,
    context: usize,
    session: SessionOptions,
    table: bool,
    host_experts: usize,
}

impl<'a> Graphs<'a> {
    /// Of a model that is being loaded, with its table on the device or not, and so many layers with experts on the host.
    pub(super) fn new(
        (config, catalog): (&'a Config, &'a Catalog),
        options: &LoadOptions,
        (table, host_experts): (bool, usize),
    ) -> Self {
        let context = options.context.unwrap_or(DEFAULT_CONTEXT).min(config.context);
        let session = SessionOptions { cache: options.cache, ..SessionOptions::default() };
        Self { config, catalog, context, session, table, host_experts }
    }

    /// What prompts need: nobody knows how long the first one will be, but most are short.
    pub(super) fn prompts(&self) -> Vec<Pass> {
        let sizes = chunks(self.session.chunk.min(self.context));
        sizes.map(|tokens| self.pass((tokens, Feed::Ids), Want::Caches, 0, None)).collect()
    }

    /// What answers need where so many tokens are never chosen: while they are short, and after that.
    pub(super) fn answers(&self, suppressed: usize) -> Vec<Pass> {
        let near = (self.context > NEAR).then_some(NEAR);
        let passes = [(Want::Drawn, near), (Want::Greedy, near), (Want::Drawn, None)];
        let pass = |(want, near)| self.pass((1, Feed::Token), want, suppressed, near);
        passes.map(pass).into()
    }

    /// Starts compiling. A program that plays a GPU compiles for seconds, and most of what is loaded onto one is small: there, kernels
    /// wait until they are used.
    pub(super) fn warm(&self, device: &Device, passes: &[Pass]) {
        let Device::Gpu(gpu) = device else { return };
        if gpu.is_software() {
            return;
        }
        for pass in passes {
            // Errors come again when a plan asks for the kernel.
            decoder(self.config, self.catalog, pass)
                .segments
                .iter()
                .for_each(|segment| drop(gpu.warm(&segment.graph)));
        }
    }

    fn pass(
        &self,
        (tokens, feed): (usize, Feed),
        want: Want,
        suppressed: usize,
        near: Option<usize>,
    ) -> Pass {
        Pass {
            tokens,
            feed,
            table: self.table,
            want,
            context: self.context,
            ring: ring(self.config, self.context, &self.session),
            cache: self.session.cache.into(),
            suppressed,
            traced: false,
            host_experts: self.host_experts,
            blocks: false,
            hidden: false,
            near,
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

    use super::{Graphs, LoadOptions, SessionOptions};
    use crate::Model;

    #[test]
    fn what_is_compiled_early_is_what_sessions_ask_for() {
        for name in ["micro-e2b-Q8_0", "micro-dense-BF16", "micro-moe-Q8_0"] {
            let bytes = golden(&format!("gguf/{name}.gguf"));
            let file = block_on(Gguf::open(Rc::new(MemorySource::new(name, bytes)))).expect("open");
            let options = LoadOptions::default();
            let mut go_on = |_| ControlFlow::Continue(());
            let load = Model::load(file, Device::Cpu, &options, &mut go_on);
            let model = block_on(load).expect("it loads");
            let inner = &model.0;
            let places = (inner.table_resident, inner.host_experts);
            let graphs = Graphs::new((&inner.config, &inner.catalog), &options, places);
            let session = model.session(&SessionOptions::default()).expect("a session");
            let suppressed = model.tokenizer().expect("a vocabulary").suppressed().len();
            let all = [graphs.prompts(), graphs.answers(suppressed)].concat();
            assert!(all.len() > 4, "{name}");
            for early in all {
                let mut asked = session.pass(early.want, early.tokens);
                // A new session's answers are short.
                if early.near.is_none() {
                    asked.near = None;
                }
                assert_eq!(early, asked, "{name}");
            }
        }
    }
}
