#!/usr/bin/env python3
"""Held-out pictures and clips with their questions and answers.

    fixtures.py DIGITS.npz FOLDER       writes them (needs Pillow and the program lame)

A handful as PNG and WAV files with media.jsonl, for the end-to-end tests; many as one file, eval.bin, with eval.jsonl, for the
evaluation.
"""

import io
import json
import random
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
from PIL import Image

import images
import voices

PICTURES = ["What is in the picture?", "Describe the picture.", "What do you see?", "What is this?", "What is in this image?", "Describe the image."]


def pictures(rng, folder):
    for number, question in enumerate(PICTURES, 1):
        scene = images.scene(rng, True, 0) | {"canvas": (192, 192)}
        count, colour, shape = scene["groups"][0]
        name = f"picture-{number}.png"
        Image.fromarray(images.draw(scene, 1000 + number, grains=(0,))).save(folder / name, optimize=True)
        yield {"file": name, "skill": "pictures", "question": question, "answer": images.named(count, colour, shape).capitalize() + ".",
               "check": {"kind": "contains", "value": [images.COUNTS[count], colour, shape]}}


def clips(rng, folder, path):
    """One digit from each of some held-out voices, the sampled speakers among them."""
    groups = voices.by_voice([clip for clip in voices.load(path) if clip["held_out"]])
    chosen = [group for group in groups if not group[0]["voice"].startswith("espeak")] + rng.sample(groups, 5)
    for group in chosen:
        clip = rng.choice(group)
        silence = np.zeros(1600)
        samples = np.concatenate([silence, clip["samples"], silence])
        # "espeak en-029+Michael" is the voice Michael.
        voice = clip["voice"].replace("+", " ").split()[-1]
        name = f"digit-{clip['digit']}-{voice}.wav"
        with wave.open(str(folder / name), "wb") as writer:
            writer.setnchannels(1)
            writer.setsampwidth(2)
            writer.setframerate(voices.RATE)
            writer.writeframes((samples * 32767).round().astype("<i2").tobytes())
        yield {"file": name, "skill": "spoken digit", "voice": clip["voice"], "question": "Which digit do you hear?", "answer": str(clip["digit"]),
               "check": {"kind": "number", "value": clip["digit"]}}


def many_pictures(rng, count):
    """Pictures of all sizes, one kind of shape in each, then two."""
    for number in range(count):
        kinds = int(number % 4 == 3)
        scene = images.scene(rng, True, kinds)
        question, _, value = images.question(rng, scene)
        file = io.BytesIO()
        Image.fromarray(images.draw(scene, 2000 + number, grains=(0,))).save(file, "png", optimize=True)
        yield file.getvalue(), {"kind": "image", "skill": "pictures of two kinds" if kinds else "pictures", "question": question,
                                "check": {"kind": "contains", "value": value}}


def many_clips(rng, path, count):
    """Clips of held-out voices, as MP3."""
    groups = voices.by_voice([clip for clip in voices.load(path) if clip["held_out"]])
    for number in range(count):
        clip = rng.choice(groups[number % len(groups)])
        samples = (clip["samples"].astype(np.float32) * 32767).round().astype("<i2").tobytes()
        command = ["lame", "--quiet", "-r", "-s", "16", "--bitwidth", "16", "-m", "m", "-b", "32", "-t", "-", "-"]
        made = subprocess.run(command, input=samples, capture_output=True, check=True).stdout
        yield made, {"kind": "audio", "skill": "spoken digit", "question": "Which digit do you hear?", "check": {"kind": "number", "value": clip["digit"]}}


def packed(folder, cases):
    """All files in one, and where each lies in it."""
    with open(folder / "eval.bin", "wb") as files, open(folder / "eval.jsonl", "w", encoding="utf-8") as lines:
        for content, case in cases:
            lines.write(json.dumps(case | {"offset": files.tell(), "length": len(content)}) + "\n")
            files.write(content)


def main(path, folder):
    folder, rng = Path(folder), random.Random(11)
    folder.mkdir(parents=True, exist_ok=True)
    packed(folder, [*many_pictures(random.Random(12), 160), *many_clips(random.Random(13), path, 112)])
    with open(folder / "media.jsonl", "w", encoding="utf-8") as file:
        for case in [*pictures(rng, folder), *clips(rng, folder, path)]:
            file.write(json.dumps(case) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
