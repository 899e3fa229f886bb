//! The block formats that GPU kernels read: fewer than the CPU decodes.

use rullama_gguf::DType;

use super::slabs::fields;
use crate::{
    error::EngineError,
    graph::{Element, Graph, Origin, Type},
};

/// Whether GPU kernels read weights of this format.
pub fn reads(dtype: DType) -> bool {
    !fields(dtype).is_empty()
}

/// Checks that GPU kernels read a value's format; values that are not weights pass.
///
/// # Errors
/// If the weight's format has no kernel.
pub fn check_format(origin: &Origin, ty: &Type) -> Result<(), EngineError> {
    match ty.element {
        Element::Weight(dtype) if !reads(dtype) => {
            let tensors = origin.tensors(ty);
            let name = tensors.first().map(|(name, ..)| (*name).to_owned()).unwrap_or_default();
            Err(EngineError::UnsupportedFormat { name, format: dtype.name() })
        }
        _ => Ok(()),
    }
}

/// Checks that GPU kernels read all weights of a graph, which kernel selection relies on.
///
/// # Errors
/// If the format of a weight has no kernel.
pub fn check_formats(graph: &Graph) -> Result<(), EngineError> {
    graph.values().try_for_each(|(_, info)| check_format(&info.origin, &info.ty))
}

#[cfg(test)]
mod tests {
    use rullama_gguf::DType;

    use super::{check_formats, reads};
    use crate::{
        error::EngineError,
        gpu::{Dialect, GpuCall, compose},
        graph::{Graph, Member, Type},
        ops::{Epilogue, Mixture, Prologue},
        suite::real_devices,
    };

    /// Formats that the CPU decodes and no GPU kernel reads.
    const CPU_ONLY: [DType; 5] = [DType::I8, DType::I16, DType::I32, DType::I64, DType::F64];

    /// A graph with a weight of the format in every position in which models have one: an embedding table, matmuls after each prologue and
    /// epilogue, experts, a transposed matmul.
    fn graph(dtype: DType, tokens: usize) -> Graph {
        let (width, rows, experts) = (512, 256, 8);
        let mut g = Graph::new();
        let ids = g.input("ids", Type::u32([tokens]));
        let table = g.weight("table", Type::weight(dtype, [64, width]));
        let h = g.embed(ids, table, 1.0);
        let norm = g.weight("norm", Type::weight(DType::F32, [width]));
        let prologue = Prologue::Norm { h, weight: norm, eps: 1e-6 };
        let members = ["gate", "up"].map(|name| Member::new(name, rows));
        let both = g.weight_rows(&members, dtype, width);
        let y = g.fused_linear(&prologue, both, &Epilogue::GEGLU).1;
        let down = g.weight("down", Type::weight(dtype, [width, rows]));
        let x = g.linear(y, down);
        let dy = g.linear(x, table);
        let dx = g.linear_t(dy, table);
        g.keep(dx);
        let expert_ids = g.input("experts", Type::u32([tokens, 2]));
        let shares = g.input("shares", Type::f32([tokens, 2]));
        let routes = g.routes(expert_ids, experts);
        let gate_up = g.weight("gate_up", Type::weight(dtype, [experts, 2 * rows, width]));
        let each = Mixture { routes, shares: None };
        let inner = g.fused_linear_experts(&Prologue::Rows(x), gate_up, &each, &Epilogue::GEGLU).1;
        let down = g.weight("down_exps", Type::weight(dtype, [experts, width, rows]));
        let sum = Mixture { routes, shares: Some(shares) };
        let z = g.fused_linear_experts(&Prologue::Rows(inner), down, &sum, &Epilogue::Plain).1;
        g.keep(z);
        g
    }

    #[test]
    fn every_format_is_read_or_refused_on_real_devices() {
        let mut refused = Vec::new();
        for dtype in DType::ALL {
            for tokens in [1, 4, 64, 1500] {
                let graph = graph(dtype, tokens);
                match check_formats(&graph) {
                    Ok(()) => {
                        for (device, facts) in real_devices() {
                            let mut dispatches = GpuCall::dispatches(&facts, &graph).peekable();
                            assert!(dispatches.peek().is_some(), "{device}");
                            for (_, dispatch) in dispatches {
                                let text = compose(&dispatch, Dialect::Browser);
                                assert!(text.contains("fn main"), "{device}: {}", dispatch.label());
                            }
                        }
                    }
                    Err(EngineError::UnsupportedFormat { name, format }) => {
                        assert_eq!((name.as_str(), format), ("table", dtype.name()));
                        refused.push(dtype);
                    }
                    Err(other) => panic!("{}: {other}", dtype.name()),
                }
            }
        }
        refused.dedup();
        for dtype in DType::ALL {
            assert_eq!(refused.contains(&dtype), !reads(dtype), "{}", dtype.name());
        }
        for dtype in CPU_ONLY {
            assert!(dtype.decodable() && !reads(dtype), "{}", dtype.name());
        }
        let cpu_only = DType::ALL.into_iter().filter(|dtype| dtype.decodable() && !reads(*dtype));
        assert_eq!(cpu_only.count(), CPU_ONLY.len());
    }
}
