"""Files of full size with random weights, to measure speed: nothing they say means anything. Needs numpy only.

    large.py drafter out.gguf      # of E2B, Q8_0
    large.py embedding out.gguf    # EmbeddingGemma 300M, Q8_0
    large.py diffusion out.gguf    # DiffusionGemma 26B-A4B, Q4_K and Q5_0: 15 GB
"""

import struct
import sys

import numpy as np

U32, F32, BOOL, STR, ARRAY = 4, 6, 7, 8, 9
# Type, numbers in a block, bytes of one, and where its scales are.
TYPES = {"f32": (0, 1, 4), "q5_0": (6, 32, 22), "q8_0": (8, 32, 34), "q4_k": (12, 256, 144), "q6_k": (14, 256, 210)}


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def entry(key, value):
    if isinstance(value, list):
        kind = BOOL if isinstance(value[0], bool) else U32
        body = b"".join(struct.pack("<?" if kind == BOOL else "<I", item) for item in value)
        return text(key) + struct.pack("<IIQ", ARRAY, kind, len(value)) + body
    if isinstance(value, bool):
        return text(key) + struct.pack("<I?", BOOL, value)
    if isinstance(value, str):
        return text(key) + struct.pack("<I", STR) + text(value)
    if isinstance(value, float):
        return text(key) + struct.pack("<If", F32, value)
    return text(key) + struct.pack("<II", U32, value)


def blocks(dtype, count, width, random):
    """Random blocks whose numbers are about as large as those of a trained matrix with rows of `width`."""
    _, numbers, size = TYPES[dtype]
    spread = width ** -0.5
    if dtype == "f32":
        return np.ones(count, "<f4").view(np.uint8).tobytes()
    made = random.integers(0, 256, (count, size), dtype=np.uint8)
    half = lambda value: np.frombuffer(np.float16(value).tobytes(), np.uint8)
    if dtype == "q6_k":
        made[:, 208:210] = half(spread / 1500)
    elif dtype == "q4_k":
        made[:, 0:2], made[:, 2:4] = half(spread / 200), half(spread / 30)
    else:
        made[:, 0:2] = half(spread / {"q5_0": 9.0, "q8_0": 74.0}[dtype])
    return made.tobytes()


class File:
    def __init__(self, architecture):
        self.architecture, self.entries, self.tensors = architecture, [], []
        self.key("general.architecture", architecture)

    def key(self, name, value):
        self.entries.append(entry(name, value))

    def keys(self, values):
        for name, value in values.items():
            self.key(f"{self.architecture}.{name}", value)

    def tensor(self, name, dims, dtype):
        """Sizes with the row's first, as files have them."""
        if len(dims) == 1:
            dtype = "f32"
        elif dims[0] % TYPES[dtype][1]:
            dtype = "q5_0"
        self.tensors.append((name, dims, dtype))

    def write(self, path):
        head = b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(self.entries)) + b"".join(self.entries)
        offset, sizes = 0, []
        for name, dims, dtype in self.tensors:
            kind, numbers, size = TYPES[dtype]
            length = int(np.prod(dims)) // numbers * size
            head += text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims) + struct.pack("<IQ", kind, offset)
            sizes.append(length)
            offset += -(-length // 32) * 32
        random = np.random.default_rng(1)
        with open(path, "wb") as out:
            out.write(head + b"\0" * (-len(head) % 32))
            for (name, dims, dtype), length in zip(self.tensors, sizes):
                pool = blocks(dtype, min(length // TYPES[dtype][2], 1 << 16), dims[0], random)
                for start in range(0, length, len(pool)):
                    out.write(pool[: length - start])
                out.write(b"\0" * (-length % 32))


def drafter():
    file = File("gemma4-assistant")
    d, out, ffn, vocabulary = 256, 1536, 2048, 262144
    file.keys({
        "block_count": 4, "context_length": 131072, "embedding_length": d, "embedding_length_out": out, "nextn_predict_layers": 4,
        "feed_forward_length": ffn, "attention.head_count": 4, "attention.head_count_kv": 1, "attention.key_length": 512,
        "attention.value_length": 512, "attention.key_length_swa": 256, "attention.value_length_swa": 256,
        "attention.layer_norm_rms_epsilon": 1e-6, "attention.sliding_window": 512, "attention.shared_kv_layers": 4,
        "attention.sliding_window_pattern": [True, True, True, False], "rope.freq_base": 1e6, "rope.freq_base_swa": 1e4,
    })
    for name, dims in {
        "token_embd": [d, vocabulary], "output_norm": [d], "nextn.pre_projection": [2 * out, d], "nextn.post_projection": [d, out],
    }.items():
        file.tensor(f"{name}.weight", dims, "q8_0")
    for layer in range(4):
        head = 512 if layer == 3 else 256
        for name, dims in {
            "attn_norm": [d], "post_attention_norm": [d], "ffn_norm": [d], "post_ffw_norm": [d], "attn_q": [d, 4 * head],
            "attn_q_norm": [head], "attn_output": [4 * head, d], "ffn_gate": [d, ffn], "ffn_up": [d, ffn], "ffn_down": [ffn, d],
            "layer_output_scale": [1],
        }.items():
            file.tensor(f"blk.{layer}.{name}.weight", dims, "q8_0")
    return file


def embedding():
    file = File("gemma-embedding")
    d, ffn = 768, 1152
    file.keys({
        "block_count": 24, "context_length": 2048, "embedding_length": d, "feed_forward_length": ffn, "attention.head_count": 3,
        "attention.head_count_kv": 1, "attention.key_length": 256, "attention.value_length": 256,
        "attention.layer_norm_rms_epsilon": 1e-6, "attention.sliding_window": 512, "rope.freq_base": 1e6, "pooling_type": 1,
    })
    for name, dims in {"token_embd": [d, 262144], "output_norm": [d], "dense_2": [d, 3072], "dense_3": [3072, d]}.items():
        file.tensor(f"{name}.weight", dims, "q8_0")
    for layer in range(24):
        for name, dims in {
            "attn_norm": [d], "post_attention_norm": [d], "ffn_norm": [d], "post_ffw_norm": [d], "attn_q_norm": [256],
            "attn_k_norm": [256], "attn_q": [d, 768], "attn_k": [d, 256], "attn_v": [d, 256], "attn_output": [768, d],
            "ffn_gate": [d, ffn], "ffn_up": [d, ffn], "ffn_down": [ffn, d],
        }.items():
            file.tensor(f"blk.{layer}.{name}.weight", dims, "q8_0")
    return file


def diffusion():
    file = File("diffusion-gemma")
    d, ffn, experts, width, layers = 2816, 2112, 128, 704, 30
    whole = [layer % 6 == 5 for layer in range(layers)]
    file.keys({
        "block_count": layers, "context_length": 262144, "embedding_length": d, "feed_forward_length": ffn,
        "attention.head_count": 16, "attention.head_count_kv": [2 if every else 8 for every in whole],
        "attention.key_length": 512, "attention.value_length": 512, "attention.key_length_swa": 256, "attention.value_length_swa": 256,
        "attention.sliding_window": 1024, "attention.sliding_window_pattern": [not every for every in whole],
        "attention.shared_kv_layers": 0, "attention.causal": False, "attention.layer_norm_rms_epsilon": 1e-6,
        "embedding_length_per_layer_input": 0, "expert_count": experts, "expert_used_count": 8, "expert_feed_forward_length": width,
        "rope.freq_base": 1e6, "rope.freq_base_swa": 1e4, "final_logit_softcapping": 30.0,
    })
    file.key("diffusion.canvas_length", 256)
    file.tensor("token_embd.weight", [d, 262144], "q6_k")
    for name, dims in {"output_norm": [d], "self_cond_pre_norm": [d], "self_cond_gate": [d, ffn], "self_cond_up": [d, ffn], "self_cond_down": [ffn, d]}.items():
        file.tensor(f"{name}.weight", dims, "q4_k")
    for layer, every in enumerate(whole):
        head, kv = (512, 2) if every else (256, 8)
        tensors = {
            "attn_norm": [d], "post_attention_norm": [d], "ffn_norm": [d], "post_ffw_norm": [d], "post_ffw_norm_1": [d],
            "post_ffw_norm_2": [d], "pre_ffw_norm_2": [d], "attn_q_norm": [head], "attn_k_norm": [head], "attn_q": [d, 16 * head],
            "attn_k": [d, kv * head], "attn_output": [16 * head, d], "ffn_gate": [d, ffn], "ffn_up": [d, ffn], "ffn_down": [ffn, d],
            "ffn_gate_up_exps": [d, 2 * width, experts], "ffn_down_exps": [width, d, experts], "layer_output_scale": [1],
            "enc_layer_output_scale": [1],
        }
        if not every:
            tensors["attn_v"] = [d, kv * head]
        for name, dims in tensors.items():
            file.tensor(f"blk.{layer}.{name}.weight", dims, "q4_k")
        file.tensors.append((f"blk.{layer}.ffn_gate_inp.weight", [d, experts], "q8_0"))
        file.tensor(f"blk.{layer}.ffn_gate_inp.scale", [d], "f32")
        file.tensor(f"blk.{layer}.ffn_down_exps.scale", [experts], "f32")
    return file


{"drafter": drafter, "embedding": embedding, "diffusion": diffusion}[sys.argv[1]]().write(sys.argv[2])
