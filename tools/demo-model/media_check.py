#!/usr/bin/env python3
"""Held-out pictures and clips with the transformers model on a CPU, in one pass each.

    media_check.py MODEL.safetensors VOCAB.json DIGITS.npz [COUNT]

The right answer is given and every token of it compared with the model's best: all alike is what greedy decoding would have written.
"""

import random
import sys

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

import model as models
import voices
from checks import answer_right
from feed import media_arguments, picture_batch, sound_batch, to_device


def load(weights, tokenizer):
    net = models.build(tokenizer).eval()
    net.load_state_dict(load_file(weights), strict=False)
    net.tie_weights()
    return net


@torch.no_grad()
def written(net, tokenizer, batch):
    """The best tokens in the places of the answers, and whether they are all right."""
    batch = to_device(batch, "cpu")
    logits = net(input_ids=batch["ids"], use_cache=False, **media_arguments(batch)).logits[:, :-1]
    wanted = batch["labels"][:, 1:]
    for best, right in zip(logits.argmax(-1), wanted):
        here = right >= 0
        yield tokenizer.decode(best[here].tolist(), skip_special_tokens=True), bool((best[here] == right[here]).all())


def main(weights, vocabulary, clips, count=32):
    torch.set_num_threads(1)
    tokenizer, rng = Tokenizer.from_file(vocabulary), random.Random(78)
    net = load(weights, tokenizer)
    held = voices.by_voice([clip for clip in voices.load(clips) if clip["held_out"]])
    for name, several in (("spoken digit", 0), ("spoken digits in a row", 1)):
        batch, cases = sound_batch(tokenizer, rng, int(count), held, True, several)
        report(name, [(case, text, exact, exact) for case, (text, exact) in zip(cases, written(net, tokenizer, batch))])
    for name, two_kinds in (("pictures", 0), ("pictures of two kinds", 1)):
        results = []
        for _ in range(max(1, int(count) // 16)):
            batch, cases = picture_batch(tokenizer, rng, 16, True, two_kinds, 70)
            for case, (text, exact) in zip(cases, written(net, tokenizer, batch)):
                results.append((case, text, exact, answer_right({"kind": "contains", "value": case["value"]}, text)))
        report(name, results)


def report(name, results):
    for case, text, exact, good in results:
        if not exact:
            print(f"  {case['answer']!r} came as {text!r}")
    share = lambda place: sum(result[place] for result in results) / len(results)
    print(f"{name}: {share(3):.1%} right, {share(2):.1%} word for word, of {len(results)}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    main(*sys.argv[1:])
