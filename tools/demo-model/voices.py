#!/usr/bin/env python3
"""Spoken digits from free speech synthesisers.

    voices.py build OUT.npz     speaks all digits with all voices (needs espeak-ng, flite and festival)

Clips are 16 kHz, trimmed and mu-law coded, so that some thousands of them stay small. Whole voices are held out:
an espeak variant, or a speaker of the other synthesisers, is either trained on or evaluated on, never both.
"""

import ctypes
import io
import random
import subprocess
import sys
import tempfile
import wave
from pathlib import Path

import numpy as np

from split import bucket

RATE = 16000
WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
ACCENTS = ["en-us", "en", "en-gb-scotland", "en-gb-x-rp", "en-us-nyc", "en-029", "en-gb-x-gbclan", "en-gb-x-gbcwmd"]
VARIANTS = """Alex Alicia Andrea Andy Annie AnxiousAndy Denis Diogo Gene Gene2 Henrique Hugo Jacky Lee Marco Mario
Michael Mike Nguyen RicishayMax RicishayMax2 RicishayMax3 Storm Tweaky UniRobot adam anika anikaRobot announcer antonio
aunty belinda benjamin boris caleb croak david ed edward edward2 f1 f2 f3 f4 f5 grandma grandpa gustave iven iven2 iven3
iven4 john kaukovalta klatt klatt2 klatt3 klatt4 klatt5 klatt6 linda m1 m2 m3 m4 m5 m6 m7 m8 marcelo max michel miguel
norbert pablo paul pedro quincy rob robert robosoft robosoft2 robosoft3 robosoft4 robosoft5 robosoft6 robosoft7
robosoft8 sandro shelby steph steph2 steph3 travis victor whisper whisperf zac""".split()
FLITE = ["kal", "kal16", "awb", "rms", "slt"]
FESTIVAL = ["kal_diphone", "ked_diphone", "cmu_us_slt_arctic_hts"]
# Two speakers of the sampled synthesisers are never heard in training, besides an eighth of espeak's variants.
HELD_OUT_SPEAKERS = {"flite rms", "festival ked_diphone"}


def voice_held_out(voice):
    synthesiser, name = voice.split(" ")
    if synthesiser == "espeak":
        return bucket("voice", name.split("+")[1]) < 12
    return voice in HELD_OUT_SPEAKERS


def voices():
    """All voices, and how many takes of each digit to record with them."""
    for variant in VARIANTS:
        first = bucket("accent", variant)
        for step in (0, 3):
            yield f"espeak {ACCENTS[(first + step) % len(ACCENTS)]}+{variant}", 2
    yield from ((f"flite {name}", 5) for name in FLITE)
    yield from ((f"festival {name}", 8) for name in FESTIVAL)


def takes_of(voice, takes, rng):
    """Every digit so many times: (digit, samples at 16 kHz in -1..1)."""
    synthesiser, name = voice.split(" ")
    speak = {"espeak": espeak, "flite": flite, "festival": festival}[synthesiser]
    wanted = [digit for digit in range(10) for _ in range(takes)]
    return [(digit, trimmed(resampled(*sound))) for digit, sound in zip(wanted, speak(name, [WORDS[digit] for digit in wanted], rng))]


class Espeak:
    """The library instead of the program: starting a process per word takes longer than speaking."""

    SYNCHRONOUS, RATE, PITCH = 2, 1, 3

    def __init__(self):
        self.library = ctypes.CDLL("libespeak-ng.so.1")
        self.rate = self.library.espeak_Initialize(self.SYNCHRONOUS, 0, None, 0)
        self.parts = []
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)

        def collect(samples, count, _events):
            if samples and count:
                self.parts.append(np.array(samples[:count], np.float64) / 32768)
            return 0

        self.callback = kind(collect)
        self.library.espeak_SetSynthCallback(self.callback)

    def speak(self, voice, words, rng):
        if self.library.espeak_SetVoiceByName(voice.encode()):
            raise ValueError("espeak has no such voice")
        for word in words:
            self.library.espeak_SetParameter(self.RATE, rng.randint(120, 190), 0)
            self.library.espeak_SetParameter(self.PITCH, rng.randint(25, 75), 0)
            self.parts.clear()
            text = word.encode()
            self.library.espeak_Synth(text, len(text) + 1, 0, 0, 0, 1, None, None)
            self.library.espeak_Synchronize()
            yield self.rate, np.concatenate(self.parts)


def espeak(name, words, rng):
    global ENGINE
    ENGINE = ENGINE or Espeak()
    return ENGINE.speak(name, words, rng)


ENGINE = None


def flite(name, words, rng):
    for word in words:
        command = ["flite", "-voice", name, "--setf", f"duration_stretch={rng.uniform(0.85, 1.3):.2f}", "-t", word, "-o", "/dev/stdout"]
        yield read_wav(subprocess.run(command, capture_output=True, check=True).stdout)


def festival(name, words, rng):
    """One run for all words of a voice."""
    with tempfile.TemporaryDirectory() as folder:
        script = [f"(voice_{name})"]
        for index, word in enumerate(words):
            script.append(f"(Parameter.set 'Duration_Stretch {rng.uniform(0.85, 1.3):.2f})")
            script.append(f"(utt.save.wave (utt.synth (Utterance Text \"{word}\")) \"{folder}/{index}.wav\" 'riff)")
        subprocess.run(["festival", "--pipe"], input="\n".join(script).encode(), capture_output=True, check=True)
        return [read_wav(Path(f"{folder}/{index}.wav").read_bytes()) for index in range(len(words))]


def read_wav(data):
    # The lengths of a WAV written to a pipe are wrong: everything after the header is samples.
    with wave.open(io.BytesIO(data)) as reader:
        rate, channels = reader.getframerate(), reader.getnchannels()
    start = data.index(b"data") + 8
    data = data[start:]
    samples = np.frombuffer(data[: len(data) // 2 * 2], "<i2").astype(np.float64) / 32768
    return rate, samples[:: channels]


def resampled(rate, samples, to=RATE):
    """Band-limited, through the spectrum; clips are short."""
    if rate == to:
        return samples
    length = round(len(samples) * to / rate)
    spectrum = np.fft.rfft(samples)
    bins = length // 2 + 1
    kept = np.zeros(bins, complex)
    common = min(bins, len(spectrum))
    kept[:common] = spectrum[:common]
    return np.fft.irfft(kept, length) * (length / len(samples))


def trimmed(samples, margin=480):
    loud = np.flatnonzero(np.abs(samples) > 0.02 * np.abs(samples).max(initial=1e-9))
    if not len(loud):
        return samples
    samples = samples[max(0, loud[0] - margin): loud[-1] + margin]
    return samples / np.abs(samples).max(initial=1e-9) * 0.7


def to_mu_law(samples):
    coded = np.sign(samples) * np.log1p(255 * np.abs(samples).clip(0, 1)) / np.log(256)
    return np.round((coded + 1) * 127.5).astype(np.uint8)


def from_mu_law(coded):
    linear = coded.astype(np.float32) / 127.5 - 1
    return (np.sign(linear) * np.expm1(np.abs(linear) * np.log(256)) / 255).astype(np.float32)


def load(path):
    """A list of clips: dicts of samples, digit, voice and whether the voice is held out."""
    with np.load(path, allow_pickle=False) as stored:
        bounds, coded, names = stored["bounds"], stored["coded"], stored["voices"]
        digits, owners = stored["digits"], stored["owners"]
    clips = []
    for index, digit in enumerate(digits):
        voice = str(names[owners[index]])
        samples = from_mu_law(coded[bounds[index]: bounds[index + 1]])
        clips.append({"samples": samples, "digit": int(digit), "voice": voice, "held_out": voice_held_out(voice)})
    return clips


def by_voice(clips):
    voices = {}
    for clip in clips:
        voices.setdefault(clip["voice"], []).append(clip)
    return list(voices.values())


def build(out):
    rng = random.Random(6)
    coded, digits, owners, names = [], [], [], []
    for voice, takes in voices():
        try:
            clips = takes_of(voice, takes, rng)
        except (OSError, subprocess.CalledProcessError, ValueError, wave.Error) as problem:
            print(f"left out {voice}: {problem}", file=sys.stderr)
            continue
        for digit, samples in clips:
            coded.append(to_mu_law(samples))
            digits.append(digit)
            owners.append(len(names))
        names.append(voice)
    bounds = np.cumsum([0] + [len(clip) for clip in coded])
    np.savez_compressed(out, coded=np.concatenate(coded), bounds=bounds, digits=np.array(digits, np.uint8),
                        owners=np.array(owners, np.uint16), voices=np.array(names))
    seconds = bounds[-1] / RATE
    held = sum(map(voice_held_out, names))
    print(f"{len(digits)} clips, {len(names)} voices ({held} held out), {seconds:.0f} s")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "build":
        sys.exit(__doc__)
    build(sys.argv[2])
