//! The factors of several attached adapters in the weights of one graph, so that requests with different adapters share a pass.

use std::collections::BTreeMap;

use rullama_adapter::{EMBEDDING, Pair};
use rullama_engine::{
    executor::{Device, Weights},
    graph::{Element, Graph, Type},
};
use rullama_models::{
    Adapted,
    decoder::{Pass, ROUTED, adapted_decoder},
};

use super::{Adapters, factors, write_one};
use crate::{error::RuntimeError, model::Model};

/// Most adapters of a pass.
pub(crate) const MAX_SLOTS: usize = 8;
/// Most memory that adapters share, in multiples of what each takes on its own: ranks are padded to the largest.
const MAX_PADDING: usize = 4;
/// The router of a mixture of experts, an ordinary matmul.
const ROUTER: &str = "ffn_gate_inp";
/// Rows of weights are padded to a multiple of this many columns.
const ROW_UNIT: usize = 32;

/// The factors of adapters, slot after slot.
#[derive(Debug)]
pub(crate) struct SlotWeights {
    /// The model's weights and the factors.
    pub(crate) weights: Weights,
    pub(crate) adapted: Adapted,
    pub(crate) gpu_bytes: u64,
}

impl Adapters {
    /// Whether requests with these adapters can share passes with others: they change neither experts nor the token embedding, and no
    /// experts stay on the host.
    pub(crate) fn can_share(&self) -> bool {
        let shares = |pair: &Pair| {
            let name = pair.tensor.strip_suffix(".weight").unwrap_or(&pair.tensor);
            let name = name.rsplit('.').next().unwrap_or(name);
            let is_expert = ROUTED.contains(&name) && name != ROUTER;
            pair.tensor != EMBEDDING && !is_expert
        };
        self.0.model.host_experts() == 0 && self.0.pairs.iter().all(shares)
    }

    /// Factors of the pairs with these ranks.
    fn parameters(&self, rank: impl Fn(&Pair) -> usize) -> usize {
        self.0.pairs.iter().map(|pair| rank(pair) * (pair.rows + pair.columns)).sum()
    }
}

/// How a graph reads the factors of adapters as slots; `None` if their formats differ or padding would take too much memory.
fn adapted(adapters: &[Adapters]) -> Option<Adapted> {
    let first = adapters.first()?.adapted();
    let mut ranks: BTreeMap<String, usize> = BTreeMap::new();
    let mut elements: BTreeMap<&str, usize> = BTreeMap::new();
    for pair in adapters.iter().flat_map(|adapters| &adapters.0.pairs) {
        let rank = ranks.entry(pair.tensor.clone()).or_default();
        *rank = pair.rank.max(*rank);
        elements.insert(&pair.tensor, pair.rows + pair.columns);
    }
    let own: usize = adapters.iter().map(|it| it.parameters(|pair| pair.rank)).sum();
    let slot: usize = elements.iter().map(|(tensor, each)| ranks[*tensor] * each).sum();
    let same = adapters.iter().all(|adapters| adapters.adapted().dtype == first.dtype);
    let fits = slot * adapters.len() <= MAX_PADDING * own;
    (same && fits && adapters.len() <= MAX_SLOTS).then_some(Adapted {
        ranks,
        dtype: first.dtype,
        fold: false,
        slots: Some(adapters.len()),
    })
}

impl Model {
    /// The factors of adapters as slots, in this order, for passes like `pass`; `None` if they cannot share passes.
    ///
    /// # Errors
    /// If there is no memory.
    pub(crate) async fn share_adapters(
        &self,
        adapters: &[Adapters],
        pass: &Pass,
    ) -> Result<Option<SlotWeights>, RuntimeError> {
        let Some(adapted) = adapted(adapters) else { return Ok(None) };
        let decoder = adapted_decoder(&self.0.config, &self.0.catalog, pass, Some(&adapted));
        let graphs = || decoder.segments.iter().map(|segment| &segment.graph);
        if !graphs().all(|graph| fits_bindings(self.device(), graph)) {
            return Ok(None);
        }
        let slots: Vec<BTreeMap<&str, &Pair>> = adapters
            .iter()
            .map(|adapters| adapters.0.pairs.iter().map(|it| (it.tensor.as_str(), it)).collect())
            .collect();
        let mut own = Weights::new(self.device());
        for group in &decoder.factors {
            let (mut a, mut b) = (Vec::new(), Vec::new());
            for pairs in &slots {
                let stacked = factors::of_group(group, pairs);
                a.extend(stacked.a);
                b.extend(stacked.b);
            }
            write_one(&mut own, graphs(), &group.a, &a).await?;
            write_one(&mut own, graphs(), &group.b, &b).await?;
            // Copies of the values must not pile up on the host.
            own.flush().await?;
        }
        let gpu_bytes = own.gpu_bytes();
        Ok(Some(SlotWeights { weights: self.0.weights.with(&own), adapted, gpu_bytes }))
    }
}

/// Whether a binding holds all factors of each matmul.
fn fits_bindings(device: &Device, graph: &Graph) -> bool {
    let Device::Gpu(gpu) = device else { return true };
    let bytes = |ty: &Type| {
        let columns = ty.shape.width().next_multiple_of(ROW_UNIT);
        (ty.bytes() / ty.shape.width().max(1) as u64) * columns as u64
    };
    graph.values().all(|(_, info)| match (info.origin.weight_name(), info.ty.element) {
        (Some(name), Element::Weight(_)) if name.starts_with("slots_") => {
            bytes(&info.ty) < gpu.facts().binding_bytes
        }
        _ => true,
    })
}
