"""Cuts strings with the regular expressions of pre-tokenizers: `splits.py OUT.json` (needs the PyPI package `regex`).

The expressions are those of the tokenizers' own configuration files; a list is applied one after the other, each inside
the pieces that the ones before left. OUT holds the texts and, for each pre-tokenizer, the lengths of their pieces in characters.
"""

import json
import random
import sys
import unicodedata

import regex

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+"


def llama3(digits):
    return (
        r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|" + digits
        + r"| ?[^\p{White_Space}\p{L}\p{N}]+[\r\n]*|\p{White_Space}*[\r\n]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+"
    )


PATTERNS = {
    "gpt-2": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "llama-bpe": [llama3(r"\p{N}{1,3}")],
    "qwen2": [llama3(r"\p{N}")],
    "default": [
        r"[\p{P}\$\+<=>\^~\|]+",
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})",
        r"\p{N}+",
        r"[0-9][0-9][0-9]",
    ],
}


def split(pieces, pattern):
    for piece in pieces:
        end = 0
        for match in regex.finditer(pattern, piece):
            if match.start() > end:
                yield piece[end : match.start()]
            yield match.group()
            end = match.end()
        if end < len(piece):
            yield piece[end:]


def text(rng):
    """Mostly what patterns tell apart, some of it any character that Unicode has had for long."""

    def any_char():
        while True:
            c = chr(rng.choice([rng.randrange(0x250), rng.randrange(0x3000), rng.randrange(0x20000)]))
            if unicodedata.category(c) not in ("Cn", "Cs", "Co"):
                return c

    parts = [
        lambda: rng.choice([" ", "  ", "   ", "\n", "\r\n", "\t", " \n", "\u00a0", "\u3000", "\u2028", "\x1c"]),
        lambda: rng.choice(["'s", "'T", "'re", "'VE", "'ll", "'Lx", "'", "’s", "n't", "''d", "'ſ"]),
        lambda: "".join(rng.choice("aBcéЖ漢字") for _ in range(rng.randrange(1, 5))),
        lambda: "".join(rng.choice("0123456789½٣Ⅷ") for _ in range(rng.randrange(1, 8))),
        lambda: "".join(rng.choice("!?.,-_+$<=>|^~#@/\\\"({[😀\u0301\u200d") for _ in range(rng.randrange(1, 4))),
        lambda: "".join(any_char() for _ in range(rng.randrange(1, 4))),
    ]
    return "".join(rng.choice(parts)() for _ in range(rng.randrange(1, 9)))


rng = random.Random(30)
texts = [text(rng) for _ in range(500)]
out = {"texts": texts}
for name, patterns in PATTERNS.items():
    out[name] = []
    for t in texts:
        pieces = [t]
        for pattern in patterns:
            pieces = list(split(pieces, pattern))
        assert "".join(pieces) == t
        out[name].append([len(piece) for piece in pieces])
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump(out, file, ensure_ascii=False, separators=(",", ":"))
    file.write("\n")
