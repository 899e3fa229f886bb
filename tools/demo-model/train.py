#!/usr/bin/env python3
"""Trains the demo model on one GPU within a time limit and evaluates it on held-out cases.

    train.py --vocab VOCAB.json --clips DIGITS.npz --out FOLDER --minutes 20

Worker processes generate data while the GPU computes. The learning rate follows the clock, so that a run always ends in time;
a checkpoint is written every two minutes, and --resume goes on from it.
"""

import argparse
import json
import math
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers.models.gemma4 import modeling_gemma4

import model as models
from evaluate import evaluate
from feed import Feed, media_arguments, to_device
from passes import Passes

WARM_UP = 200
WEIGHTS = {"text": 1.0, "picture": 1.0, "sound": 0.5}
SHARD = 14 << 20


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--clips", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--checkpoint", help="where checkpoints go; the output folder unless given")
    parser.add_argument("--minutes", type=float, default=20, help="wall clock for everything, evaluation included")
    parser.add_argument("--tokens", type=int, default=32768, help="text tokens in a step")
    parser.add_argument("--pictures", type=int, default=96)
    parser.add_argument("--sounds", type=int, default=96)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--cases", type=int, default=100, help="held-out cases per skill at the end")
    parser.add_argument("--reserve", type=float, default=45, help="seconds kept for the last evaluation")
    parser.add_argument("--least-steps", type=int, default=0, help="give up after a minute with fewer steps: something is wrong with the machine")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--weights", help="a safetensors file to start from, with a new schedule")
    parser.add_argument("--media", nargs="+", default=["picture", "sound"], help="what accompanies the text, step by step in turn")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def fused_norm(self, hidden):
    """The same norm in one kernel."""
    weight = self.weight.float() if self.with_scale else None
    return F.rms_norm(hidden.float(), hidden.shape[-1:], weight, self.eps).type_as(hidden)


def optimizer_of(model, rate, device):
    """Weight decay for matrices only."""
    matrices = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    rest = [parameter for parameter in model.parameters() if parameter.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.97), fused=device == "cuda")


def set_bounds(model, batches):
    """The towers' clamps, as in the released models: a little beyond what the linears see."""
    linears = models.clipped_linears(model)
    seen = {linear: [math.inf, -math.inf, math.inf, -math.inf] for linear in linears}

    def look(linear, inputs, output):
        bounds = seen[linear]
        for place, value in ((0, inputs[0]), (2, output)):
            bounds[place] = min(bounds[place], value.min().item())
            bounds[place + 1] = max(bounds[place + 1], value.max().item())

    hooks = [linear.register_forward_hook(look) for linear in linears]
    with torch.no_grad():
        for batch in batches:
            model.model(input_ids=batch["ids"], use_cache=False, **media_arguments(batch))
    for hook in hooks:
        hook.remove()
    for linear, bounds in seen.items():
        margin = 0.25 * max(map(abs, bounds))
        for name, bound, side in zip(("input_min", "input_max", "output_min", "output_max"), bounds, (-1, 1, -1, 1)):
            getattr(linear, name).fill_(bound + side * margin)


def save(model, folder):
    """The weights in parts that are easy to carry."""
    part, size, number = {}, 0, 0
    tensors = {name: weight.detach().float().cpu().contiguous() for name, weight in model.state_dict().items() if name != "lm_head.weight"}
    for name, weight in tensors.items():
        if part and size + weight.nbytes > SHARD:
            save_file(part, folder / f"weights-{number}.safetensors")
            part, size, number = {}, 0, number + 1
        part[name], size = weight, size + weight.nbytes
    save_file(part, folder / f"weights-{number}.safetensors")


class Run:
    """One training run: the model, its optimizer and how far it is."""

    def __init__(self, options, tokenizer):
        self.options = options
        self.model = models.build(tokenizer, options.seed).to(options.device)
        self.optimizer = optimizer_of(self.model, options.rate, options.device)
        self.passes = Passes(self.model, options.device)
        if options.weights:
            self.model.load_state_dict(load_file(options.weights), strict=False)
            models.open_bounds(self.model)
        self.step, self.done = 0, 0.0
        self.path = Path(options.checkpoint or options.out) / "checkpoint.pt"
        if options.resume and self.path.exists():
            state = torch.load(self.path, map_location=options.device)
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.done = state["step"], state["done"]

    def checkpoint(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step, "done": self.done}
        torch.save(state, self.path)

    def rate(self, fraction):
        """Warm-up, then a cosine down to a fiftieth over what this run has left."""
        return self.options.rate * min(1, (self.step + 1) / WARM_UP) * (0.02 + 0.98 * (1 + math.cos(math.pi * fraction)) / 2)

    def train_step(self, batches, fraction):
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(fraction)
        # Capturing spoils gradients, so all of it comes first.
        if any([self.passes.prepare(kind, batch, WEIGHTS[kind]) for kind, batch in batches.items()]):
            self.optimizer.zero_grad(set_to_none=False)
        losses = {kind: self.passes.add(kind, batch, WEIGHTS[kind]) for kind, batch in batches.items()}
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)
        self.step += 1
        return losses


def main():
    start = time.monotonic()
    options = arguments()
    tokenizer = Tokenizer.from_file(options.vocab)
    # Workers are forked before the GPU is touched.
    feed = Feed(options, tokenizer)
    torch.backends.cuda.matmul.allow_tf32 = True
    modeling_gemma4.Gemma4RMSNorm.forward = fused_norm
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    run = Run(options, tokenizer)
    print(f"{models.parameters(run.model)} parameters, step {run.step}, {time.monotonic() - start:.0f} s to start", flush=True)
    begin, limit = time.monotonic(), options.minutes * 60 - options.reserve
    already, saved, told, halfway = run.done, begin, begin, False
    while (elapsed := time.monotonic() - start) < limit:
        # A resumed run goes on where the schedule stood.
        run.done = already + (1 - already) * elapsed / limit
        losses = run.train_step(feed.step(options.media[run.step % len(options.media)], options.device), run.done)
        now = time.monotonic()
        if now - told > 10:
            told = now
            print(f"{now - start:.0f} s, step {run.step}, " + ", ".join(f"{kind} {loss.item():.4f}" for kind, loss in losses.items())
                  + f", queues {feed.waiting()}", flush=True)
        if options.least_steps and now - start > 60:
            if run.step < options.least_steps:
                raise SystemExit(f"only {run.step} steps in a minute")
            options.least_steps = 0
        if now - saved > 120:
            saved = now
            run.checkpoint()
        if not halfway and elapsed > limit / 2 and options.minutes > 12:
            halfway = True
            print(json.dumps(evaluate(run.model, tokenizer, options.clips, 25, options.device)), flush=True)
            save(run.model, out)
    print(f"trained {run.step} steps in {time.monotonic() - start:.0f} s", flush=True)
    run.done = 1.0
    set_bounds(run.model, [to_device(feed.queues[kind].get(), options.device) for kind in ("picture", "sound") for _ in range(4)])
    feed.stop()
    save(run.model, out)
    results = evaluate(run.model, tokenizer, options.clips, options.cases, options.device, failures=out / "failures.json")
    (out / "results.json").write_text(json.dumps(results, indent=1))
    print(json.dumps(results), f"{time.monotonic() - start:.0f} s in all", flush=True)


if __name__ == "__main__":
    main()
