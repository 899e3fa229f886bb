//! From an opened file to kernels, as the runtime does it.

use std::{cell::RefCell, collections::HashSet};

use rullama_engine::{
    gpu::{DeviceFacts, Dialect, compose, dispatches, plan_bytes},
    graph::{Element, Graph, Type},
    suite::real_devices,
};
use rullama_gguf::{Gguf, TensorInfo};
use rullama_models::{
    Catalog, ModelError,
    decoder::{Config, Pass, PassInput, PassOutput, PoolPages, PoolShape, decoder, expert_graph},
    embedding::{EmbeddingConfig, embedding},
    gemma4::{
        Clamps,
        assistant::{DraftConfig, DraftInputs, DraftPass, PREFIX, draft},
        audio::{AudioConfig, DirectAudio, direct as direct_audio, tower as audio_tower},
        diffusion::{CanvasPass, DiffusionConfig, canvas},
        vision::{
            DirectVision, Grid, VisionConfig, direct as direct_vision, tower as vision_tower,
        },
    },
    siglip::{self, SiglipConfig},
};

use super::{
    Reached,
    header::{Header, Source},
};

/// Deeper models use the same kernels and only take longer.
const MAX_LAYERS: usize = 12;

thread_local! {
    static COMPOSED: RefCell<HashSet<String>> = RefCell::default();
}

/// Cycles through the devices, one per graph.
struct Walk<'a> {
    devices: Vec<(&'static str, DeviceFacts)>,
    next: usize,
    reached: &'a mut Reached,
}

/// Builds all graphs of a file; typed errors are expected for modified files.
pub(crate) fn check(gguf: &Gguf, first: usize, reached: &mut Reached) {
    let mut walk = Walk { devices: real_devices(), next: first, reached };
    let results = [
        walk.decoder(gguf),
        walk.drafter(gguf),
        walk.embedding(gguf),
        walk.diffusion(gguf),
        walk.encoders(gguf),
    ];
    for error in results.into_iter().filter_map(Result::err) {
        assert!(!error.to_string().is_empty(), "an error without a message: {error:?}");
    }
}

impl Walk<'_> {
    /// Selects the kernels of a graph on the next device.
    fn graph(&mut self, graph: &Graph) {
        let (name, facts) = &self.devices[self.next % self.devices.len()];
        self.next += 1;
        self.reached.graphs += 1;
        let Ok(dispatches) = dispatches(graph, facts) else { return };
        self.reached.dispatches += dispatches.len();
        assert!(plan_bytes(graph, facts) > 0);
        for dispatch in dispatches {
            let label = dispatch.label();
            let (grid, buffers) = (dispatch.grid, dispatch.bindings.len());
            assert!(grid.iter().all(|n| *n <= 65_535), "{name}: {label} in a grid of {grid:?}");
            assert!(
                buffers <= facts.storage_buffers as usize,
                "{name}: {label}: {buffers} buffers"
            );
            if COMPOSED.with_borrow_mut(|known| known.insert(label)) {
                compose(&dispatch, Dialect::Browser);
            }
        }
    }

    fn decoder(&mut self, gguf: &Gguf) -> Result<(), ModelError> {
        let config = Config::of_file(gguf)?;
        let catalog = Catalog::of_file(gguf, &config.expected())?;
        config.refuse_unknown(gguf.tensors().iter().map(TensorInfo::name))?;
        if config.layers.len() > MAX_LAYERS {
            return Ok(());
        }
        for (index, pass) in passes(&config).into_iter().enumerate() {
            // Each cache format in turn.
            let cache = [Element::F16, Element::Q8, Element::F32][(index + self.next) % 3];
            if config.check_cache(cache).is_err() {
                continue;
            }
            let decoder = decoder(&config, &catalog, &Pass { cache, ..pass });
            decoder.segments.iter().for_each(|segment| self.graph(&segment.graph));
        }
        if let Some(experts) = expert_graph(&config, &catalog, 0, 3, None) {
            self.graph(&experts.graph);
        }
        Ok(())
    }

    fn drafter(&mut self, gguf: &Gguf) -> Result<(), ModelError> {
        let config = DraftConfig::of_file(gguf)?;
        let mut catalog = Catalog::of_file(gguf, &config.expected())?.prefixed(PREFIX);
        let model = Source::open(&Header::golden(MODEL)).expect("a golden header opens");
        let table = Catalog::of_file(&model, &Config::of_file(&model)?.expected())?;
        let model = Config::of_file(&model)?;
        config.check(&model)?;
        let embeddings = table.get("token_embd.weight").expect("models have embeddings");
        catalog.add("token_embd.weight", embeddings.clone());
        if let Some(clusters) = config.clusters {
            let own = catalog.get(&format!("{PREFIX}token_embd.weight")).expect("it was checked");
            let shape = [clusters.count, clusters.each, config.width];
            let ty = Type { shape: shape.into(), ..own.clone() };
            catalog.add(DraftInputs::CLUSTERS, ty);
        }
        let cache = Element::F16;
        let pass = DraftPass { drafts: 2, rows: 5, context: 256, ring: 64, cache };
        self.graph(&draft(&config, &model, &catalog, &pass).graph);
        Ok(())
    }

    fn embedding(&mut self, gguf: &Gguf) -> Result<(), ModelError> {
        let config = EmbeddingConfig::of_file(gguf)?;
        let catalog = Catalog::of_file(gguf, &config.expected())?;
        if config.layers.len() > MAX_LAYERS {
            return Ok(());
        }
        for (tokens, texts) in [(1, 1), (160, 3)] {
            self.graph(&embedding(&config, &catalog, (tokens, texts)).graph);
        }
        Ok(())
    }

    fn diffusion(&mut self, gguf: &Gguf) -> Result<(), ModelError> {
        let config = DiffusionConfig::of_file(gguf)?;
        let catalog = Catalog::of_file(gguf, &config.expected())?;
        if config.decoder.layers.len() > MAX_LAYERS {
            return Ok(());
        }
        let (context, ring, cache) = (2 * config.canvas, 2 * config.canvas, Element::F16);
        for conditioned in [false, true] {
            let pass = CanvasPass { conditioned, context, ring, cache, traced: conditioned };
            self.graph(&canvas(&config, &catalog, &pass).graph);
        }
        let pass = Pass { tokens: config.canvas, ..fill(context, ring) };
        let reading = decoder(&config.encoder, &catalog, &pass);
        reading.segments.iter().for_each(|segment| self.graph(&segment.graph));
        Ok(())
    }

    /// Encoders of images and audio, in a projector file or inside a model.
    fn encoders(&mut self, gguf: &Gguf) -> Result<(), ModelError> {
        let (clamps, most) = (Clamps::default(), 128 << 20);
        if let Some(config) = SiglipConfig::of_file(gguf)? {
            let catalog = Catalog::of_file(gguf, &config.expected())?;
            if config.layers <= MAX_LAYERS {
                self.graph(&siglip::encoder(&config, &catalog).graph);
            }
        } else if let Some(config) = DirectVision::of_file(gguf)? {
            let catalog = Catalog::of_file(gguf, &config.expected())?;
            let grid = Grid { columns: 5, rows: 3 };
            self.graph(&direct_vision(&config, &catalog, grid).graph);
        } else if let Some(config) = VisionConfig::of_file(gguf)? {
            let catalog = Catalog::of_file(gguf, &config.expected())?;
            let grid = Grid { columns: 3 * config.pool, rows: 2 * config.pool };
            if config.layers <= MAX_LAYERS {
                self.graph(&vision_tower(&config, &catalog, &clamps, grid, most).graph);
            }
        }
        if let Some(config) = DirectAudio::of_file(gguf)? {
            let catalog = Catalog::of_file(gguf, &config.expected())?;
            self.graph(&direct_audio(&config, &catalog, 7).graph);
        } else if let Some(config) = AudioConfig::of_file(gguf)? {
            let catalog = Catalog::of_file(gguf, &config.expected())?;
            if config.layers <= MAX_LAYERS {
                self.graph(&audio_tower(&config, &catalog, &clamps, 100, 12).graph);
            }
        }
        Ok(())
    }
}

/// The model that the golden drafter belongs to.
const MODEL: &str = "gguf/micro-e2b-BF16.gguf";

/// A pass that fills caches.
fn fill(context: usize, ring: usize) -> Pass {
    Pass {
        tokens: 1,
        input: PassInput::Ids,
        table: false,
        output: PassOutput::Caches,
        context,
        ring,
        cache: Element::F16,
        suppressed: 0,
        traced: false,
        host_experts: 0,
        blocks: false,
        hidden: false,
        short_context: None,
        pool: None,
    }
}

/// Passes as sessions run them: long and short prompts, single tokens, drafts, all logits, image blocks, experts on the host; and as the
/// scheduler runs them, over KV pools.
fn passes(config: &Config) -> Vec<Pass> {
    let context = config.context.min(4096);
    let chunk = context.min(512);
    let fill = fill(context, context.min(config.window + chunk));
    let one = Pass {
        input: PassInput::Token,
        table: true,
        output: PassOutput::Greedy,
        suppressed: 2,
        ..fill.clone()
    };
    let pages = |entries| PoolPages { pages: 3 * entries, entries };
    let pool =
        Some(PoolShape { page: 16, global: pages(5), sliding: pages(3), gemm: true, slots: 12 });
    let drafts = Pass { tokens: 4, input: PassInput::Drafts, hidden: true, ..fill.clone() };
    let blocks = config.per_layer.is_none();
    vec![
        Pass { tokens: chunk, ..fill.clone() },
        Pass { tokens: chunk.min(16), input: PassInput::Rows, blocks, ..fill.clone() },
        Pass { tokens: chunk.min(5), output: PassOutput::Logits, traced: true, ..fill.clone() },
        Pass { output: PassOutput::Drawn, short_context: Some(1024), ..one.clone() },
        Pass { host_experts: 1, ..one.clone() },
        one,
        Pass { tokens: chunk, pool, ..fill.clone() },
        Pass { tokens: 4, output: PassOutput::LogitsEach, pool, ..fill.clone() },
        Pass { tokens: 16, output: PassOutput::GreedyEach, pool, ..fill.clone() },
        Pass {
            tokens: 2,
            output: PassOutput::DrawnEach,
            pool,
            short_context: Some(1024),
            ..fill.clone()
        },
        Pass { output: PassOutput::GreedyEach, ..drafts.clone() },
        Pass { output: PassOutput::DrawnEach, table: true, ..drafts },
    ]
}
