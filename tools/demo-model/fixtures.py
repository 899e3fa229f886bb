#!/usr/bin/env python3
"""A handful of held-out pictures and clips with their questions and answers, for the end-to-end tests.

    fixtures.py DIGITS.npz FOLDER       writes PNG and WAV files and media.jsonl (needs Pillow)
"""

import json
import random
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
    for number, group in enumerate(chosen, 1):
        clip = rng.choice(group)
        silence = np.zeros(1600)
        samples = np.concatenate([silence, clip["samples"], silence])
        name = f"digit-{number}.wav"
        with wave.open(str(folder / name), "wb") as writer:
            writer.setnchannels(1)
            writer.setsampwidth(2)
            writer.setframerate(voices.RATE)
            writer.writeframes((samples * 32767).round().astype("<i2").tobytes())
        yield {"file": name, "skill": "spoken digit", "voice": clip["voice"], "question": "Which digit do you hear?", "answer": str(clip["digit"]),
               "check": {"kind": "number", "value": clip["digit"]}}


def main(path, folder):
    folder, rng = Path(folder), random.Random(11)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "media.jsonl", "w", encoding="utf-8") as file:
        for case in [*pictures(rng, folder), *clips(rng, folder, path)]:
            file.write(json.dumps(case) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
