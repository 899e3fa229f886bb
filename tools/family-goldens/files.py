"""GGUF files with the vocabulary of another one."""

import gguf
import numpy as np


def writer(path, architecture, vocabulary, scores=False):
    """A file that begins like `vocabulary`; with scores in place of merges where they are wanted."""
    out = gguf.GGUFWriter(path, architecture)
    reader = gguf.GGUFReader(vocabulary)
    field = lambda name: reader.fields[f"tokenizer.ggml.{name}"].contents()
    tokens, merges = field("tokens"), field("merges")
    out.add_tokenizer_model("llama" if scores else "gemma4")
    out.add_token_list(tokens)
    out.add_token_types(field("token_type"))
    for name in ("bos", "eos", "unknown", "padding"):
        if f"tokenizer.ggml.{name}_token_id" in reader.fields:
            out.add_uint32(f"tokenizer.ggml.{name}_token_id", int(field(f"{name}_token_id")))
    if scores:
        ranks = {}
        for rank, merge in enumerate(merges):
            ranks.setdefault(merge.replace(" ", "", 1), rank)
        out.add_token_scores([-float(ranks.get(token, len(merges))) for token in tokens])
        out.add_bool("tokenizer.ggml.add_bos_token", True)
        out.add_bool("tokenizer.ggml.add_eos_token", True)
    else:
        out.add_token_merges(merges)
    return out


def add(out, name, values):
    """Matrices as BF16 where that loses nothing, all else as F32."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    halves = values.view(np.uint32)
    if values.ndim > 1 and not (halves & 0xFFFF).any():
        raw = (halves >> 16).astype(np.uint16)
        out.add_tensor(name, raw.view(np.uint8).reshape(*values.shape[:-1], -1), raw_dtype=gguf.GGMLQuantizationType.BF16)
    else:
        out.add_tensor(name, values)


def finish(out):
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
