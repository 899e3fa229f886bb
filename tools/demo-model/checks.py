"""Whether an answer is right. The evaluation in Rust follows the same rules (see README.md)."""

import re

from chat import pairs

THOUGHT = re.compile(r"^<\|channel>thought\n(.*?)<channel\|>", re.S)


def split_thought(output):
    """Thought (None without one) and answer."""
    match = THOUGHT.match(output)
    return (match[1].strip(), output[match.end():].strip()) if match else (None, output.strip())


def right(check, thinking, output):
    """Whether the model's whole output passes, its thought included."""
    thought, answer = split_thought(output)
    if (thought is not None) != thinking:
        return False
    return answer_right(check, answer)


def answer_right(check, answer):
    kind, value = check["kind"], check["value"]
    if kind == "number":
        numbers = re.findall(r"-?\d+", answer)
        return bool(numbers) and int(numbers[-1]) == value
    if kind == "letters":
        return "".join(re.findall(r"[a-z]", answer.lower())) == value
    if kind == "contains":
        return all(part.lower() in answer.lower() for part in value)
    if kind == "story":
        return len(re.findall(r"[.!?](?:\s|$)", answer)) == 3 and all(re.search(rf"\b{word}\b", answer) for word in value)
    if kind == "call":
        return answer == f"<|tool_call>call:{value['name']}{{{pairs(value['arguments'])}}}<tool_call|>"
    raise ValueError(f"unknown kind of check: {kind}")
