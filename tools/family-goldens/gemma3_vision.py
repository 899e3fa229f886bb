"""A tiny vision encoder of Gemma 3's kind, and what Gemma 3 makes of an image: a float64 pass written from the architecture's description.

The text part of the pass is checked against the golden logits of the same decoder, which transformers computed.
"""

import sys

import gguf
import numpy as np
from PIL import Image
from safetensors.numpy import load_file, save_file

LAYERS, WIDTH, HEADS, FFN, PATCH, SIDE, POOL, OUT, EPS = 2, 48, 2, 80, 6, 72, 4, 64, 1e-6
GRID = SIDE // PATCH
IMAGE_OPEN, IMAGE_CLOSE, PLACE = 35, 36, 0


def gelu(z):
    return 0.5 * z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rms(x, weight, eps=EPS):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def layer_norm(x, weight, bias):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + EPS) * weight + bias


def tower_tensors():
    random = np.random.default_rng(11)
    tensors = {}

    def matrix(name, *dims, bias=True):
        spread = 1.5 * np.prod(dims[1:]) ** -0.5
        tensors[f"{name}.weight"] = (random.standard_normal(dims) * spread).astype(np.float16)
        if bias:
            tensors[f"{name}.bias"] = (random.standard_normal(dims[0]) * 0.3).astype(np.float32)

    def norm(name):
        tensors[f"{name}.weight"] = (1 + 0.3 * random.standard_normal(WIDTH)).astype(np.float32)
        tensors[f"{name}.bias"] = (random.standard_normal(WIDTH) * 0.3).astype(np.float32)

    matrix("v.patch_embd", WIDTH, 3, PATCH, PATCH)
    tensors["v.position_embd.weight"] = random.standard_normal((GRID * GRID, WIDTH)).astype(np.float16)
    for layer in range(LAYERS):
        at = f"v.blk.{layer}."
        norm(at + "ln1")
        norm(at + "ln2")
        for name in ["attn_q", "attn_k", "attn_v", "attn_out"]:
            matrix(at + name, WIDTH, WIDTH)
        matrix(at + "ffn_up", FFN, WIDTH)
        matrix(at + "ffn_down", WIDTH, FFN)
    norm("v.post_ln")
    tensors["mm.soft_emb_norm.weight"] = (1 + 0.3 * random.standard_normal(WIDTH)).astype(np.float32)
    # The checkpoint's orientation: as many rows as the encoder is wide.
    tensors["mm.input_projection.weight"] = (random.standard_normal((WIDTH, OUT)) * WIDTH**-0.5 * 3).astype(np.float16)
    return tensors


def write_tower(path, tensors):
    out = gguf.GGUFWriter(path, "clip")
    out.add_string("general.type", "mmproj")
    out.add_bool("clip.has_vision_encoder", True)
    out.add_string("clip.projector_type", "gemma3")
    out.add_bool("clip.use_gelu", True)
    for name, value in {
        "image_size": SIDE, "patch_size": PATCH, "embedding_length": WIDTH, "feed_forward_length": FFN, "block_count": LAYERS,
        "attention.head_count": HEADS, "projection_dim": OUT,
    }.items():
        out.add_uint32(f"clip.vision.{name}", value)
    out.add_float32("clip.vision.attention.layer_norm_epsilon", EPS)
    out.add_array("clip.vision.image_mean", [0.5] * 3)
    out.add_array("clip.vision.image_std", [0.5] * 3)
    for name, values in tensors.items():
        out.add_tensor(name, values)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def tower(tensors, pixels):
    """Soft tokens and intermediate values of an image of bytes [side, side, 3]."""
    w = {name: values.astype(np.float64) for name, values in tensors.items()}
    lin = lambda x, name: x @ w[f"{name}.weight"].T + w[f"{name}.bias"]
    taps = {}
    x = (pixels.astype(np.float64) / 255 - 0.5) / 0.5
    # Patches row by row, each in the order channel, row, column.
    x = x.reshape(GRID, PATCH, GRID, PATCH, 3).transpose(0, 2, 4, 1, 3).reshape(GRID * GRID, -1)
    x = x @ w["v.patch_embd.weight"].reshape(WIDTH, -1).T + w["v.patch_embd.bias"] + w["v.position_embd.weight"]
    taps["patch_embed"] = x
    head = WIDTH // HEADS
    for layer in range(LAYERS):
        at = f"v.blk.{layer}."
        y = layer_norm(x, w[at + "ln1.weight"], w[at + "ln1.bias"])
        q, k, v = (lin(y, at + name).reshape(-1, HEADS, head) for name in ["attn_q", "attn_k", "attn_v"])
        scores = softmax(np.einsum("ihe,jhe->hij", q, k) / np.sqrt(head))
        o = np.einsum("hij,jhe->ihe", scores, v).reshape(-1, WIDTH)
        x = x + lin(o, at + "attn_out")
        y = layer_norm(x, w[at + "ln2.weight"], w[at + "ln2.bias"])
        x = x + lin(gelu(lin(y, at + "ffn_up")), at + "ffn_down")
        taps[f"layer.{layer}.out"] = x
    x = layer_norm(x, w["v.post_ln.weight"], w["v.post_ln.bias"])
    cells = GRID // POOL
    x = x.reshape(cells, POOL, cells, POOL, WIDTH).mean((1, 3)).reshape(cells * cells, WIDTH)
    taps["pooled"] = x
    taps["embeddings"] = rms(x, w["mm.soft_emb_norm.weight"]) @ w["mm.input_projection.weight"]
    return taps


class Decoder:
    """Gemma 3's text model, from a GGUF file."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        key = lambda name: reader.fields[f"gemma3.{name}"].contents()
        self.w = {t.name: gguf.dequantize(t.data, t.tensor_type).astype(np.float64) for t in reader.tensors}
        self.layers, self.heads, self.kv = key("block_count"), key("attention.head_count"), key("attention.head_count_kv")
        self.head, self.window = key("attention.key_length"), key("attention.sliding_window")
        self.pattern, self.factor = key("attention.sliding_window_pattern"), key("rope.scaling.factor")
        self.bases = key("rope.freq_base_swa"), key("rope.freq_base")

    def rope(self, x, is_global):
        half = self.head // 2
        angles = np.arange(len(x))[:, None] * self.bases[is_global] ** (-2 * np.arange(half) / self.head)
        angles = angles / (self.factor if is_global else 1)
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def logits(self, ids, rows=None, blocks=(), bidirectional=lambda is_global: True):
        """Logits of all positions; rows replace the embeddings of blocks of positions, which attend to each other."""
        w = self.w
        h = w["token_embd.weight"][ids] * np.float64(np.float32(w["token_embd.weight"].shape[1] ** 0.5))
        n = len(ids)
        distance = np.arange(n)[:, None] - np.arange(n)[None]
        same = np.zeros((n, n), bool)
        for first, end in blocks:
            h[first:end] = rows
            same[first:end, first:end] = True
        for layer in range(self.layers):
            at = lambda name: w[f"blk.{layer}.{name}.weight"]
            is_global = (layer + 1) % self.pattern == 0
            x = rms(h, at("attn_norm"))
            q = rms((x @ at("attn_q").T).reshape(n, self.heads, self.head), at("attn_q_norm"))
            k = rms((x @ at("attn_k").T).reshape(n, self.kv, self.head), at("attn_k_norm"))
            v = (x @ at("attn_v").T).reshape(n, self.kv, self.head)
            q, k = self.rope(q, is_global), self.rope(k, is_global)
            group = self.heads // self.kv
            k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
            seen = (distance >= 0) & (is_global | (distance < self.window)) | same & bidirectional(is_global)
            scores = np.einsum("ihe,jhe->hij", q, k) * self.head**-0.5
            scores = softmax(np.where(seen, scores, -np.inf))
            o = np.einsum("hij,jhe->ihe", scores, v).reshape(n, -1)
            h = h + rms(o @ at("attn_output").T, at("post_attention_norm"))
            x = rms(h, at("ffn_norm"))
            m = (gelu(x @ at("ffn_gate").T) * (x @ at("ffn_up").T)) @ at("ffn_down").T
            h = h + rms(m, at("post_ffw_norm"))
        return rms(h, w["output_norm.weight"]) @ w["token_embd.weight"].T


def picture():
    """90 × 61 pixels: resizing shrinks one side and enlarges the other."""
    y, x = np.mgrid[0:61, 0:90]
    waves = [np.sin(x / 7 + y / 11), np.cos(x / 3 - y / 5), np.sin(x * y / 300)]
    image = np.stack([127 + 120 * wave for wave in waves], -1).astype(np.uint8)
    image[20:35, 30:60] = [250, 10, 60]
    return Image.fromarray(image)


def main(folder):
    decoder = Decoder(f"{folder}/gguf/micro-g3p-BF16.gguf")
    known = load_file(f"{folder}/text/micro-g3p-BF16.safetensors")
    for name in ["short", "medium", "long"]:
        ids, places = known[f"{name}.ids"], known[f"{name}.positions"]
        worst = np.abs(decoder.logits(ids)[places] - known[f"{name}.logits"]).max()
        print(f"text, {name}: {worst:.1e} from transformers")
        assert worst < 1e-3

    tensors = tower_tensors()
    write_tower(f"{folder}/gguf/micro-g3p-mmproj-F16.gguf", tensors)
    image = picture()
    image.save(f"{folder}/media/micro-g3p-image.png")
    pixels = np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BILINEAR))
    stored = {"image.pixels": pixels.copy()}
    taps = tower(tensors, pixels)
    for name, values in taps.items():
        stored[f"image.{name}"] = values.astype(np.float32)
    rows = taps["embeddings"]
    count = len(rows)
    random = np.random.default_rng(5)
    text = lambda n: list(random.integers(100, 600, n))
    media = [IMAGE_OPEN] + [PLACE] * count + [IMAGE_CLOSE]
    for name, ids in {"one": [2] + text(12) + media + text(14), "two": [2] + text(3) + media + text(4) + media + text(9)}.items():
        starts = [i + 1 for i, id in enumerate(ids) if id == IMAGE_OPEN]
        blocks = [(start, start + count) for start in starts]
        logits = decoder.logits(ids, rows, blocks)
        # Masks that are wrong on all layers, or on the global ones alone, would show.
        image = slice(*blocks[0])
        wrong = [decoder.logits(ids, rows, blocks, mask)[image] for mask in (lambda _: False, lambda is_global: not is_global)]
        apart = [float(np.abs(other - logits[image]).max()) for other in wrong]
        greedy, margin, grown = [], [], list(ids)
        for _ in range(16):
            last = decoder.logits(grown, rows, blocks)[-1]
            best = np.sort(last)[-2:]
            greedy.append(int(last.argmax()))
            margin.append(best[1] - best[0])
            grown.append(greedy[-1])
        print(f"{name}: with other masks the image's logits differ by {apart}, smallest margin {min(margin):.1e}")
        assert min(apart) > 0.1
        best = np.sort(logits, -1)[:, -2:]
        print(f"  smallest margin of all positions {np.min(best[:, 1] - best[:, 0]):.1e}")
        stored |= {
            f"{name}.ids": np.array(ids, np.uint32), f"{name}.logits_tail": logits[-4:].astype(np.float32),
            f"{name}.logits_image": logits[image].astype(np.float32),
            f"{name}.argmax": logits.argmax(-1).astype(np.uint32), f"{name}.greedy": np.array(greedy, np.uint32),
        }
    save_file(stored, f"{folder}/media/micro-g3p-vision.safetensors")


main(sys.argv[1])
