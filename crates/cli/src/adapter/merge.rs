//! `rullama adapter merge`: adds adapters to a model's weights.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use pollster::block_on;
use rullama_adapter::{EMBEDDING, HEAD, Pair, Weighted, combine};
use rullama_gguf::{DType, Gguf, TensorInfo, Writer, quant};
use rullama_runtime::adapters::{file_order, fit_to};
use serde_json::json;

use super::MergeArgs;
use crate::{
    interrupt,
    locate::Stores,
    output::{note, print, print_json, progress},
    output_file::OutputFile,
};

/// Rows decoded at once.
const ROWS: u64 = 256;
/// The largest f16.
const MAX_F16: f32 = 65_504.0;

/// Types that changed tensors may be stored as.
pub(super) fn dtype(text: &str) -> Result<DType, &'static str> {
    match text.to_ascii_lowercase().as_str() {
        "f32" => Ok(DType::F32),
        "f16" => Ok(DType::F16),
        "bf16" => Ok(DType::BF16),
        "q8_0" => Ok(DType::Q8_0),
        _ => Err("give f32, f16, bf16 or q8_0"),
    }
}

pub(super) fn merge(stores: &Stores, args: &MergeArgs) -> Result<()> {
    let (location, gguf) = stores.open(&args.model)?;
    let chosen = args.adapters.read(&location)?;
    if chosen.0.is_empty() {
        bail!("nothing to merge: give an adapter with --adapter");
    }
    let ordered =
        chosen.0.iter().map(|(adapter, weight)| Ok((file_order(&gguf, adapter)?, weight)));
    let ordered: Vec<_> = ordered.collect::<Result<_>>()?;
    let mut pairs = Vec::new();
    for (adapter, weight) in &ordered {
        let fit = fit_to(&gguf, adapter)?;
        pairs.extend(fit.pairs.into_iter().map(|pair| Weighted { pair, weight: **weight }));
    }
    interrupt::watch();
    let mut file = OutputFile::create(&args.out)?;
    let pairs = combine(&pairs);
    let merged: BTreeMap<&str, &Pair> =
        pairs.iter().map(|pair| (pair.tensor.as_str(), pair)).collect();
    let merger =
        Merger { gguf: &gguf, pairs: merged.clone(), wanted: args.dtype, others: BTreeMap::new() };
    let (writer, others) = merger.all()?;
    let name = || args.out.display().to_string();
    writer.write_to(&mut file).with_context(name)?;
    interrupt::check()?;
    file.finish()?;
    if args.json {
        let others: BTreeMap<_, _> = others.iter().map(|(name, to)| (name, to.name())).collect();
        return print_json(&json!({ "out": args.out, "stored_otherwise": others }));
    }
    for (name, to) in &others {
        note(&format!("{name} is now stored as {}", to.name()));
    }
    let changed = merged.len();
    print(&format!("{}: {} with {changed} tensors changed\n", name(), args.model))
}

struct Merger<'a> {
    gguf: &'a Gguf,
    pairs: BTreeMap<&'a str, &'a Pair>,
    wanted: Option<DType>,
    /// Tensors whose type changes.
    others: BTreeMap<String, DType>,
}

impl Merger<'_> {
    /// The new file, and the tensors whose type changed.
    fn all(mut self) -> Result<(Writer, BTreeMap<String, DType>)> {
        let gguf = self.gguf;
        let mut writer = Writer::new().version(gguf.version());
        for entry in gguf.metadata().iter().filter(|entry| !entry.key.starts_with("split.")) {
            writer = writer.kv(entry.key.clone(), entry.value.clone());
        }
        let bar = progress(gguf.tensors().len() as u64, "merging");
        for tensor in gguf.tensors() {
            let pair = self.pairs.get(tensor.name()).copied();
            writer = self.tensor(writer, tensor, tensor.name(), pair)?;
            bar.inc(1);
            interrupt::check()?;
        }
        bar.finish_and_clear();
        // A tied embedding table is split into lookup table and LM head if the adapters change them differently.
        let (lookup, head) = (self.pairs.get(EMBEDDING), self.pairs.get(HEAD).copied());
        if gguf.tensor(HEAD).is_none() && (lookup.is_some() || head.is_some()) {
            let table = gguf.tensor(EMBEDDING).context("the model has no token embedding table")?;
            writer = self.tensor(writer, table, HEAD, head)?;
        }
        Ok((writer, self.others))
    }

    fn tensor(
        &mut self,
        writer: Writer,
        tensor: &TensorInfo,
        name: &str,
        pair: Option<&Pair>,
    ) -> Result<Writer> {
        let (dtype, bytes) = match pair {
            None => (tensor.dtype(), block_on(self.gguf.read(tensor, 0..tensor.nbytes()))?),
            Some(pair) => {
                let (dtype, bytes) = self.changed(tensor, pair)?;
                if dtype != tensor.dtype() {
                    self.others.insert(name.into(), dtype);
                }
                (dtype, bytes.into())
            }
        };
        Ok(writer.tensor(name, tensor.dims(), dtype, bytes))
    }

    /// A tensor with the adapters added, in its own type if that can be encoded, else as f16.
    fn changed(&self, tensor: &TensorInfo, pair: &Pair) -> Result<(DType, Vec<u8>)> {
        let pair = self.unscaled(tensor, pair)?;
        let own = tensor.dtype().encodable().then_some(tensor.dtype());
        let dtype = self.wanted.or(own).unwrap_or(DType::F16);
        let (mut bytes, mut largest) = (Vec::new(), 0.0_f32);
        let mut first = 0;
        while first < tensor.rows() {
            let end = (first + ROWS).min(tensor.rows());
            let mut rows = block_on(self.gguf.rows_f32(tensor, first..end))?;
            pair.add_to(usize::try_from(first)?, &mut rows);
            largest = rows.iter().fold(largest, |most, x| most.max(x.abs()));
            bytes.extend(quant::quantize(dtype, &rows)?);
            first = end;
        }
        if dtype == DType::F16 && largest > MAX_F16 {
            let wanted = Some(DType::BF16);
            let again =
                Self { gguf: self.gguf, pairs: BTreeMap::new(), wanted, others: BTreeMap::new() };
            return again.changed(tensor, &pair);
        }
        Ok((dtype, bytes))
    }

    /// The pair divided by the matrix's scale in the file, if it has one. Scales of experts belong to the router.
    fn unscaled(&self, tensor: &TensorInfo, pair: &Pair) -> Result<Pair> {
        let mut pair = pair.clone();
        let name = tensor.name().strip_suffix(".weight").map(|name| format!("{name}.scale"));
        let scale = name.and_then(|name| self.gguf.tensor(&name));
        if let Some(scale) = scale.filter(|scale| scale.elements() == 1 && pair.experts == 1) {
            let scale = block_on(self.gguf.rows_f32(scale, 0..1))?;
            pair.scale /= scale.first().copied().filter(|scale| *scale != 0.0).unwrap_or(1.0);
        }
        Ok(pair)
    }
}
