"""Processes that make training batches, and the queues they fill."""

import multiprocessing
import random

import numpy as np
import torch

import data
import features
import images
import voices

# Soft tokens a picture may take; the released models' smallest budget most often.
BUDGETS = [70] * 6 + [140] * 2 + [280]
# Tokens of a conversation around its soft tokens; samples of a clip.
TEXT_BESIDE = 56
LONGEST_SINGLE, LONGEST_SEVERAL = 25600, 64000
FILTERS = features.mel_filters()


def picture_batch(tokenizer, rng, count, held=False, two_kinds=0.2, budget=None):
    """Pictures of one canvas and one target size, with their conversations."""
    budget = budget or rng.choice(BUDGETS)
    canvas = rng.choice(images.CANVASES)
    size = features.target_size(*canvas, budget)
    if budget == 70 and canvas[0] == canvas[1] and rng.random() < 0.2:
        size = (336, 336)
    count = max(1, count * 70 // budget)
    soft = size[0] // features.CELL * (size[1] // features.CELL)
    rows, pixels, cases = [], [], []
    for _ in range(count):
        case = data.picture_case(rng, held, two_kinds)
        case["scene"]["canvas"] = canvas
        rows.append(data.encode(tokenizer, data.media_parts(rng, "image", soft, case["question"], case["answer"])))
        pixels.append(images.draw(case["scene"], rng.getrandbits(48)))
        cases.append(case)
    ids, mine = data.padded(rows, soft + TEXT_BESIDE)
    return {"ids": ids, "mine": mine, "pixels": np.stack(pixels), "size": size}, cases


def sound_batch(tokenizer, rng, count, clips, held=False, several=0.25):
    """Clips of one batch, one digit each or several each, with their conversations; held-out ones are left as they were spoken."""
    several = rng.random() < several
    longest = LONGEST_SEVERAL if several else LONGEST_SINGLE
    rows, cases, lengths = [], [], []
    waves = np.zeros((count, longest), np.float16)
    while len(rows) < count:
        samples, digits = features.spoken(clips, rng, several)
        samples = samples.astype(np.float32) if held else features.augmented(samples, rng)
        if len(samples) > longest:
            continue
        question, answer = data.clip_question(rng, digits)
        soft = features.frames(len(samples))[1]
        waves[len(rows), : len(samples)] = samples
        rows.append(data.encode(tokenizer, data.media_parts(rng, "audio", soft, question, answer)))
        lengths.append(len(samples))
        cases.append({"answer": answer, "digits": digits})
    ids, mine = data.padded(rows, features.frames(longest)[1] + TEXT_BESIDE)
    return {"ids": ids, "mine": mine, "waves": waves, "lengths": lengths}, cases


def to_device(batch, device):
    """A batch as tensors, media preprocessed there."""
    ids = torch.from_numpy(batch["ids"]).to(device, non_blocking=True).long()
    mine = torch.from_numpy(batch["mine"]).to(device, non_blocking=True)
    out = {"ids": ids, "labels": torch.where(mine, ids, -100)}
    if "pixels" in batch:
        out["patches"], out["positions"], out["grid"] = features.patches(torch.from_numpy(batch["pixels"]).to(device), batch["size"])
    if "waves" in batch:
        filters = torch.from_numpy(FILTERS).to(device)
        out["mel"], out["frames"] = features.log_mel(torch.from_numpy(batch["waves"]).to(device).float(), batch["lengths"], filters)
    return out


def media_arguments(batch):
    """What transformers' own forward pass takes for a batch with media."""
    if "patches" in batch:
        return {"pixel_values": batch["patches"], "image_position_ids": batch["positions"]}
    return {"input_features": batch["mel"], "input_features_mask": batch["frames"]}


def text_worker(queue, tokenizer, seed, options):
    for ids, mine in data.text_batches(tokenizer, seed, options.tokens):
        queue.put({"ids": ids, "mine": mine})


def picture_worker(queue, tokenizer, seed, options):
    rng = random.Random(seed)
    while True:
        queue.put(picture_batch(tokenizer, rng, options.pictures)[0])


def sound_worker(queue, tokenizer, seed, options):
    rng = random.Random(seed)
    clips = voices.by_voice([clip for clip in voices.load(options.clips) if not clip["held_out"]])
    while True:
        queue.put(sound_batch(tokenizer, rng, options.sounds, clips)[0])


class Feed:
    """Queues of batches by kind."""

    def __init__(self, options, tokenizer):
        media = max(1, options.workers // 4)
        plan = [("text", text_worker, max(1, options.workers - 2 * media)), ("picture", picture_worker, media), ("sound", sound_worker, media)]
        context = multiprocessing.get_context("fork")
        self.queues, self.processes = {}, []
        for kind, worker, count in plan:
            self.queues[kind] = context.Queue(32)
            for number in range(count):
                seed = options.seed * 1000003 + len(self.processes) + 1 + number
                process = context.Process(target=worker, args=(self.queues[kind], tokenizer, seed, options), daemon=True)
                process.start()
                self.processes.append(process)

    def step(self, media, device):
        """A batch of text and one of the given kind of media."""
        return {kind: to_device(self.queues[kind].get(), device) for kind in ("text", media)}

    def waiting(self):
        return {kind: queue.qsize() for kind, queue in self.queues.items()}

    def stop(self):
        for process in self.processes:
            process.terminate()
