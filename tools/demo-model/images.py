#!/usr/bin/env python3
"""Pictures of simple shapes: one kind of shape in one colour, one to six of them, or two kinds.

    images.py sheet OUT.png      a page of samples (needs Pillow)

Held out are whole combinations of shape, colour, count and background. Without the background, what is held out could be learnt from the
answers alone: a word that never follows two others.
"""

import random
import sys

import numpy as np

from split import held_out

SHAPES = ["circle", "square", "triangle", "star", "cross", "ring"]
COLOURS = {"red": (215, 40, 40), "green": (40, 160, 60), "blue": (45, 80, 215), "yellow": (240, 210, 40), "orange": (245, 140, 30),
           "purple": (140, 60, 170), "black": (25, 25, 25), "white": (245, 245, 245), "pink": (250, 140, 190)}
COUNTS = ["no", "one", "two", "three", "four", "five", "six"]
BACKGROUNDS = {"light": (235, 235, 230), "grey": (128, 128, 128), "dark": (45, 48, 55), "sky": (190, 215, 240), "mint": (195, 230, 205), "sand": (225, 205, 165)}
TOO_CLOSE = {("white", "light"), ("black", "dark"), ("yellow", "sand"), ("white", "sky"), ("blue", "dark"), ("green", "mint"), ("white", "mint"), ("purple", "dark"),
             ("pink", "sand"), ("orange", "sand"), ("white", "sand")}
CANVASES = [(96, 96), (128, 128), (192, 192), (160, 120), (120, 160)]


def plural(shape):
    return shape + ("es" if shape == "cross" else "s")


def named(count, colour, shape):
    return f"{COUNTS[count]} {colour} {shape if count == 1 else plural(shape)}"


def scene(rng, held, two_kinds=0.2):
    """What a picture shows: groups of (count, colour, shape), a background and a canvas."""
    while True:
        groups = []
        for _ in range(2 if rng.random() < two_kinds else 1):
            groups.append((rng.randint(1, 6), rng.choice(list(COLOURS)), rng.choice(SHAPES)))
        if len(groups) == 2:
            if groups[0][1] == groups[1][1] or groups[0][2] == groups[1][2]:
                continue
            groups = [(1 + count % 3, colour, shape) for count, colour, shape in groups]
        background = rng.choice(list(BACKGROUNDS))
        if any((colour, background) in TOO_CLOSE for _, colour, _ in groups):
            continue
        apart = [held_out("image", *group, background) for group in groups]
        if all(apart) if held else not any(apart):
            return {"groups": groups, "background": background, "canvas": rng.choice(CANVASES)}


def question(rng, picture):
    """A question for a scene, its answer and what must be in it."""
    groups = picture["groups"]
    if len(groups) == 2:
        (n, colour, shape), other = groups if rng.random() < 0.5 else groups[::-1]
        kind = rng.randrange(3)
        if kind == 0:
            ask = rng.choice(["How many {0} are there?", "Count the {0}.", "how many {0} do you see?"]).format(rng.choice([plural(shape), f"{colour} {plural(shape)}"]))
            return ask, named(n, colour, shape).capitalize() + ".", [COUNTS[n]]
        if kind == 1:
            ask = rng.choice(["What colour are the {0}?", "Which colour do the {0} have?", "What color are the {0}?"]).format(plural(shape))
            return ask, named(n, colour, shape).capitalize() + ".", [colour]
        first, second = sorted(groups, key=lambda group: SHAPES.index(group[2]))
        answer = f"{named(*first)} and {named(*second)}.".capitalize()
        return rng.choice(WHAT), answer, [COUNTS[first[0]], first[1], first[2], COUNTS[second[0]], second[1], second[2]]
    n, colour, shape = groups[0]
    answer = named(n, colour, shape).capitalize() + "."
    kind = rng.randrange(6)
    if kind == 0:
        return rng.choice(["How many {0} are there?", "How many shapes are there?", "How many {0} do you see?", "Count the {0}."]).format(plural(shape)), answer, [COUNTS[n]]
    if kind == 1:
        return rng.choice(["What colour is it?", "What colour are they?", "Which colour do you see?", "What color is the shape?", "What colour is the {0}?"]).format(shape), answer, [colour]
    if kind == 2:
        return rng.choice(["What shape is this?", "Which shape do you see?", "Name the shape.", "What shape is it?"]), answer, [shape]
    return rng.choice(WHAT), answer, [COUNTS[n], colour, shape]


WHAT = ["What is in the picture?", "What do you see?", "Describe the picture.", "What is this?", "What is in this image?", "Describe this image.", "What does the image show?",
        "what is this", "What can you see?", "Describe the image.", "Tell me what you see.", "Name shape, colour and count.", "What's in this picture?", ""]


def layout(rng, count, width, height):
    """Places that do not overlap: centres, radii."""
    least = min(width, height)
    while True:
        placed = []
        for _ in range(200):
            radius = least * rng.uniform(0.09, 0.16 if count > 3 else 0.22 if count > 1 else 0.36)
            x, y = rng.uniform(radius * 1.15, width - radius * 1.15), rng.uniform(radius * 1.15, height - radius * 1.15)
            if all((x - u) ** 2 + (y - v) ** 2 > (1.25 * (radius + r)) ** 2 for u, v, r in placed):
                placed.append((x, y, radius))
                if len(placed) == count:
                    return placed


def inside(shape, x, y):
    """How far inside a shape of radius 1 points are: positive inside, in units of the radius."""
    if shape == "circle":
        return 1 - np.hypot(x, y)
    if shape == "ring":
        return 0.25 - np.abs(np.hypot(x, y) - 0.75)
    if shape == "square":
        return 0.85 - np.maximum(np.abs(x), np.abs(y))
    if shape == "cross":
        ax, ay = np.abs(x), np.abs(y)
        return np.maximum(np.minimum(0.32 - ax, 1 - ay), np.minimum(0.32 - ay, 1 - ax))
    if shape == "triangle":
        return np.minimum(np.minimum(0.5 - y, 0.5 + y / 2 - 0.866 * x), 0.5 + y / 2 + 0.866 * x)
    # A star: between its points the edge runs towards an inner radius.
    angle = np.mod(np.arctan2(x, -y), 2 * np.pi / 5) - np.pi / 5
    radius = np.hypot(x, y)
    inner, outer = 0.42, 1.05
    u, v = radius * np.cos(angle), radius * np.abs(np.sin(angle))
    # The edge from the inner corner (angle 0) to the tip (angle 36 degrees).
    tip = (outer * np.cos(np.pi / 5), outer * np.sin(np.pi / 5))
    ex, ey = tip[0] - inner, tip[1]
    return (ey * (inner - u) + ex * v) / np.hypot(ex, ey)


def draw(picture, seed, grains=(0, 0, 2, 4)):
    """The picture as an array of height, width and RGB bytes, with one of these strengths of noise."""
    rng = random.Random(seed)
    width, height = picture["canvas"]
    ys, xs = np.mgrid[0:height, 0:width] + 0.5
    base = np.array(BACKGROUNDS[picture["background"]], float) + rng.uniform(-8, 8)
    pixels = np.broadcast_to(base, (height, width, 3)).copy()
    members = [(colour, shape) for count, colour, shape in picture["groups"] for _ in range(count)]
    rng.shuffle(members)
    for (colour, shape), (x, y, radius) in zip(members, layout(rng, len(members), width, height)):
        turn = rng.uniform(-0.2, 0.2)
        rows = slice(max(0, int(y - 1.2 * radius)), int(y + 1.2 * radius) + 2)
        columns = slice(max(0, int(x - 1.2 * radius)), int(x + 1.2 * radius) + 2)
        u, v = (xs[rows, columns] - x) / radius, (ys[rows, columns] - y) / radius
        u, v = u * np.cos(turn) - v * np.sin(turn), u * np.sin(turn) + v * np.cos(turn)
        cover = np.clip(inside(shape, u, v) * radius + 0.5, 0, 1)[..., None]
        tint = np.array(COLOURS[colour], float) + np.array([rng.uniform(-12, 12) for _ in range(3)])
        pixels[rows, columns] = pixels[rows, columns] * (1 - cover) + tint * cover
    grain = rng.choice(grains)
    if grain:
        pixels += np.random.default_rng(seed).normal(0, grain, pixels.shape)
    return np.clip(np.round(pixels), 0, 255).astype(np.uint8)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "sheet":
        sys.exit(__doc__)
    from PIL import Image
    rng = random.Random(3)
    page = Image.new("RGB", (8 * 200, 6 * 200), "white")
    for i in range(48):
        page.paste(Image.fromarray(draw(scene(rng, False), i)), (i % 8 * 200, i // 8 * 200))
    page.save(sys.argv[2])
