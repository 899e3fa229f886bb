"""Which cases are held out of training: decided by what a case says, never by its place in a list."""

import hashlib

HELD_OUT_PERCENT = 12


def held_out(*content, percent=HELD_OUT_PERCENT):
    """Whether the case with this content belongs to the evaluation and must never be trained on."""
    return bucket(*content) < percent


def bucket(*content):
    """A number below 100 that depends on nothing but the content."""
    text = "\x1f".join(str(part) for part in content)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "little") % 100
