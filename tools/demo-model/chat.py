#!/usr/bin/env python3
"""Gemma 4's chat format (the small models' template), in pieces that say who writes them.

    chat.py check GOLDEN.jsonl...    compares with conversations rendered by the official template

A conversation becomes a list of (text, written by the model) pieces: training teaches the model's pieces only.
"""

import json
import sys

QUOTE = '<|"|>'


def pieces(messages, tools=(), thinking=False, preserve_thinking=False, generate=False):
    """The conversation as the template writes it; joined, the texts are the prompt."""
    out = [("<bos>", False)]
    first = messages[0]["role"] if messages else None
    rest = messages
    if thinking or tools or first in ("system", "developer"):
        text = "<|turn>system\n" + ("<|think|>\n" if thinking else "")
        if first in ("system", "developer"):
            content = messages[0]["content"]
            text += content.strip() if isinstance(content, str) else "".join(part["text"].strip() + " " for part in content)
            rest = messages[1:]
        text += "".join(f"<|tool>{declaration(tool)}<tool|>" for tool in tools)
        out.append((text + "<turn|>\n", False))
    last_user = max((i for i, m in enumerate(rest) if m["role"] == "user"), default=-1)
    previous_role, state = None, None
    for i, message in enumerate(rest):
        if message["role"] == "tool":
            continue
        model = message["role"] == "assistant"
        if not (model and previous_role == "assistant"):
            role = "model" if model else message["role"]
            out.append((f"<|turn>{role}\n", False))
        keep = i > last_user or (preserve_thinking and message.get("tool_calls"))
        state = turn(out, rest, i, keep, thinking)
        previous_role = message["role"]
    if generate:
        if state not in ("response", "call"):
            out.append(("<|turn>model\n", False))
        elif state == "response" and thinking:
            out.append(("<|channel>thought\n", False))
    return out


def turn(out, rest, i, keep_thought, thinking):
    """One message and the tool results that follow it; says whether a call or a result came last."""
    message = rest[i]
    role = "model" if message["role"] in ("assistant", "model") else message["role"]
    mine = role == "model"
    state = None
    thought = message.get("reasoning") or message.get("reasoning_content")
    if thought and keep_thought:
        # After a tool's result the host opens the thought, elsewhere the model does.
        opened = thinking and i > 0 and rest[i - 1]["role"] == "tool"
        out.append(("<|channel>thought\n", mine and not opened))
        out.append((thought + "\n<channel|>", mine))
    calls = message.get("tool_calls") or []
    for call in calls:
        function = call["function"]
        out.append((f"<|tool_call>call:{function['name']}{{{pairs(function.get('arguments'))}}}<tool_call|>", mine))
        state = "call"
    results = list(tool_results(message, rest, i, calls))
    for index, (name, value, media) in enumerate(results):
        # The model hands over with the first marker; the host writes all that follows.
        out.append(("<|tool_response>", mine and index == 0))
        body = pairs(value) if isinstance(value, dict) else f"value:{literal(value)}"
        out.append((f"response:{name}{{{body}}}<tool_response|>{media}", False))
        state = "response"
    body = rendered(message.get("content"), mine)
    if body:
        out.append((body, mine))
    following = next((m["role"] for m in rest[i + 1:] if m["role"] != "tool"), None)
    if state == "call":
        out.append(("<|tool_response>", mine))
    elif mine and following == "assistant" and (not calls or results):
        pass
    elif results and not body.strip() and following is None:
        pass
    else:
        out.append(("<turn|>", mine))
        out.append(("\n", False))
    return state


def tool_results(message, rest, i, calls):
    if message.get("tool_responses"):
        for result in message["tool_responses"]:
            yield result.get("name") or "unknown", result["response"], ""
        return
    if not calls:
        return
    for result in rest[i + 1:]:
        if result["role"] != "tool":
            return
        name = result.get("name") or "unknown"
        for call in calls:
            if call.get("id") == result.get("tool_call_id"):
                name = call["function"]["name"]
        content = result["content"]
        if isinstance(content, str):
            yield name, content, ""
        else:
            text = "".join(part["text"] for part in content if part["type"] == "text")
            yield name, text, "".join(placeholder(part) for part in content if part["type"] != "text")


def rendered(content, mine):
    if content is None:
        return ""
    clean = without_thoughts if mine else str.strip
    if isinstance(content, str):
        return clean(content)
    return "".join(clean(part["text"]) if part["type"] == "text" else placeholder(part) for part in content)


def placeholder(part):
    kinds = {"image": "<|image|>", "image_url": "<|image|>", "audio": "<|audio|>", "input_audio": "<|audio|>", "video": "<|video|>"}
    return kinds.get(part["type"], "")


def without_thoughts(text):
    return "".join(part.split("<|channel>")[0] for part in text.split("<channel|>")).strip()


def sorted_items(mapping):
    return sorted(mapping.items(), key=lambda item: item[0].lower())


def pairs(mapping):
    return ",".join(f"{key}:{literal(value)}" for key, value in sorted_items(mapping or {}))


def literal(value, quoted_keys=False):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return QUOTE + value + QUOTE
    if isinstance(value, dict):
        quote = QUOTE if quoted_keys else ""
        return "{" + ",".join(f"{quote}{k}{quote}:{literal(v, quoted_keys)}" for k, v in sorted_items(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(literal(item, quoted_keys) for item in value) + "]"
    return str(value)


def declaration(tool):
    function = tool["function"]
    out = f"declaration:{function['name']}{{description:{QUOTE}{function['description']}{QUOTE}"
    schema = function.get("parameters")
    if schema:
        parts = []
        if schema.get("properties"):
            parts.append("properties:{" + properties(schema["properties"]) + "}")
        if schema.get("required"):
            parts.append("required:[" + quoted(schema["required"]) + "]")
        if schema.get("type"):
            parts.append(f"type:{QUOTE}{schema['type'].upper()}{QUOTE}")
        out += ",parameters:{" + ",".join(parts) + "}"
    return out + "}"


def quoted(names):
    return ",".join(QUOTE + name + QUOTE for name in names)


def properties(schema):
    return ",".join(f"{key}:{{{one_property(value)}}}" for key, value in sorted_items(schema))


def one_property(schema):
    kind = str(schema.get("type") or "").upper()
    parts = []
    if schema.get("description"):
        parts.append(f"description:{QUOTE}{schema['description']}{QUOTE}")
    if kind == "STRING" and schema.get("enum"):
        parts.append("enum:" + literal(schema["enum"]))
    if kind == "OBJECT":
        parts.append("properties:{" + properties(schema.get("properties") or {}) + "}")
        if schema.get("required"):
            parts.append("required:[" + quoted(schema["required"]) + "]")
    parts.append(f"type:{QUOTE}{kind}{QUOTE}")
    return ",".join(parts)


def check(paths):
    """Every golden conversation, except those whose schemas use more than this generator ever writes."""
    same = differing = 0
    for path in paths:
        for line in open(path, encoding="utf-8"):
            case = json.loads(line)
            try:
                text = "".join(text for text, _ in pieces(case["messages"], case["tools"], case["thinking"],
                                                          case["preserve_thinking"], case["add_generation_prompt"]))
            except (KeyError, TypeError, AttributeError) as problem:
                text = repr(problem)
            if text == case["small"]:
                same += 1
            else:
                differing += 1
                print(f"{case['name']}\n  is     {text!r}\n  should {case['small']!r}")
    print(f"{same} of {same + differing} alike")


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] != "check":
        sys.exit(__doc__)
    check(sys.argv[2:])
