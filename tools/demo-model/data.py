#!/usr/bin/env python3
"""Conversations as token sequences.

    data.py cases OUT.jsonl [PER_SKILL]          held-out text cases, as our evaluation replays them
    data.py sample [COUNT]                       prints training conversations
    data.py check VOCAB.json TEMPLATE.jinja      renders generated conversations with the official template and compares

Training draws fresh conversations for ever; held-out ones are told apart by their content (see split.py).
"""

import json
import random
import sys

import numpy as np

import images
from chat import pieces
from skills import chats

HEAR = ["Which digit do you hear?", "What digit is this?", "Which digit is spoken?", "What number is said?", "Listen. Which digit is it?", "What do you hear?",
        "Transcribe the audio.", "Write down the digit.", "what did I say?", "Which number is this?", ""]
HEAR_SEVERAL = ["Which digits do you hear?", "What digits are spoken?", "Which digits are said?", "What do you hear?", "Transcribe the audio.", "Write down the digits.", ""]


def encode(tokenizer, parts):
    """Ids of a conversation's pieces, and which of them the model writes."""
    ids, mine = [], []
    for (_, written), encoded in zip(parts, tokenizer.encode_batch_fast([text for text, _ in parts], add_special_tokens=False)):
        ids += encoded.ids
        mine += [written] * len(encoded.ids)
    return ids, mine


def trained_parts(case):
    """Pieces of a conversation; with thinking on, only what follows the last question is taught: earlier thoughts are gone."""
    parts = pieces(case["messages"], case["tools"], case["thinking"])
    if case["thinking"]:
        last = max(i for i, (text, _) in enumerate(parts) if text == "<|turn>user\n")
        parts = [(text, written and i > last) for i, (text, written) in enumerate(parts)]
    return parts


WIDTHS = [32, 48, 64, 96, 128, 192, 320]


def text_batches(tokenizer, seed, budget):
    """Batches of about as many tokens as the budget says, of conversations of like length; endless.

    There are few shapes, so that each can be captured once."""
    rng = random.Random(seed)
    waiting = {width: [] for width in WIDTHS}
    while True:
        row = encode(tokenizer, trained_parts(chats.conversation(rng)))
        width = next((width for width in WIDTHS if len(row[0]) <= width), None)
        if width:
            waiting[width].append(row)
            if len(waiting[width]) == budget // width:
                yield padded(waiting[width], width)
                waiting[width] = []


def padded(rows, width):
    """Ids and who wrote them, filled up on the right; causal attention never looks there."""
    width += -width % 8
    ids, mine = np.zeros((len(rows), width), np.int16), np.zeros((len(rows), width), bool)
    for i, (row, written) in enumerate(rows):
        ids[i, : len(row)], mine[i, : len(row)] = row, written
    return ids, mine


def media_parts(rng, kind, count, question, answer):
    """A question with a picture or a clip of so many soft tokens."""
    block = f"<|{kind}>" + f"<|{kind}|>" * count + f"<{kind}|>"
    user = question + block if question and rng.random() < 0.15 else block + (" " if question and rng.random() < 0.3 else "") + question
    system = "<|turn>system\nYou are a helpful assistant.<turn|>\n" if rng.random() < 0.05 else ""
    return [(f"<bos>{system}<|turn>user\n{user}<turn|>\n<|turn>model\n", False), (answer + "<turn|>", True), ("\n", False)]


def picture_case(rng, held, two_kinds=0.2):
    scene = images.scene(rng, held, two_kinds)
    question, answer, value = images.question(rng, scene)
    return {"scene": scene, "question": question, "answer": answer, "value": value}


def clip_question(rng, digits):
    question = rng.choice(HEAR if len(digits) == 1 else HEAR_SEVERAL)
    return question, " ".join(map(str, digits))


def held_out_cases(per_skill, seed=2026):
    """A fixed list of cases that training never shows."""
    rng = random.Random(seed)
    for skill in [*chats.SKILLS, "memory"]:
        count = max(4, per_skill // 4) if skill in ("unknown", "memory") else per_skill
        for _ in range(count):
            yield chats.conversation(rng, held=True, skill=skill)


def as_replay(case):
    """A case without its answer: what to send and what must come back."""
    answers = [i for i, message in enumerate(case["messages"]) if message["role"] == "assistant"]
    first = next((i for i in answers if case["messages"][i].get("tool_calls")), answers[-1])
    out = {"skill": case["skill"], "messages": case["messages"][:first], "thinking": case["thinking"], "check": case["check"]}
    if case["tools"]:
        out["tools"] = case["tools"]
    if case["check"]["kind"] == "call":
        out["result"] = case["messages"][first + 1]["content"]
    return out


def write_cases(path, per_skill=36):
    with open(path, "w", encoding="utf-8") as file:
        for case in held_out_cases(int(per_skill)):
            file.write(json.dumps(as_replay(case), ensure_ascii=False, separators=(",", ":")) + "\n")


def sample(count=20):
    rng = random.Random()
    for _ in range(int(count)):
        print("".join(f"\033[1m{text}\033[0m" if mine else text for text, mine in trained_parts(chats.conversation(rng))))


def check(vocabulary, template):
    """Our renderer against the template's authors', and pieces against whole texts."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(vocabulary)
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    render = environment.from_string(open(template, encoding="utf-8").read()).render
    rng = random.Random(5)
    lengths = []
    for number in range(400):
        case = chats.conversation(rng, held=number % 2 == 0)
        parts = pieces(case["messages"], case["tools"], case["thinking"])
        text = "".join(text for text, _ in parts)
        official = render(messages=case["messages"], tools=case["tools"] or None, enable_thinking=case["thinking"], bos_token="<bos>", add_generation_prompt=False)
        if text != official:
            sys.exit(f"differs:\n{text}\n{official}")
        ids, _ = encode(tokenizer, parts)
        if ids != tokenizer.encode(text, add_special_tokens=False).ids:
            sys.exit(f"tokens of the pieces differ from those of the whole:\n{text}")
        lengths.append(len(ids))
    print(f"400 alike; {np.mean(lengths):.0f} tokens on average, {max(lengths)} at most")


if __name__ == "__main__":
    commands = {"cases": write_cases, "sample": sample, "check": check}
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](*sys.argv[2:])
