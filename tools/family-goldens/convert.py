"""Reference models that come as safetensors, as GGUF files."""

import json
import sys

from safetensors.torch import load_file

from files import add, finish, writer

ATTENTION = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "post_ffw_norm": "post_feedforward_layernorm",
}
PER_LAYER = {
    "inp_gate": "ple_block.per_layer_input_gate", "proj": "ple_block.per_layer_projection",
    "post_norm": "ple_block.post_per_layer_input_norm",
}
EXPERT_NORMS = {
    "pre_ffw_norm_2": "pre_feedforward_layernorm_2", "post_ffw_norm_1": "post_feedforward_layernorm_1",
    "post_ffw_norm_2": "post_feedforward_layernorm_2",
}


def shared_keys(out, architecture, config):
    key = lambda name: f"{architecture}.{name}"
    kinds = config["layer_types"]
    other = {int(layer): changes for layer, changes in config["per_layer_config"].items()}
    of = lambda layer, name: other.get(layer, {}).get(name, config[name])
    last = kinds.index("full_attention")
    for name, value in {
        "block_count": len(kinds), "context_length": config["max_position_embeddings"], "embedding_length": config["hidden_size"],
        "feed_forward_length": config["intermediate_size"], "attention.head_count": config["num_attention_heads"],
        "attention.key_length": of(last, "head_dim"), "attention.value_length": of(last, "head_dim"),
        "attention.key_length_swa": config["head_dim"], "attention.value_length_swa": config["head_dim"],
        "attention.sliding_window": config["sliding_window"],
    }.items():
        out.add_uint32(key(name), value)
    out.add_array(key("attention.head_count_kv"), [of(layer, "num_key_value_heads") for layer in range(len(kinds))])
    out.add_array(key("attention.sliding_window_pattern"), [kind == "sliding_attention" for kind in kinds])
    out.add_float32(key("attention.layer_norm_rms_epsilon"), config["rms_norm_eps"])
    out.add_float32(key("rope.freq_base"), config["rope_parameters"]["full_attention"]["rope_theta"])
    out.add_float32(key("rope.freq_base_swa"), config["rope_parameters"]["sliding_attention"]["rope_theta"])
    return key


def second(folder, target, vocabulary):
    config = json.load(open(f"{folder}/embedding/config.json"))
    state = {name: values.float().numpy() for name, values in load_file(f"{folder}/embedding/model.safetensors").items()}
    out = writer(f"{target}/embedding/second-BF16.gguf", "gemma-embedding2", vocabulary)
    key = shared_keys(out, "gemma-embedding2", config)
    out.add_uint32(key("embedding_length_per_layer_input"), config["hidden_size_per_layer_input"])
    out.add_uint32(key("embedding_length_out"), config["embedding_dim"])
    out.add_uint32(key("pooling_type"), 1)
    add(out, "token_embd.weight", state["embed_tokens.weight"])
    add(out, "output_norm.weight", state["norm.weight"])
    add(out, "embedding_projection.weight", state["embedding_projection.weight"])
    add(out, "per_layer_model_proj.weight", state["ple.per_layer_model_projection.weight"])
    add(out, "per_layer_proj_norm.weight", state["ple.per_layer_projection_norm.weight"])
    for layer in range(config["num_hidden_layers"]):
        for name, other in {**ATTENTION, **PER_LAYER}.items():
            add(out, f"blk.{layer}.{name}.weight", state[f"layers.{layer}.{other}.weight"])
        add(out, f"blk.{layer}.layer_output_scale.weight", state[f"layers.{layer}.layer_scalar"])
    finish(out)


def diffusion(folder, target, vocabulary):
    whole = json.load(open(f"{folder}/diffusion/config.json"))
    config = whole["text_config"]
    state = {name: values.float().numpy() for name, values in load_file(f"{folder}/diffusion/model.safetensors").items()}
    out = writer(f"{target}/diffusion/micro-diffusion-BF16.gguf", "diffusion-gemma", vocabulary)
    key = shared_keys(out, "diffusion-gemma", config)
    for name, value in {
        "attention.shared_kv_layers": 0, "embedding_length_per_layer_input": 0, "expert_count": config["num_experts"],
        "expert_used_count": config["top_k_experts"], "expert_feed_forward_length": config["moe_intermediate_size"],
    }.items():
        out.add_uint32(key(name), value)
    out.add_float32(key("final_logit_softcapping"), 30.0)
    out.add_bool(key("attention.causal"), False)
    out.add_uint32("diffusion.canvas_length", whole["canvas_length"])
    encoder, decoder = "model.encoder.language_model", "model.decoder"
    add(out, "token_embd.weight", state[f"{encoder}.embed_tokens.weight"])
    add(out, "output_norm.weight", state[f"{encoder}.norm.weight"])
    for name in ("pre_norm", "gate_proj", "up_proj", "down_proj"):
        short = name.removesuffix("_proj")
        add(out, f"self_cond_{short}.weight", state[f"{decoder}.self_conditioning.{name}.weight"])
    for layer in range(config["num_hidden_layers"]):
        at, to = f"{encoder}.layers.{layer}", f"blk.{layer}"
        for name, other in {**ATTENTION, **EXPERT_NORMS}.items():
            # Global layers make values of their keys.
            if f"{at}.{other}.weight" in state:
                add(out, f"{to}.{name}.weight", state[f"{at}.{other}.weight"])
        add(out, f"{to}.ffn_gate_inp.weight", state[f"{at}.router.proj.weight"])
        add(out, f"{to}.ffn_gate_inp.scale", state[f"{at}.router.scale"])
        add(out, f"{to}.ffn_down_exps.scale", state[f"{at}.router.per_expert_scale"])
        add(out, f"{to}.ffn_gate_up_exps.weight", state[f"{at}.experts.gate_up_proj"])
        add(out, f"{to}.ffn_down_exps.weight", state[f"{at}.experts.down_proj"])
        add(out, f"{to}.enc_layer_output_scale.weight", state[f"{at}.layer_scalar"])
        add(out, f"{to}.layer_output_scale.weight", state[f"{decoder}.layers.{layer}.layer_scalar"])
    finish(out)


second(*sys.argv[1:])
diffusion(*sys.argv[1:])
