#!/usr/bin/env python3
"""Replays held-out text cases with our own engine.

    check.py MODEL.gguf VOCAB.json CASES.jsonl RULLAMA [DEVICE]

Prompts are rendered and tokenised here; `rullama eval --greedy` continues them.
"""

import concurrent.futures
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from safetensors.numpy import load_file
from tokenizers import Tokenizer

import data
from chat import pieces
from checks import answer_right, right

# Tokens enough for a right answer; a thought takes more.
LONGEST = {"number": 32, "letters": 24, "contains": 48, "story": 64, "call": 48}
LONGEST_THOUGHT = 72


def continued(settings, prompt, longest):
    """What the model writes after a prompt, as text with its markers."""
    model, tokenizer, binary, device = settings
    ids = data.encode(tokenizer, prompt)[0]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "ids.json").write_text(json.dumps(ids))
        command = [binary, "eval", model, "--device", device, "--ids-file", f"{folder}/ids.json", "--greedy", str(longest), "--out", f"{folder}/out.safetensors"]
        subprocess.run(command, check=True, capture_output=True)
        greedy = load_file(f"{folder}/out.safetensors")["greedy"].tolist()
    ends = {tokenizer.token_to_id(token) for token in ("<turn|>", "<eos>", "<|tool_response>")}
    end = next((i for i, token in enumerate(greedy) if token in ends), len(greedy))
    return tokenizer.decode(greedy[:end], skip_special_tokens=False)


def replay(settings, case):
    """(skill, whether it was right) for each answer a case asks for, and the outputs."""
    messages, tools, thinking = case["messages"], case.get("tools", []), case["thinking"]
    longest = LONGEST[case["check"]["kind"]] + LONGEST_THOUGHT * thinking
    output = continued(settings, pieces(messages, tools, thinking, generate=True), longest)
    results = [(case["skill"] + (", thinking" if thinking else ""), right(case["check"], thinking, output), output)]
    if case["check"]["kind"] == "call":
        call = case["check"]["value"]
        asked = {"role": "assistant", "tool_calls": [{"function": call}], **({"reasoning": f"I call {call['name']}."} if thinking else {})}
        answered = {"role": "tool", "name": call["name"], "content": case["result"]}
        output = continued(settings, pieces([*messages, asked, answered], tools, thinking, generate=True), longest)
        good = answer_right({"kind": "contains", "value": case["check"]["then"]}, output.split("<channel|>")[-1])
        results.append(("tool results", good, output))
    return results


def main(model, vocabulary, cases, binary, device="cpu"):
    settings = (model, Tokenizer.from_file(vocabulary), binary, device)
    tally = {}
    with open(cases, encoding="utf-8") as file:
        replays = [json.loads(line) for line in file]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for case, results in zip(replays, pool.map(lambda case: replay(settings, case), replays)):
            for skill, good, output in results:
                tally.setdefault(skill, []).append(good)
                print(".", end="", flush=True)
                if not good:
                    print(f"wrong ({skill}): {case['messages'][-1]['content']!r} gave {output!r}")
    for skill, results in sorted(tally.items()):
        print(f"{skill}: {sum(results)} of {len(results)} ({sum(results) / len(results):.1%})")


if __name__ == "__main__":
    if len(sys.argv) not in (5, 6):
        sys.exit(__doc__)
    main(*sys.argv[1:])
