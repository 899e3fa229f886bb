"""How the steps and the entropy bound of a DiffusionGemma change what it says: counts, no times.

    python3 tools/settling/settling.py target/release/rullama MODEL.gguf ["a prompt"]

For each schedule, over a few seeds: steps that a block took, and how much of its text stands in the text of the full schedule with the
same seed (1 is all of it). Two seeds of the full schedule are compared likewise: what is left where nothing is shared but the model.
"""

import difflib
import json
import subprocess
import sys

SEEDS = [1, 2, 3]
FULL = (48, 0.1)
SCHEDULES = [(48, 0.1), (24, 0.1), (12, 0.1), (6, 0.1), (48, 0.5), (48, 2.0), (48, 8.0), (12, 8.0)]


def answer(program, model, prompt, schedule, seed):
    steps, bound = schedule
    command = [program, "run", model, prompt, "--device", "cpu", "--json", "--blocks", "1", "--seed", str(seed)]
    command += ["--steps", str(steps), "--entropy-bound", str(bound)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def alike(one, other):
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()


def mean(numbers):
    return sum(numbers) / len(numbers)


def main():
    program, model, *more = sys.argv[1:]
    prompt = more[0] if more else "Why is the sky blue?"
    full = {seed: answer(program, model, prompt, FULL, seed)["text"] for seed in SEEDS}
    print("steps at most | entropy bound | steps taken | text in common with the full schedule")
    for schedule in SCHEDULES:
        made = {seed: answer(program, model, prompt, schedule, seed) for seed in SEEDS}
        taken = mean([one["steps"] for one in made.values()])
        share = mean([alike(made[seed]["text"], full[seed]) for seed in SEEDS])
        print(f"{schedule[0]} | {schedule[1]} | {taken:.1f} | {share:.2f}", flush=True)
    others = [alike(full[a], full[b]) for a in SEEDS for b in SEEDS if a < b]
    print(f"another seed: {mean(others):.2f}")


main()
