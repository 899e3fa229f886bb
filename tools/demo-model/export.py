#!/usr/bin/env python3
"""From trained weights to GGUF.

    export.py one MODEL.safetensors VOCAB.json OUT.gguf      one file, towers inside, as Ollama keeps models
    export.py split IN.gguf MODEL.gguf PROJECTOR.gguf        the two files llama.cpp's tools expect, from that one

Text matrices become Q8_0; towers stay F16, their convolutions, norms and bounds F32.
"""

import json
import re
import sys
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Type, GGUFReader, GGUFValueType as Value, GGUFWriter, quants
from tokenizers import Tokenizer

import vocab

TEMPLATE = Path(__file__).parents[2] / "goldens/chat-template/google-gemma-4-E2B-it.2026-07-09.jinja"
EPS = 1e-6

TEXT = {"embed_tokens": "token_embd", "embed_tokens_per_layer": "per_layer_token_embd", "per_layer_model_projection": "per_layer_model_proj",
        "per_layer_projection_norm": "per_layer_proj_norm", "norm": "output_norm"}
TEXT_LAYER = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "per_layer_input_gate": "inp_gate", "per_layer_projection": "proj",
    "post_per_layer_input_norm": "post_norm",
}
VISION_LAYER = {
    "input_layernorm": "ln1", "post_attention_layernorm": "attn_post_norm", "pre_feedforward_layernorm": "ln2", "post_feedforward_layernorm": "ffn_post_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_out", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}
AUDIO_LAYER = {
    "feed_forward1.pre_layer_norm": "ffn_norm", "feed_forward1.ffw_layer_1": "ffn_up", "feed_forward1.ffw_layer_2": "ffn_down",
    "feed_forward1.post_layer_norm": "ffn_post_norm", "feed_forward2.pre_layer_norm": "ffn_norm_1", "feed_forward2.ffw_layer_1": "ffn_up_1",
    "feed_forward2.ffw_layer_2": "ffn_down_1", "feed_forward2.post_layer_norm": "ffn_post_norm_1", "norm_pre_attn": "ln1", "norm_post_attn": "ln2",
    "norm_out": "layer_pre_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.post": "attn_out",
    "self_attn.relative_k_proj": "linear_pos", "lconv1d.pre_layer_norm": "conv_norm", "lconv1d.linear_start": "conv_pw1",
    "lconv1d.depthwise_conv1d": "conv_dw", "lconv1d.conv_norm": "norm_conv", "lconv1d.linear_end": "conv_pw2",
}
AUDIO = {
    "subsample_conv_projection.layer0.conv": "a.conv1d.0", "subsample_conv_projection.layer0.norm": "a.conv1d.0.norm",
    "subsample_conv_projection.layer1.conv": "a.conv1d.1", "subsample_conv_projection.layer1.norm": "a.conv1d.1.norm",
    "subsample_conv_projection.input_proj_linear": "a.pre_encode.out", "output_proj": "mm.a.fc",
}
# The same audio tensors in llama.cpp's projector files; order matters, since one name exists on both sides.
PROJECTOR_NAMES = [(r"^a\.pre_encode\.out\.", "a.input_projection."), (r"^mm\.a\.fc\.", "a.pre_encode.out."), (r"(a\.blk\.\d+)\.ln1\.", r"\1.attn_pre_norm."),
                   (r"(a\.blk\.\d+)\.ln2\.", r"\1.attn_post_norm."), (r"(a\.blk\.\d+)\.layer_pre_norm\.", r"\1.ln2."), (r"(a\.blk\.\d+)\.linear_pos\.", r"\1.attn_k_rel.")]
BOUNDS = (".input_min", ".input_max", ".output_min", ".output_max")


def gguf_name(name):
    """Where a weight of the transformers model goes; None for what is not stored."""
    if name == "lm_head.weight" or name.endswith(("softcap", "inv_timescales")):
        return None
    name = name.removeprefix("model.").replace(".linear.", ".")
    part, _, rest = name.partition(".")
    stem, _, suffix = rest.rpartition(".")
    layer = re.match(r"(?:encoder\.)?layers\.(\d+)\.(.+)", stem)
    scalar = re.match(r"layers\.(\d+)\.layer_scalar", rest)
    if part == "language_model":
        if scalar:
            return f"blk.{scalar[1]}.layer_output_scale.weight"
        return f"blk.{layer[1]}.{TEXT_LAYER[layer[2]]}.{suffix}" if layer else f"{TEXT[stem]}.{suffix}"
    if part == "vision_tower":
        if layer:
            return f"v.blk.{layer[1]}.{VISION_LAYER[layer[2]]}.{suffix}"
        return {"patch_embedder.input_proj.weight": "v.patch_embd.weight", "patch_embedder.position_embedding_table": "v.position_embd.weight"}[rest]
    if part == "audio_tower":
        if layer and suffix == "per_dim_scale":
            return f"a.blk.{layer[1]}.per_dim_scale.weight"
        return f"a.blk.{layer[1]}.{AUDIO_LAYER[layer[2]]}.{suffix}" if layer else f"{AUDIO[stem]}.{suffix}"
    return {"embed_vision.embedding_projection.weight": "mm.input_projection.weight", "embed_audio.embedding_projection.weight": "mm.a.input_projection.weight"}[name]


def stored(name, weight):
    """A tensor as the file keeps it: its values and its type."""
    if name == "v.patch_embd.weight":
        # From (row, column, channel) within a patch to (channel, row, column).
        weight = weight.reshape(weight.shape[0], 16, 16, 3).transpose(0, 3, 1, 2)
    if name.endswith("per_dim_scale.weight"):
        weight = np.log1p(np.exp(weight))
    if name.endswith("conv_dw.weight"):
        weight = weight.reshape(weight.shape[0], weight.shape[-1])
    weight = np.ascontiguousarray(weight, dtype=np.float32)
    if weight.ndim == 0:
        weight = weight.reshape(1)
    plain = weight.ndim == 1 or "conv1d" in name or name.endswith(("conv_dw.weight", "position_embd.weight"))
    if plain:
        return weight, Type.F32
    if name.startswith(("v.", "a.", "mm.")):
        return weight.astype(np.float16), Type.F16
    return quants.quantize(weight, Type.Q8_0), Type.Q8_0


def add_text_keys(writer, config, tokenizer):
    import model
    layers, last = config.num_hidden_layers, config.num_hidden_layers - config.num_kv_shared_layers
    key = "gemma4."
    for name, value in {
        "block_count": layers, "context_length": config.max_position_embeddings, "embedding_length": config.hidden_size, "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads, "attention.key_length": model.GLOBAL_HEAD, "attention.value_length": model.GLOBAL_HEAD,
        "attention.key_length_swa": model.SLIDING_HEAD, "attention.value_length_swa": model.SLIDING_HEAD, "attention.sliding_window": config.sliding_window,
        "attention.shared_kv_layers": config.num_kv_shared_layers, "rope.dimension_count": model.GLOBAL_HEAD, "rope.dimension_count_swa": model.SLIDING_HEAD,
        "embedding_length_per_layer_input": config.hidden_size_per_layer_input,
    }.items():
        writer.add_uint32(key + name, value)
    width = config.intermediate_size
    writer.add_key_value(key + "feed_forward_length", [width if layer < last else 2 * width for layer in range(layers)], Value.ARRAY, Value.INT32)
    writer.add_key_value(key + "attention.sliding_window_pattern", [kind == "sliding_attention" for kind in config.layer_types], Value.ARRAY, Value.BOOL)
    writer.add_float32(key + "attention.layer_norm_rms_epsilon", EPS)
    writer.add_float32(key + "rope.freq_base", 1e6)
    writer.add_float32(key + "rope.freq_base_swa", 1e4)
    writer.add_float32(key + "final_logit_softcapping", config.final_logit_softcapping)
    add_vocabulary(writer, tokenizer)


def add_vocabulary(writer, tokenizer):
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    tokens = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    writer.add_tokenizer_model("gemma4")
    writer.add_tokenizer_pre("gemma4")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(i) for i in range(len(tokens))])
    writer.add_token_types([vocab.token_type(token) for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in merges])
    for name, token in {"bos": "<bos>", "eos": "<turn|>", "unknown": "<unk>", "padding": "<pad>", "mask": "<mask>", "eot": "<turn|>"}.items():
        writer.add_uint32(f"tokenizer.ggml.{name}_token_id", tokenizer.token_to_id(token))
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE.read_text())


def add_tower_keys(writer, config):
    vision, audio = config.vision_config, config.audio_config
    for name, value in {
        "vision.block_count": vision.num_hidden_layers, "vision.embedding_length": vision.hidden_size, "vision.feed_forward_length": vision.intermediate_size,
        "vision.attention.head_count": vision.num_attention_heads, "vision.patch_size": vision.patch_size, "vision.num_channels": 3,
        "vision.projector.scale_factor": vision.pooling_kernel_size, "audio.block_count": audio.num_hidden_layers, "audio.embedding_length": audio.hidden_size,
        "audio.feed_forward_length": 4 * audio.hidden_size, "audio.attention.head_count": audio.num_attention_heads, "audio.conv_kernel_size": audio.conv_kernel_size,
    }.items():
        writer.add_uint32(f"gemma4.{name}", value)
    for tower in ("vision", "audio"):
        writer.add_float32(f"gemma4.{tower}.attention.layer_norm_epsilon", EPS)


def one(weights, vocabulary, out):
    from safetensors.numpy import load_file
    import model
    tokenizer = Tokenizer.from_file(vocabulary)
    config = model.config(tokenizer)
    writer = GGUFWriter(out, "gemma4")
    writer.add_type("model")
    writer.add_name("rullama demo")
    writer.add_license("apache-2.0")
    writer.add_file_type(7)
    writer.add_quantization_version(2)
    # The demo answers the same every time.
    writer.add_float32("general.sampling.temp", 0.0)
    add_text_keys(writer, config.text_config, tokenizer)
    add_tower_keys(writer, config)
    tensors = {}
    for name, weight in load_file(weights).items():
        target = gguf_name(name)
        # Unbounded is how a missing bound is read.
        if target and not (target.endswith(BOUNDS) and not np.isfinite(weight).all()):
            tensors[target] = stored(target, weight)
    pairs = model.GLOBAL_HEAD // 2
    tensors["rope_freqs.weight"] = np.array([1.0] * (pairs // 4) + [1e30] * (pairs - pairs // 4), np.float32), Type.F32
    writer.add_uint64("general.parameter_count", sum(int(np.prod(quants.quant_shape_from_byte_shape(w.shape, t))) if t == Type.Q8_0 else w.size for w, t in tensors.values()))
    for name in sorted(tensors):
        weight, kind = tensors[name]
        writer.add_tensor(name, weight, raw_dtype=kind)
    finish(writer)
    print(f"{len(tensors)} tensors, {Path(out).stat().st_size} bytes")


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def split(source, model_out, projector_out):
    reader = GGUFReader(source)
    towers = ("v.", "a.", "mm.")
    text = GGUFWriter(model_out, "gemma4")
    clip = GGUFWriter(projector_out, "clip")
    values = {}
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        values[key] = field.contents()
        if not key.startswith(("gemma4.vision.", "gemma4.audio.")):
            text.add_key_value(key, field.contents(), field.types[0], field.types[-1] if len(field.types) > 1 else None)
    clip.add_type("mmproj")
    clip.add_file_type(1)
    for tower, kind in (("vision", "gemma4v"), ("audio", "gemma4a")):
        clip.add_bool(f"clip.has_{tower}_encoder", True)
        clip.add_string(f"clip.{tower}.projector_type", kind)
        for name in ("block_count", "embedding_length", "feed_forward_length", "attention.head_count"):
            clip.add_uint32(f"clip.{tower}.{name}", values[f"gemma4.{tower}.{name}"])
        clip.add_float32(f"clip.{tower}.attention.layer_norm_epsilon", EPS)
        clip.add_uint32(f"clip.{tower}.projection_dim", values["gemma4.embedding_length"])
    clip.add_uint32("clip.vision.patch_size", 16)
    clip.add_uint32("clip.vision.image_size", 224)
    clip.add_array("clip.vision.image_mean", [0.0, 0.0, 0.0])
    clip.add_array("clip.vision.image_std", [1.0, 1.0, 1.0])
    clip.add_uint32("clip.audio.num_mel_bins", 128)
    for tensor in reader.tensors:
        tower = tensor.name.startswith(towers)
        name = tensor.name
        if tower:
            for pattern, replacement in PROJECTOR_NAMES:
                renamed = re.sub(pattern, replacement, name)
                if renamed != name:
                    name = renamed
                    break
        (clip if tower else text).add_tensor(name, np.array(tensor.data), raw_dtype=tensor.tensor_type)
    finish(text)
    finish(clip)


if __name__ == "__main__":
    commands = {"one": one, "split": split}
    if len(sys.argv) != 5 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](*sys.argv[2:])
