"""Pictures and clips as the towers take them: the preprocessing of the released models, on tensors."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from model import PATCH, POOL
from voices import RATE

FRAME, HOP, FFT, BINS = 320, 160, 512, 128
CELL = PATCH * POOL


def target_size(width, height, budget):
    """The size a picture is stretched to, so that it nearly fills the budget of soft tokens."""
    factor = math.sqrt(budget * CELL * CELL / (width * height))
    return math.floor(factor * width / CELL) * CELL, math.floor(factor * height / CELL) * CELL


def patches(pixels, size):
    """From bytes (batch, height, width, 3) to patches in 0..1, their positions, and columns and rows of patches."""
    width, height = size
    scaled = F.interpolate(pixels.permute(0, 3, 1, 2).float(), (height, width), mode="bicubic", antialias=True, align_corners=False)
    scaled = scaled.round().clamp(0, 255) / 255
    columns, rows = width // PATCH, height // PATCH
    cut = scaled.reshape(-1, 3, rows, PATCH, columns, PATCH).permute(0, 2, 4, 3, 5, 1).reshape(len(pixels), rows * columns, -1)
    ys, xs = torch.meshgrid(torch.arange(rows, device=pixels.device), torch.arange(columns, device=pixels.device), indexing="ij")
    positions = torch.stack([xs, ys], -1).reshape(1, -1, 2).expand(len(pixels), -1, -1)
    return cut.contiguous(), positions.contiguous(), (columns, rows)


def mel_filters():
    to_mel = lambda hertz: 2595 * np.log10(1 + hertz / 700)
    edges = 700 * (10 ** (np.linspace(0, to_mel(RATE / 2), BINS + 2) / 2595) - 1)
    frequencies = np.linspace(0, RATE / 2, FFT // 2 + 1)[:, None]
    rising = (frequencies - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - frequencies) / (edges[2:] - edges[1:-1])
    return np.maximum(0, np.minimum(rising, falling)).astype(np.float32)


def frames(samples):
    """How many frames, and how many soft tokens, a clip of so many samples gives."""
    count = (samples - HOP - 1) // HOP + 1
    return count, -(-(-(-count // 2)) // 2)


def log_mel(waves, lengths, filters):
    """Log-mel features of clips padded with zeros, and a mask of the frames that are real."""
    padded = F.pad(waves, (HOP, FRAME))
    windows = padded.unfold(1, FRAME, HOP)
    window = torch.hann_window(FRAME, periodic=True, device=waves.device)
    spectrum = torch.fft.rfft(windows * window, FFT).abs()
    features = torch.log(spectrum @ filters + 0.001)
    counts = torch.tensor([frames(length)[0] for length in lengths]).to(waves.device)
    width = frames(waves.shape[1])[0]
    mask = torch.arange(width, device=waves.device)[None] < counts[:, None]
    return features[:, :width] * mask[..., None], mask


def augmented(samples, rng):
    """Another take of a clip: other pitch and speed, loudness, echo and noise."""
    speed = rng.uniform(0.8, 1.25)
    places = np.arange(0, len(samples) - 1, speed)
    samples = np.interp(places, np.arange(len(samples)), samples)
    if rng.random() < 0.3:
        delay = rng.randint(200, 1600)
        echo = np.zeros(len(samples) + delay)
        echo[: len(samples)] = samples
        echo[delay:] += samples * rng.uniform(0.05, 0.3)
        samples = echo
    if rng.random() < 0.5:
        # A tilted spectrum: another microphone.
        tilt = rng.uniform(-0.6, 0.6)
        samples = np.append(samples[0], samples[1:] + tilt * samples[:-1])
    samples = samples / np.abs(samples).max(initial=1e-6) * rng.uniform(0.1, 0.95)
    noise = np.random.default_rng(rng.getrandbits(32)).normal(0, 1, len(samples))
    if rng.random() < 0.6:
        samples = samples + noise * 10 ** rng.uniform(-4, -1.7)
    return samples.clip(-1, 1).astype(np.float32)


def spoken(clips, rng, several):
    """One clip, or two or three in a row with pauses, within silence: the samples and the digits."""
    count = rng.choice([2, 3]) if several else 1
    voice = rng.choice(clips)
    chosen = [rng.choice(voice) for _ in range(count)]
    parts = [np.zeros(rng.randint(0, 3200))]
    for clip in chosen:
        parts += [clip["samples"], np.zeros(rng.randint(1200, 4800) if count > 1 else rng.randint(0, 3200))]
    return np.concatenate(parts), [clip["digit"] for clip in chosen]
