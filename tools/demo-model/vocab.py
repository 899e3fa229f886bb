#!/usr/bin/env python3
"""The vocabulary: a small BPE in Gemma 4's manner.

    vocab.py OUT.json      learns merges from generated conversations and writes a tokenizer file

Spaces are U+2581, merges are listed, unknown characters fall back to byte tokens, digits and punctuation stand alone, and
the special tokens have their real names; those below 107 have their real ids too.
"""

import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from chat import pieces
from skills import chats, talk

SIZE = 3072
BLANK = "\u2581"
LOW = {0: "<pad>", 1: "<eos>", 2: "<bos>", 3: "<unk>", 4: "<mask>", 46: "<|tool>", 47: "<tool|>", 48: "<|tool_call>", 49: "<tool_call|>",
       50: "<|tool_response>", 51: "<tool_response|>", 52: '<|"|>', 98: "<|think|>", 100: "<|channel>", 101: "<channel|>", 105: "<|turn>",
       106: "<turn|>"}
MEDIA = ["<|image>", "<|audio>", "<|image|>", "<|audio|>", "<image|>", "<audio|>", "<|video|>"]
# Shown in detokenised text, because the parser of answers needs them; the other special tokens are control tokens.
VISIBLE = {"<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", '<|"|>'}
SPECIAL = [*LOW.values(), *MEDIA]
NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 3, 4, 6
CONVERSATIONS = 60000


def texts(seed=1, count=CONVERSATIONS):
    """What the merges are learnt from: generated conversations without their markers."""
    rng = random.Random(seed)
    for _ in range(count):
        case = chats.conversation(rng)
        text = "".join(text for text, _ in pieces(case["messages"], case["tools"], case["thinking"]))
        for marker in SPECIAL:
            text = text.replace(marker, "\n")
        yield text


def alphabet():
    letters = {chr(code) for code in range(33, 127)} | {BLANK}
    for greeting, introduction in talk.LANGUAGES.values():
        letters |= set(greeting + introduction)
    return sorted(letters - {" "})


def learnt_merges():
    learner = Tokenizer(models.BPE())
    learner.normalizer = normalizers.Replace(" ", BLANK)
    # A word with its blank is one unit; digits, marks and newlines stay alone.
    learner.pre_tokenizer = pre_tokenizers.Split(Regex(rf"{BLANK}?\p{{L}}+|[^\p{{L}}]"), "isolated")
    trainer = trainers.BpeTrainer(vocab_size=SIZE + 1000, initial_alphabet=alphabet(), show_progress=False, limit_alphabet=400)
    learner.train_from_iterator(texts(), trainer)
    import json
    return [tuple(pair) for pair in json.loads(learner.to_str())["model"]["merges"]]


def build():
    tokens, merges = [LOW.get(i) for i in range(107)], []
    unused = iter(f"<unused{i}>" for i in range(200))
    tokens = [token or next(unused) for token in tokens]
    for unit, longest in (("\n", 4), (BLANK, 8)):
        runs = [unit * n for n in range(1, longest + 1)]
        tokens += runs if unit == "\n" else runs[1:]
        # The longest first, as in the real vocabulary.
        merges += [(runs[n - 2], unit) for n in range(longest, 1, -1)] + [(unit, run) for run in reversed(runs[:-1])]
    tokens += [f"<0x{byte:02X}>" for byte in range(256)]
    tokens += [letter for letter in alphabet() if letter not in tokens]
    known = set(tokens)
    for left, right in learnt_merges():
        if len(tokens) == SIZE - len(MEDIA):
            break
        if left in known and right in known:
            merges.append((left, right))
            if left + right not in known:
                known.add(left + right)
                tokens.append(left + right)
    tokens += MEDIA
    merges = list(dict.fromkeys(merges))
    return assemble(tokens, merges)


def assemble(tokens, merges):
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", BLANK)
    tokenizer.decoder = decoders.Sequence([decoders.Replace(BLANK, " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    return tokenizer


def token_type(token):
    if token in VISIBLE:
        return USER_DEFINED
    if token in SPECIAL:
        return CONTROL
    return BYTE if token.startswith("<0x") and len(token) == 6 else NORMAL


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    tokenizer = build()
    tokenizer.save(sys.argv[1])
    print(f"{tokenizer.get_vocab_size()} tokens")
