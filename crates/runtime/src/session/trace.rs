//! Named intermediate values, for comparison with other implementations.

use rullama_engine::{
    cpu::Data,
    graph::{Element, Graph, Origin, Value, ValueInfo},
};
use rullama_models::decoder::{Inputs, Pass, PassOutput};

use super::{Session, prepared::PreparedPass, steps::step};
use crate::error::RuntimeError;

/// A named intermediate value.
#[derive(Debug, Clone, PartialEq)]
pub struct Tap {
    /// Its name.
    pub name: String,
    /// Its sizes, outermost first.
    pub shape: Vec<usize>,
    /// Its elements; ids are converted to f32.
    pub values: Vec<f32>,
}

impl Session {
    /// Runs all tokens in one traced pass and returns every tapped value. The KV caches are discarded before and after.
    ///
    /// # Errors
    /// If there are no tokens, or the device fails.
    pub async fn trace(&mut self) -> Result<Vec<Tap>, RuntimeError> {
        self.drop_in_flight();
        self.keep(0);
        let count = self.tokens.len();
        if count == 0 {
            return Err(RuntimeError::EmptyPrompt);
        }
        if self.has_soft(0..count) {
            return Err(RuntimeError::NotWithMedia { what: "be traced" });
        }
        let model = self.model.clone();
        let pass = Pass { traced: true, ..self.pass(PassOutput::Logits, count) };
        let mut decoder = self.graph(&pass);
        let tapped = decoder.segments.iter_mut().map(|segment| keep_tapped(&mut segment.graph));
        let values: Vec<Vec<Value>> = tapped.collect();
        let adapters = self.adapters.as_ref();
        let prepared = PreparedPass::new(decoder, &model.0, adapters, &mut self.memory).await?;
        if pass.suppressed > 0 {
            prepared.write_ids(Inputs::SUPPRESSED, &self.options.suppress);
        }
        for graph in prepared.graphs() {
            for (name, values) in identity_ropes(graph) {
                prepared.write_f32(&name, &values);
            }
        }
        self.plans.put(PassOutput::Logits, count, prepared);
        self.write_tokens(PassOutput::Logits, count, 0..count).await?;
        let prepared = self.prepared(PassOutput::Logits, count).await?;
        let step = step(&(0..count), 0);
        let data = prepared.run_reading_all(&model.0, &step, &values).await?;
        let segments = prepared.graphs().zip(values.iter().zip(data));
        let traced = segments.flat_map(|(graph, (values, data))| {
            values.iter().zip(data).map(|(value, data)| tap(graph.info(*value), data))
        });
        let mut traced: Vec<Tap> = traced.collect();
        let probabilities: Vec<Tap> = traced.iter().filter_map(|tap| self.router(tap)).collect();
        traced.extend(probabilities);
        self.plans.remove(PassOutput::Logits, count);
        self.filled = 0;
        self.written = 0;
        Ok(traced)
    }
}

impl Session {
    /// The router's probabilities of all experts, from its logits.
    fn router(&self, tap: &Tap) -> Option<Tap> {
        let name = tap.name.strip_suffix("router_logits")?;
        let factor = (self.model.config().width as f64).sqrt().recip();
        let width = *tap.shape.last()?;
        let softmax = |row: &[f32]| {
            let scaled: Vec<f64> = row.iter().map(|x| f64::from(*x) * factor).collect();
            let largest = scaled.iter().copied().fold(f64::MIN, f64::max);
            let sum: f64 = scaled.iter().map(|x| (x - largest).exp()).sum();
            scaled.into_iter().map(move |x| ((x - largest).exp() / sum) as f32)
        };
        let values = tap.values.chunks_exact(width).flat_map(softmax).collect();
        Some(Tap { name: format!("{name}router_probs"), shape: tap.shape.clone(), values })
    }
}

/// The inputs that hold RoPE tables without rotation.
fn identity_ropes(graph: &Graph) -> Vec<(String, Vec<f32>)> {
    let inputs = graph.values().filter_map(|(_, info)| match &info.origin {
        Origin::Input(name) if name.starts_with(Inputs::IDENTITY_ROPE) => {
            let pairs = info.ty.shape.len() / 2;
            Some((name.clone(), [1.0, 0.0].repeat(pairs)))
        }
        _ => None,
    });
    inputs.collect()
}

/// Keeps all tapped values and returns them.
pub(crate) fn keep_tapped(graph: &mut Graph) -> Vec<Value> {
    let tapped = graph.values().filter(|(_, info)| info.tap.is_some());
    let values: Vec<Value> = tapped.map(|(value, _)| value).collect();
    values.iter().for_each(|value| graph.keep(*value));
    values
}

pub(crate) fn tap(info: &ValueInfo, data: Data) -> Tap {
    let values = match (info.ty.element, data) {
        (Element::U32, Data::U32(ids)) => ids.into_iter().map(|id| id as f32).collect(),
        (_, data) => data.f32().to_vec(),
    };
    let name = info.tap.clone().unwrap_or_default();
    Tap { name, shape: info.ty.shape.dims().to_vec(), values }
}
