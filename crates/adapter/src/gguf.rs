//! GGUF adapters: `<tensor>.lora_a` and `<tensor>.lora_b`.

use std::{io, rc::Rc};

use rullama_gguf::{DType, Gguf, Optional, TensorInfo, Writer, quant};
use rullama_source::ByteSource;

use crate::{
    Adapter, EMBEDDING, Format, Pair,
    error::AdapterError,
    halves::{Half, Halves, Matrix, transposed},
};

const ALPHA: &str = "adapter.lora.alpha";
/// Marks the names of expert tensors, whose factors have the experts as third dimension.
const EXPERTS: &str = "_exps.";

pub(crate) async fn read(source: Rc<dyn ByteSource>) -> Result<Adapter, AdapterError> {
    let file = Gguf::open(source).await?;
    let name = file.name().to_owned();
    let kind = file.str("general.type").optional()?.unwrap_or("model");
    if kind != "adapter" {
        return Err(AdapterError::WrongType { name, found: kind.into() });
    }
    let kind = file.str("adapter.type").optional()?.unwrap_or("lora");
    if kind != "lora" {
        return Err(AdapterError::WrongType { name, found: kind.into() });
    }
    if file.get("adapter.alora.invocation_tokens").is_some() {
        return Err(AdapterError::Unsupported { what: "invocation tokens (aLoRA)" });
    }
    let alpha = file.f32(ALPHA).optional()?.unwrap_or(0.0);
    if !alpha.is_finite() {
        let value = alpha.to_string();
        return Err(AdapterError::BadNumber { key: ALPHA, value, wanted: "a number" });
    }
    let (halves, ignored) = halves(&file).await?;
    // Without alpha, as in llama.cpp, the factors are used unscaled.
    let scale = |rank: usize| if alpha == 0.0 { 1.0 } else { alpha / rank as f32 };
    let pairs = halves.pairs(|_, rank| Ok(scale(rank)))?;
    if pairs.is_empty() {
        return Err(AdapterError::Empty { name });
    }
    let architecture = file.str("general.architecture").optional()?.map(str::to_owned);
    let base_model = file.str("general.base_model.0.name").optional()?.map(str::to_owned);
    Ok(Adapter { name, format: Format::Gguf, architecture, base_model, pairs, ignored })
}

async fn halves(file: &Gguf) -> Result<(Halves, Vec<String>), AdapterError> {
    let (mut halves, mut unknown, mut ignored) = (Halves::default(), Vec::new(), Vec::new());
    for tensor in file.tensors() {
        let name = tensor.name();
        let (base, half) = match (name.strip_suffix(".lora_a"), name.strip_suffix(".lora_b")) {
            (Some(base), _) => (base, Half::A),
            (_, Some(base)) => (base, Half::B),
            _ if name.ends_with("_norm.weight") => {
                ignored.push(name.into());
                continue;
            }
            _ => {
                unknown.push(name.to_owned());
                continue;
            }
        };
        let matrix = matrix(file, tensor).await?;
        match (base == EMBEDDING, half) {
            // The embedding's `lora_a` has one row per token, as B here; its `lora_b` is PEFT's `lora_embedding_B`.
            (true, Half::A) => halves.add(base, Half::B, matrix)?,
            (true, Half::B) => halves.add(base, Half::A, matrix.transposed())?,
            (false, half) => halves.add(base, half, matrix)?,
        }
    }
    if unknown.is_empty() {
        Ok((halves, ignored))
    } else {
        Err(AdapterError::UnknownTensors { names: unknown })
    }
}

async fn matrix(file: &Gguf, tensor: &TensorInfo) -> Result<Matrix, AdapterError> {
    let name = tensor.name();
    let mut more = tensor.dims().iter().skip(2).copied();
    let experts = if name.contains(EXPERTS) { more.next().unwrap_or(1) } else { 1 };
    // A tensor has at least one element, so `experts` is not 0.
    let rows = tensor.rows() / experts.max(1);
    if experts == 0 || more.any(|size| size != 1) {
        let (tensor, shape) = (name.to_owned(), tensor.dims().to_vec());
        return Err(AdapterError::NotAMatrix { tensor, shape });
    }
    let values = file.rows_f32(tensor, 0..tensor.rows()).await?;
    let size = |size: u64| {
        usize::try_from(size).map_err(|_| AdapterError::TooLarge { bytes: tensor.nbytes() })
    };
    let (experts, rows, columns) = (size(experts)?, size(rows)?, size(tensor.row_len())?);
    Ok(Matrix { experts, rows, columns, values })
}

pub(crate) fn write(adapter: &Adapter, out: impl io::Write) -> Result<(), AdapterError> {
    // The format has one alpha for all pairs: a pair's difference from it goes into its B.
    let alpha = adapter.pairs.first().map_or(1.0, alpha_of);
    let alpha = if alpha == 0.0 { 1.0 } else { alpha };
    let architecture = adapter.architecture.as_deref().unwrap_or("gemma4");
    let mut writer = Writer::new()
        .kv("general.architecture", architecture)
        .kv("general.type", "adapter")
        .kv("adapter.type", "lora")
        .kv(ALPHA, alpha);
    if let Some(name) = &adapter.base_model {
        writer = writer
            .kv("general.base_model.count", 1u32)
            .kv("general.base_model.0.name", name.as_str());
    }
    for pair in &adapter.pairs {
        let &Pair { experts, rank, rows, columns, .. } = pair;
        let factor = alpha_of(pair) / alpha;
        let b: Vec<f32> = pair.b.iter().map(|value| value * factor).collect();
        let (a, dims_a, b, dims_b) = if pair.tensor == EMBEDDING {
            // The inverse of `halves`.
            let other = transposed(&pair.a, rank, columns);
            (b, [rank, rows], other, [rank, columns])
        } else {
            (pair.a.clone(), [columns, rank], b, [rank, rows])
        };
        for (end, values, dims) in [("lora_a", a, dims_a), ("lora_b", b, dims_b)] {
            let bytes = quant::quantize(DType::F32, &values)?;
            let name = format!("{}.{end}", pair.tensor);
            let mut dims = dims.map(|size| size as u64).to_vec();
            dims.extend((experts > 1).then_some(experts as u64));
            writer = writer.tensor(name, &dims, DType::F32, bytes);
        }
    }
    Ok(writer.write_to(out)?)
}

/// α of a pair, if its scale is α / r.
fn alpha_of(pair: &Pair) -> f32 {
    pair.scale * pair.rank as f32
}
