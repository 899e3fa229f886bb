"""Writes the character classes that pre-tokenizers need and Rust's standard library lacks: `tables.py ROOT`.

A table is a list of ranges: for each the distance from the end of the one before and the length, as LEB128.
The categories are those of the PyPI package `regex` (made with 2026.11.9).
"""

import sys
from pathlib import Path

import regex


def table(category: str) -> bytes:
    pattern = regex.compile(rf"\p{{{category}}}")
    out, end, start = bytearray(), 0, None

    def number(n):
        while n >= 128:
            out.append(n & 127 | 128)
            n >>= 7
        out.append(n)

    for code in range(0x110001):
        inside = code < 0x110000 and not 0xD800 <= code < 0xE000 and pattern.match(chr(code)) is not None
        if inside and start is None:
            start = code
        elif not inside and start is not None:
            number(start - end)
            number(code - start)
            start, end = None, code
    return bytes(out)


folder = Path(sys.argv[1]) / "crates/tokenizer/src"
for name, category in [("letters", "L"), ("punctuation", "P")]:
    (folder / f"{name}.bin").write_bytes(table(category))
