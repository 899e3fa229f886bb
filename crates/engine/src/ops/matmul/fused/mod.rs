//! A linear layer fused with its neighbours to save dispatches: norms and the residual add as its prologue, GELU, GeGLU or softcap as its
//! epilogue, a LoRA pair. The weight may be that of experts, whose outputs may be summed. A single token takes one dispatch; more tokens
//! take the unfused operations.

mod build;
pub(crate) mod cases;

pub use build::{LoraPair, Mixture};

use super::{
    dispatch, lora,
    moe::Sizes,
    op::{FusedLinear, LoraForm, Prologue, RowSelect},
};
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, Edge, GpuCall},
    graph::{Graph, NodeValues, Op, Step, Type, Value},
    ops::fused,
};

impl FusedLinear {
    /// The equivalent simpler operations.
    fn unfused(&self, graph: &mut Graph, inputs: &[Value]) -> Vec<Value> {
        let at = self.weight_input();
        let (h1, x) = self.prologue.with(inputs).rows(graph);
        let select = &inputs[at + 1..at + 1 + self.rows.inputs()];
        let y = match &self.rows {
            RowSelect::All => graph.linear(x, inputs[at]),
            RowSelect::Experts(experts) => {
                graph.linear_experts(x, &experts.routes(select), inputs[at])
            }
        };
        let y = self.lora.applied(graph, x, y, inputs);
        let y = self.epilogue.with(inputs).applied(graph, y);
        let y = match self.rows.shares(select) {
            Some(shares) => graph.experts_combine(y, shares),
            None => y,
        };
        h1.into_iter().chain([y]).collect()
    }
}

impl Op for FusedLinear {
    fn name(&self) -> &'static str {
        "fused_linear"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        fused::infer(inputs, &|graph, inputs| self.unfused(graph, inputs))
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        fused::cpu(call, &|graph, inputs| self.unfused(graph, inputs));
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        if let Some(dispatches) = dispatch::gemv(self, call) {
            return dispatches;
        }
        let is_single = call.input(0).shape.rows() == 1;
        match self.lora {
            LoraForm::Pair | LoraForm::Folded { .. } if is_single => {
                let most = call.facts.storage_buffers as usize;
                fused::gpu(call, &|graph, inputs| lora::two_dispatches(self, graph, inputs, most))
            }
            _ => fused::gpu(call, &|graph, inputs| self.unfused(graph, inputs)),
        }
    }

    fn stores(&self, call: &GpuCall<'_>, i: usize, preferred: Edge) -> Edge {
        let layout = match preferred {
            Edge::Permuted(layout) => layout,
            Edge::F16Columns(_) if !dispatch::is_gemv(self, call) => {
                let unfused = |graph: &mut Graph, inputs: &[Value]| self.unfused(graph, inputs);
                return fused::stores(call, i, preferred, &unfused);
            }
            _ => return Edge::RowMajor,
        };
        let gated = self.epilogue.is_gated() && !self.rows.is_summed();
        let lora = matches!(self.lora, LoraForm::None | LoraForm::Folded { .. } | LoraForm::Slots);
        match gated && lora && i == self.y_output() && dispatch::is_gemv(self, call) {
            true => Edge::Permuted(dispatch::produced_layout(self, call, layout)),
            false => Edge::RowMajor,
        }
    }

    fn reads(&self, call: &GpuCall<'_>, offered: Edge) -> Edge {
        if !dispatch::is_gemv(self, call) && call.input(0).shape.rows() > 1 {
            return fused::reads(call, &|graph, inputs| self.unfused(graph, inputs));
        }
        match dispatch::read_edge(self, call, offered) {
            // Other forms stage x, or read it more than once.
            Edge::Permuted(_)
                if !self.lora.has_down_rows()
                    && self.lora != LoraForm::Slots
                    && !self.rows.is_summed() =>
            {
                Edge::RowMajor
            }
            edge => edge,
        }
    }

    fn branch_lora(&self) -> Option<usize> {
        match &self.prologue {
            Prologue::ResidualAdd { branch, .. } => branch.lora_b,
            Prologue::Rows(_) | Prologue::Norm { .. } => None,
        }
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        let at = self.weight_input();
        let added = &inputs[inputs.len() - self.lora.inputs()..];
        let added = match (self.lora, added) {
            (LoraForm::Slots, [a, b, _]) => lora::slots::slot_elements(a, b),
            (_, added) => added.iter().map(|ty| ty.shape.len()).sum(),
        };
        let weights: usize = added + inputs[at].shape.len();
        match self.rows {
            RowSelect::All => 2 * inputs[0].shape.rows() as u64 * weights as u64,
            RowSelect::Experts(_) => Sizes::new(inputs[at], inputs[at + 1]).operations(),
        }
    }

    fn bytes_read(&self, inputs: &[&Type], step: &Step) -> u64 {
        let at = self.weight_input();
        let all = inputs.iter().map(|ty| ty.bytes()).sum();
        match self.rows {
            RowSelect::All => all,
            RowSelect::Experts(_) => {
                Sizes::new(inputs[at], inputs[at + 1]).bytes_read(all, inputs[at], step)
            }
        }
    }

    fn grad(
        &self,
        graph: &mut Graph,
        node: &NodeValues,
        dy: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        fused::grad(graph, node, dy, &|graph, inputs| self.unfused(graph, inputs))
    }
}
