//! Kernels compiled while the weights are on their way.

use rullama_engine::executor::Device;
use rullama_models::{
    Catalog,
    gemma4::{Config, Feed, Pass, Want, decoder},
};

use super::load::LoadOptions;
use crate::session::{DEFAULT_CONTEXT, MOST_TOKENS, NEAR, chunks, ring_slots};

/// Starts compiling what the first answer will need; a session of another context may need a few others. A program that plays a
/// GPU compiles for seconds, and most of what is loaded onto one is small: there, kernels wait until they are used.
pub(super) fn warm(
    device: &Device,
    config: &Config,
    catalog: &Catalog,
    options: &LoadOptions,
    (table, host_experts): (bool, usize),
) {
    let Device::Gpu(gpu) = device else { return };
    if gpu.is_software() {
        return;
    }
    let context = options.context.unwrap_or(DEFAULT_CONTEXT).min(config.context);
    let chunk = MOST_TOKENS.min(context);
    let near = (context > NEAR).then_some(NEAR);
    // What every answer needs, then what prompts do: nobody knows how long the first one will be, but most are short.
    let answers = [near, None].map(|near| (1, Feed::Token, Want::Drawn, near));
    let prompts = chunks(chunk).map(|tokens| (tokens, Feed::Ids, Want::Caches, None));
    for (tokens, feed, want, near) in answers.into_iter().chain(prompts) {
        let pass = Pass {
            tokens,
            feed,
            table,
            want,
            context,
            ring: ring_slots(config, context, chunk),
            cache: options.cache.into(),
            suppressed: 0,
            traced: false,
            host_experts,
            blocks: false,
            hidden: false,
            near,
        };
        // Errors come again when a plan asks for the kernel.
        decoder(config, catalog, &pass)
            .segments
            .iter()
            .for_each(|segment| drop(gpu.warm(&segment.graph)));
    }
}
