//! `rullama bench --growth`: how speed and memory scale with depth, length and context, as tables and plots.

use std::path::Path;

use anyhow::Result;
use rullama_gguf::Gguf;
use rullama_runtime::model::{LoadOptions, MemoryUse, TablePlace};
use serde_json::{Value, json};

use super::measure::{Bench, Measured, Test};
use crate::{
    output::{bytes, table},
    output_file,
    plot::{Axes, Curve, escaped, svg},
};

/// Tokens generated at each depth.
const DECODED: usize = 32;
/// Largest depth and longest prompt.
const DEEPEST: usize = 32_768;
const LONGEST: usize = 8192;
/// Contexts for which memory is estimated.
const CONTEXTS: [usize; 6] = [4096, 8192, 16_384, 32_768, 65_536, 131_072];

/// The measurements.
pub(super) struct Growth {
    decode: Vec<Measured>,
    prefill: Vec<Measured>,
    /// By context.
    memory: Vec<(usize, MemoryUse)>,
}

/// The context that the tests need, at most the trained one.
pub(super) fn context(trained: usize) -> usize {
    trained.min(DEEPEST + DECODED + 1)
}

/// Measures decode by depth and prefill by length; memory is estimated from the file.
pub(super) fn measure(bench: &mut Bench, gguf: &Gguf, repetitions: usize) -> Result<Growth> {
    let max = bench.max_tokens();
    let depths = [0].into_iter().chain((9..).map(|power| 1 << power));
    let depths = depths.take_while(|depth| *depth <= DEEPEST && depth + DECODED <= max);
    let lengths = (5..).map(|power| 1 << power);
    let lengths = lengths.take_while(|length| *length <= LONGEST && *length < max);
    let decode = depths.map(|depth| Test { prefill: false, tokens: DECODED, depth });
    let prefill = lengths.map(|tokens| Test { prefill: true, tokens, depth: 0 });
    let mut run = |tests: Vec<Test>| -> Result<Vec<Measured>> {
        tests.into_iter().map(|test| bench.test(test, repetitions)).collect()
    };
    Ok(Growth {
        decode: run(decode.collect())?,
        prefill: run(prefill.collect())?,
        memory: memory(bench, gguf)?,
    })
}

fn memory(bench: &Bench, gguf: &Gguf) -> Result<Vec<(usize, MemoryUse)>> {
    let trained = bench.session.model().config().context;
    let of = |context: usize| -> Result<(usize, MemoryUse)> {
        let options = LoadOptions {
            context: Some(context),
            table: TablePlace::Gpu,
            ..LoadOptions::default()
        };
        Ok((context, MemoryUse::of_file(gguf, &options)?))
    };
    CONTEXTS.into_iter().filter(|context| *context <= trained).map(of).collect()
}

impl Growth {
    /// Three tables.
    pub(super) fn text(&self) -> String {
        let speeds = |name: &str, of: &dyn Fn(&Test) -> usize, measured: &[Measured]| {
            let mut rows = vec![vec![name.to_owned(), "TOKENS/S".to_owned()]];
            rows.extend(measured.iter().map(|measured| {
                let (mean, deviation) = measured.speed();
                vec![of(&measured.test).to_string(), format!("{mean:.1} ± {deviation:.1}")]
            }));
            table(&rows)
        };
        let mut rows = vec![["CONTEXT", "GPU MEMORY", "CACHES", "WORK"].map(String::from).to_vec()];
        rows.extend(self.memory.iter().map(|(context, memory)| {
            let gpu = bytes(memory.gpu(memory.table > 0));
            vec![context.to_string(), gpu, bytes(memory.caches), bytes(memory.work)]
        }));
        format!(
            "\ndecode by depth\n{}\nprefill by length\n{}\nmemory by context\n{}",
            speeds("DEPTH", &|test| test.depth, &self.decode),
            speeds("LENGTH", &|test| test.tokens, &self.prefill),
            table(&rows),
        )
    }

    pub(super) fn json(&self) -> Value {
        let speed = |measured: &Measured| {
            let (mean, deviation) = measured.speed();
            let Test { tokens, depth, .. } = measured.test;
            json!({ "tokens": tokens, "depth": depth, "tokens_per_second": mean, "deviation": deviation })
        };
        let memory = |(context, memory): &(usize, MemoryUse)| {
            let gpu = memory.gpu(memory.table > 0);
            json!({ "context": context, "gpu": gpu, "caches": memory.caches, "work": memory.work })
        };
        json!({
            "decode": self.decode.iter().map(speed).collect::<Vec<_>>(),
            "prefill": self.prefill.iter().map(speed).collect::<Vec<_>>(),
            "memory": self.memory.iter().map(memory).collect::<Vec<_>>(),
        })
    }

    /// A page with three plots.
    pub(super) fn write(&self, path: &Path, model: &str, adapter: &str) -> Result<()> {
        let curve = |name, measured: &[Measured], of: &dyn Fn(&Test) -> usize| {
            let points = measured.iter().map(|m| (of(&m.test) as f64, m.speed().0));
            Curve { name, points: points.collect() }
        };
        let decode = curve("decode, tokens/s, by depth", &self.decode, &|test| test.depth);
        let prefill = curve("prefill, tokens/s, by length", &self.prefill, &|test| test.tokens);
        let gigabytes = |name, of: &dyn Fn(&MemoryUse) -> u64| {
            let points = self.memory.iter().map(|(n, memory)| (*n as f64, of(memory) as f64 / 1e9));
            Curve { name, points: points.collect() }
        };
        let all = gigabytes("GPU memory, GB, by context", &|memory| memory.gpu(memory.table > 0));
        let caches = gigabytes("of that, caches", &|memory| memory.caches);
        let axes = Axes { from_zero: true, log_x: false, digits: 0 };
        let page = format!(
            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Scaling of {model}</title>\n\
             <body style=\"font-family: sans-serif; max-width: 760px; margin: 2em auto\">\n\
             <h1>Scaling of {model}</h1>\n<p>{}</p>\n{}{}{}",
            escaped(adapter),
            svg(&[decode], axes),
            svg(&[prefill], Axes { log_x: true, ..axes }),
            svg(&[all, caches], Axes { log_x: true, digits: 2, ..axes }),
            model = escaped(model),
        );
        output_file::write(path, page.as_bytes())
    }
}
