"""Writes the code books of the IQ formats, and blocks decoded by the reference, from the PyPI package `gguf`.

usage: code_books.py [--check] ROOT

ROOT is the root of this repository. Books go to crates/gguf/src/quant/NAME.base64, blocks to
goldens/quant_blocks_iq.safetensors. With --check nothing is written: the exit status says whether the files are up to date.
"""

import base64
import json
import struct
import sys
from pathlib import Path

import numpy as np
from gguf import quants

BOOKS = {
    "iq1": quants.IQ1_S,
    "iq2_xxs": quants.IQ2_XXS,
    "iq2_xs": quants.IQ2_XS,
    "iq2_s": quants.IQ2_S,
    "iq3_xxs": quants.IQ3_XXS,
    "iq3_s": quants.IQ3_S,
}


def book(cls) -> str:
    """The book as a bitmap over the numbers whose digits are the elements' levels, least digit first."""
    cls.init_grid()
    levels = [int(level) for level in cls.grid_map]
    numbers = [
        sum(levels.index(int(x)) * len(levels) ** i for i, x in enumerate(entry))
        for entry in cls.grid.reshape(cls.grid_shape)
    ]
    assert numbers == sorted(set(numbers)), "a bitmap can only hold entries in ascending order"
    bitmap = bytearray(-(-len(levels) ** cls.grid_shape[1] // 8))
    for number in numbers:
        bitmap[number // 8] |= 1 << number % 8
    text = base64.b64encode(bitmap).decode()
    return "\n".join(text[at : at + 114] for at in range(0, len(text), 114)) + "\n"


def halves(random, blocks):
    """Scales of any sign and size, subnormal ones among them, none infinite."""
    bits = random.integers(0, 0x7C00, blocks, dtype=np.uint16) | random.integers(0, 2, blocks, dtype=np.uint16) << 15
    bits[:2] = [0, 1]
    return bits.astype("<u2")


def every(random, entries, blocks):
    """Entry numbers, 32 for each block: every one at least once."""
    count = 32 * blocks
    return random.permutation(np.arange(count) % entries).reshape(blocks, 32).astype(np.uint16)


def iq1_s(random, blocks=64):
    numbers = every(random, 2048, blocks)
    high = (numbers >> 8).reshape(blocks, 8, 4)
    top = random.integers(0, 16, (blocks, 8), dtype=np.uint16) << 12
    qh = high[..., 0] | high[..., 1] << 3 | high[..., 2] << 6 | high[..., 3] << 9 | top
    return [halves(random, blocks), numbers.astype(np.uint8), qh.astype("<u2")]


def iq1_m(random, blocks=64):
    numbers = every(random, 2048, blocks)
    high = (numbers >> 8).reshape(blocks, 16, 2).astype(np.uint8)
    shift = random.integers(0, 2, (blocks, 16, 2), dtype=np.uint8) << 3
    qh = (high[..., 0] | shift[..., 0]) | (high[..., 1] | shift[..., 1]) << 4
    d = halves(random, blocks)
    scales = random.integers(0, 0x1000, (blocks, 4), dtype=np.uint16)
    for i in range(4):
        scales[:, i] |= (d >> 4 * i & 15) << 12
    return [numbers.astype(np.uint8), qh, scales.astype("<u2")]


def iq2_xxs(random, blocks=16):
    numbers = every(random, 256, blocks).astype(np.uint8).reshape(blocks, 8, 4)
    signs = random.integers(0, 256, (blocks, 8, 4), dtype=np.uint8)
    return [halves(random, blocks), np.concatenate([numbers, signs], axis=2)]


def iq2_xs(random, blocks=16):
    numbers = every(random, 512, blocks) | random.integers(0, 128, (blocks, 32), dtype=np.uint16) << 9
    return [halves(random, blocks), numbers.astype("<u2"), random.integers(0, 256, (blocks, 8), dtype=np.uint8)]


def blocks() -> bytes:
    """A safetensors file of T.raw and T.deq for each type."""
    random = np.random.default_rng(30)
    tensors = {}
    for make, cls in [
        (iq1_s, quants.IQ1_S),
        (iq1_m, quants.IQ1_M),
        (iq2_xxs, quants.IQ2_XXS),
        (iq2_xs, quants.IQ2_XS),
    ]:
        fields = [np.ascontiguousarray(field) for field in make(random)]
        raw = np.concatenate([field.reshape(len(field), -1).view(np.uint8) for field in fields], axis=1)
        name = make.__name__.upper()
        tensors[f"{name}.raw"] = ("U8", raw)
        tensors[f"{name}.deq"] = ("F32", cls.dequantize(raw).astype("<f4"))
    header, data = {}, b""
    for name, (dtype, array) in tensors.items():
        begin, data = len(data), data + array.tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def main():
    check = "--check" in sys.argv
    root = Path(sys.argv[-1])
    files = {f"crates/gguf/src/quant/{name}.base64": book(cls).encode() for name, cls in BOOKS.items()}
    files["goldens/quant_blocks_iq.safetensors"] = blocks()
    stale = [name for name, content in files.items() if not check or (root / name).read_bytes() != content]
    for name in stale:
        print("stale:" if check else "written:", name)
        if not check:
            (root / name).write_bytes(files[name])
    sys.exit(1 if check and stale else 0)


main()
