"""Accuracy on held-out cases, by greedy decoding with the transformers model."""

import json
import random

import numpy as np
import torch

import data
import voices
from chat import pieces
from checks import answer_right, right
from feed import media_arguments, picture_batch, sound_batch, to_device

LONGEST = 100


@torch.no_grad()
def greedy(model, tokenizer, prompts, media=None, device="cuda", longest=LONGEST):
    """Continuations of prompts (lists of ids), as text with its markers; rows are filled on the right and never seen there."""
    stop = {tokenizer.token_to_id(token) for token in ("<turn|>", "<eos>", "<|tool_response>")}
    lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
    width = int(lengths.max()) + longest
    ids = torch.zeros((len(prompts), width), dtype=torch.long, device=device)
    for i, prompt in enumerate(prompts):
        ids[i, : len(prompt)] = torch.tensor(prompt)
    alive = torch.ones(len(prompts), dtype=torch.bool, device=device)
    ends = torch.tensor(sorted(stop), device=device)
    for _ in range(longest):
        # Finished rows are left out; with media they stay, since their pictures and clips are given in order.
        rows = torch.arange(len(prompts), device=device) if media else alive.nonzero()[:, 0]
        used = ids[rows, : int(lengths[rows].max())]
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            inner = model.model if media else model.model.language_model
            hidden = inner(input_ids=used, use_cache=False, **(media or {})).last_hidden_state
            best = model.lm_head(hidden[torch.arange(len(rows), device=device), lengths[rows] - 1]).argmax(-1)
        going = alive[rows] & ~torch.isin(best, ends)
        alive[rows] = going
        if not going.any():
            break
        ids[rows[going], lengths[rows[going]]] = best[going]
        lengths[rows[going]] += 1
    return [tokenizer.decode(ids[i, len(prompt): lengths[i]].tolist(), skip_special_tokens=False) for i, prompt in enumerate(prompts)]


def text_prompts(tokenizer, replays):
    """Ids of what is sent; a tool's result is a second question."""
    out = []
    for replay in replays:
        parts = pieces(replay["messages"], replay.get("tools", []), replay["thinking"], generate=True)
        out.append(data.encode(tokenizer, parts)[0])
    return out


def after_result(case):
    """The same conversation after the right call and its result."""
    return {"messages": case["messages"][:-1], "tools": case["tools"], "thinking": case["thinking"]}


def evaluate(model, tokenizer, clips, per_skill, device, failures=None):
    """Share of right answers by skill, and how many were asked."""
    model.eval()
    tally, wrong = {}, []

    def count(skill, good, case, output):
        tally.setdefault(skill, []).append(bool(good))
        if not good:
            wrong.append({"skill": skill, "case": case, "output": output})

    cases = list(data.held_out_cases(per_skill, seed=77))
    for begin in range(0, len(cases), 256):
        some = cases[begin: begin + 256]
        outputs = greedy(model, tokenizer, text_prompts(tokenizer, [data.as_replay(case) for case in some]), device=device)
        for case, output in zip(some, outputs):
            skill = case["skill"] + (", thinking" if case["thinking"] else "")
            count(skill, right(case["check"], case["thinking"], output), data.as_replay(case), output)
        tools = [case for case in some if case["check"]["kind"] == "call"]
        if tools:
            outputs = greedy(model, tokenizer, text_prompts(tokenizer, map(after_result, tools)), device=device)
            for case, output in zip(tools, outputs):
                answer = output.split("<channel|>")[-1]
                count("tool results", answer_right({"kind": "contains", "value": case["check"]["then"]}, answer), data.as_replay(case), output)
        print(f"evaluated {begin + len(some)} of {len(cases)} text cases", flush=True)
    media(model, tokenizer, clips, per_skill, device, count)
    model.train()
    if failures:
        failures.write_text(json.dumps(wrong[:400], ensure_ascii=False, indent=0))
    return {skill: [round(float(np.mean(results)), 4), len(results)] for skill, results in sorted(tally.items())}


def media(model, tokenizer, clips, per_skill, device, count):
    rng = random.Random(78)
    for name, two_kinds, budget in (("pictures", 0, 70), ("pictures, 280 tokens", 0, 280), ("pictures of two kinds", 1, 70)):
        left = per_skill
        while left > 0:
            batch, cases = picture_batch(tokenizer, rng, 64, True, two_kinds, budget)
            for case, output in zip(cases, continued(model, tokenizer, batch, device)):
                count(name, answer_right({"kind": "contains", "value": case["value"]}, output), {"scene": str(case["scene"]["groups"]), "ask": case["question"]}, output)
            left -= len(cases)
        print(f"evaluated {name}", flush=True)
    held = [clip for clip in voices.load(clips) if clip["held_out"]]
    groups = voices.by_voice(held)
    for name, several in (("spoken digit", 0), ("spoken digits in a row", 1)):
        for _ in range(max(1, per_skill // 32)):
            batch, cases = sound_batch(tokenizer, rng, 64, groups, True, several)
            for case, output in zip(cases, continued(model, tokenizer, batch, device)):
                count(name, output.strip() == case["answer"], case, output)


def continued(model, tokenizer, batch, device):
    """Answers to a media batch, whose own answers are cut off."""
    prompts = [row[: int(mine.argmax())].tolist() for row, mine in zip(batch["ids"], batch["mine"])]
    return greedy(model, tokenizer, prompts, media_arguments(to_device(batch, device)), device, 24)
