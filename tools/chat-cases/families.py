"""Renders conversations with the templates of other families: `families.py TEMPLATES OUT.jsonl` (needs Jinja2).

TEMPLATES is a folder with the released models' templates as FAMILY.jinja; they are not part of this repository. The environment
is Hugging Face's, without `strftime_now`. A line of OUT is a conversation and, for each family, its prompt or null where the template refuses.
"""

import json
import random
import sys
from pathlib import Path

from jinja2.exceptions import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

BOS = {"llama3": "<|begin_of_text|>", "llama31": "<|begin_of_text|>"}
NO_TOOLS = {"llama3", "qwen2"}


def environment():
    def raise_exception(message):
        raise TemplateError(message)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    env.filters["tojson"] = lambda x, indent=None: json.dumps(x, ensure_ascii=False, indent=indent)
    env.globals["raise_exception"] = raise_exception
    return env


def tool(rng):
    kinds = ["string", "number", "integer", "boolean", "array", "object"]
    properties = {
        name: {"type": rng.choice(kinds), "description": rng.choice(["Where", "é \"quoted\"", "a\nb"])}
        for name in rng.sample(["city", "Unit", "count", "z", "A"], rng.randrange(4))
    }
    function = {"name": rng.choice(["get_weather", "add", "f"]), "description": rng.choice(["Does it", ""])}
    if rng.random() < 0.9:
        function["parameters"] = {"type": "object", "properties": properties, "required": sorted(properties)[:1]}
    return {"type": "function", "function": function}


def arguments(rng):
    values = ["Paris", "é\n\"x\"", 1, -2.5, 1e21, True, None, [1, "a", []], {"b": {"a": 1}}, {}]
    return {key: rng.choice(values) for key in rng.sample(["city", "b", "A", "n"], rng.randrange(4))}


def conversation(rng):
    text = lambda: rng.choice(["Hi", "  spaced out \n", "", "What is 2+2?", "<|im_end|> 中文 😀", "a\n\nb"])
    messages = []
    if rng.random() < 0.4:
        messages.append({"role": "system", "content": text()})
    for _ in range(rng.randrange(1, 4)):
        messages.append({"role": "user", "content": text()})
        for _ in range(rng.choice([0, 0, 1, 2])):
            message = {"role": "assistant", "content": rng.choice([text(), "", "<think>\nhm\n</think>\n\nYes"])}
            if rng.random() < 0.4:
                message["reasoning_content"] = rng.choice(["So\nbe it", "\nhm\n"])
            calls = rng.choice([0, 0, 1, 1, 2])
            if calls:
                message["tool_calls"] = [
                    {"type": "function", "function": {"name": rng.choice(["add", "f"]), "arguments": arguments(rng)}}
                    for _ in range(calls)
                ]
            messages.append(message)
            for _ in range(calls):
                messages.append({"role": "tool", "content": rng.choice(["3", "{\"ok\": true}", "sunny\n"])})
    if rng.random() < 0.5:
        messages.append({"role": "user", "content": text()})
    return {
        "messages": messages,
        "tools": [tool(rng) for _ in range(rng.choice([0, 0, 1, 2]))],
        "thinking": rng.random() < 0.5,
        "add_generation_prompt": rng.random() < 0.8,
    }


def main():
    env = environment()
    templates = {path.stem: env.from_string(path.read_text()) for path in sorted(Path(sys.argv[1]).glob("*.jinja"))}
    rng = random.Random(30)
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        for _ in range(80):
            case = conversation(rng)
            line = dict(case)
            for family, template in templates.items():
                # Where the template knows nothing of tools, the native renderer does more, or refuses.
                tools = case["tools"] or any("tool_calls" in m for m in case["messages"])
                if family in NO_TOOLS and tools:
                    continue
                try:
                    line[family] = template.render(
                        messages=case["messages"],
                        tools=case["tools"] or None,
                        enable_thinking=case["thinking"],
                        add_generation_prompt=case["add_generation_prompt"],
                        bos_token=BOS.get(family, ""),
                    )
                except TemplateError:
                    line[family] = None
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


main()
