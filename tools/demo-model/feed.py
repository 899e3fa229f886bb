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
    ids, mine = data.padded(rows)
    return {"ids": ids, "mine": mine, "pixels": np.stack(pixels), "size": size}, cases


def sound_batch(tokenizer, rng, count, clips, held=False, several=0.25):
    """Clips of one batch, with their conversations; held-out ones are left as they were spoken."""
    rows, waves, cases = [], [], []
    for _ in range(count):
        samples, digits = features.spoken(clips, rng, several)
        samples = samples.astype(np.float32) if held else features.augmented(samples, rng)
        question, answer = data.clip_question(rng, digits)
        soft = features.frames(len(samples))[1]
        rows.append(data.encode(tokenizer, data.media_parts(rng, "audio", soft, question, answer)))
        waves.append(samples)
        cases.append({"answer": answer, "digits": digits})
    ids, mine = data.padded(rows)
    lengths = [len(wave) for wave in waves]
    stacked = np.zeros((count, max(lengths)), np.float16)
    for i, wave in enumerate(waves):
        stacked[i, : len(wave)] = wave
    return {"ids": ids, "mine": mine, "waves": stacked, "lengths": lengths}, cases


def to_device(batch, device):
    """A batch as tensors, media preprocessed there."""
    out = {"ids": torch.from_numpy(batch["ids"]).to(device).long(), "mine": torch.from_numpy(batch["mine"]).to(device)}
    if "pixels" in batch:
        cut, positions, _ = features.patches(torch.from_numpy(batch["pixels"]).to(device), batch["size"])
        out["media"] = {"pixel_values": cut, "image_position_ids": positions}
    if "waves" in batch:
        filters = torch.from_numpy(features.mel_filters()).to(device)
        mel, mask = features.log_mel(torch.from_numpy(batch["waves"]).to(device).float(), batch["lengths"], filters)
        out["media"] = {"input_features": mel, "input_features_mask": mask}
    return out


def text_worker(queue, tokenizer, seed, options):
    for ids, mine in data.text_batches(tokenizer, seed, options.tokens):
        queue.put({"ids": ids, "mine": mine})


def picture_worker(queue, tokenizer, seed, options):
    rng = random.Random(seed)
    while True:
        queue.put(picture_batch(tokenizer, rng, options.pictures)[0])


def sound_worker(queue, tokenizer, seed, options):
    rng = random.Random(seed)
    clips = features.by_voice([clip for clip in voices.load(options.clips) if not clip["held_out"]])
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

    def step(self, device):
        """One batch of each kind."""
        return {kind: to_device(queue.get(), device) for kind, queue in self.queues.items()}

    def waiting(self):
        return {kind: queue.qsize() for kind, queue in self.queues.items()}

    def stop(self):
        for process in self.processes:
            process.terminate()
