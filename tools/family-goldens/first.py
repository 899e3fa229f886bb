"""A tiny EmbeddingGemma of the first generation, and what transformers makes of it."""

import sys

import torch
from safetensors.torch import save_file
from transformers import Gemma3TextConfig, Gemma3TextModel

from files import add, finish, writer

LAYERS, WIDTH, HEADS, HEAD, FFN, WINDOW, INNER = 6, 32, 2, 16, 64, 12, 64
TENSORS = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "post_ffw_norm": "post_feedforward_layernorm",
}


def model():
    torch.manual_seed(4)
    kinds = ["full_attention" if (i + 1) % 6 == 0 else "sliding_attention" for i in range(LAYERS)]
    config = Gemma3TextConfig(
        vocab_size=640, hidden_size=WIDTH, intermediate_size=FFN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=1, head_dim=HEAD, sliding_window=WINDOW, query_pre_attn_scalar=HEAD, layer_types=kinds,
        max_position_embeddings=2048, use_bidirectional_attention=True, attn_implementation="eager", pad_token_id=0,
    )
    made = Gemma3TextModel(config)
    with torch.no_grad():
        for name, values in made.named_parameters():
            spread = 0.3 if "norm" in name else 2.0 * values.shape[-1] ** -0.5
            values.copy_((torch.randn_like(values) * spread).bfloat16().float())
    return made.double().eval()


def write(path, made, dense, vocabulary):
    out = writer(path, "gemma-embedding", vocabulary, scores=True)
    key = lambda name: f"gemma-embedding.{name}"
    for name, value in {
        "block_count": LAYERS, "context_length": 2048, "embedding_length": WIDTH, "feed_forward_length": FFN,
        "attention.head_count": HEADS, "attention.head_count_kv": 1, "attention.key_length": HEAD, "attention.value_length": HEAD,
        "attention.sliding_window": WINDOW, "pooling_type": 1,
    }.items():
        out.add_uint32(key(name), value)
    out.add_float32(key("attention.layer_norm_rms_epsilon"), 1e-6)
    out.add_float32(key("rope.freq_base"), 1e6)
    state = {name: values.float().numpy() for name, values in made.state_dict().items()}
    add(out, "token_embd.weight", state["embed_tokens.weight"])
    # Norms are stored with the one added that the code adds.
    add(out, "output_norm.weight", state["norm.weight"] + 1)
    for layer in range(LAYERS):
        for name, other in TENSORS.items():
            values = state[f"layers.{layer}.{other}.weight"]
            add(out, f"blk.{layer}.{name}.weight", values + 1 if "norm" in name else values)
    for name, values in zip(["dense_2.weight", "dense_3.weight"], dense):
        add(out, name, values.float().numpy())
    finish(out)


def main(folder, vocabulary):
    made = model()
    dense = [(torch.randn(shape) * 0.1).bfloat16().double() for shape in [(INNER, WIDTH), (WIDTH, INNER)]]
    golden = {}
    for name, length in [("short", 3), ("medium", 40), ("long", 200)]:
        ids = torch.randint(5, 600, (1, length))
        with torch.no_grad():
            tokens = made(input_ids=ids).last_hidden_state[0]
        vector = dense[1] @ (dense[0] @ tokens.mean(0))
        golden[f"{name}.ids"] = ids[0].int()
        golden[f"{name}.pooled"] = tokens.mean(0).float()
        golden[f"{name}.unit"] = (vector / vector.norm()).float()
        half = vector[: WIDTH // 2]
        golden[f"{name}.unit_half"] = (half / half.norm()).float()
    save_file(golden, f"{folder}/first.safetensors")
    write(f"{folder}/first-BF16.gguf", made, dense, vocabulary)


main(*sys.argv[1:])
