"""Clients of PyPI against the server at RULLAMA_URL with the demo model."""

import json
import os
from pathlib import Path

import anthropic
import ollama
import openai
import pytest

URL = os.environ["RULLAMA_URL"]
MODEL = "demo"
SUM = "What is 23 + 45?"
MESSAGES = [{"role": "user", "content": SUM}]
CALM = {"temperature": 0, "num_predict": 60}
GOLDENS = Path(__file__).resolve().parents[2] / "goldens" / "demo"
SCHEMA = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"], "additionalProperties": False}


def test_ollama():
    client = ollama.Client(host=URL)
    whole = client.chat(model=MODEL, messages=MESSAGES, think=False, options=CALM)
    assert "68" in whole.message.content
    pieces = [part.message.content for part in client.chat(model=MODEL, messages=MESSAGES, think=False, options=CALM, stream=True)]
    assert "".join(pieces) == whole.message.content
    shaped = client.chat(model=MODEL, messages=MESSAGES, think=False, options={**CALM, "num_predict": 300}, format=SCHEMA)
    assert isinstance(json.loads(shaped.message.content)["sum"], int)
    seen = client.chat(
        model=MODEL, think=False, options=CALM,
        messages=[{"role": "user", "content": "What is in the picture?", "images": [(GOLDENS / "picture-1.png").read_bytes()]}],
    )
    assert "green triangles" in seen.message.content
    assert MODEL in [entry.model for entry in client.list().models]
    assert client.show(MODEL).modelinfo["general.architecture"] == "gemma4"
    assert len(client.embed(model="embedder", input=["a cat", "a dog"]).embeddings) == 2
    with pytest.raises(ollama.ResponseError) as error:
        client.chat(model="nobody", messages=MESSAGES)
    assert error.value.status_code == 404


def test_openai():
    client = openai.OpenAI(base_url=f"{URL}/v1", api_key="any", max_retries=0)
    request = dict(model=MODEL, messages=MESSAGES, temperature=0, max_tokens=60, reasoning_effort="none")
    whole = client.chat.completions.create(**request)
    text = whole.choices[0].message.content
    assert "68" in text
    with client.chat.completions.stream(**request) as stream:
        assert stream.get_final_completion().choices[0].message.content == text
    with client.responses.stream(model=MODEL, input=SUM, temperature=0, reasoning={"effort": "none"}) as stream:
        assert stream.get_final_response().output_text == text
    assert len(client.embeddings.create(model="embedder", input=["a", "b"]).data) == 2
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(**{**request, "model": "nobody"})


def test_anthropic():
    client = anthropic.Anthropic(base_url=URL, api_key="any", max_retries=0)
    # Later releases of the SDK leave the parameter out of their own signature.
    request = dict(model=MODEL, messages=MESSAGES, max_tokens=60, extra_body={"temperature": 0})
    whole = client.messages.create(**request)
    assert "68" in whole.content[0].text
    with client.messages.stream(**request) as stream:
        assert stream.get_final_message().content[0].text == whole.content[0].text
    counted = client.messages.count_tokens(model=MODEL, messages=MESSAGES)
    assert counted.input_tokens == whole.usage.input_tokens + whole.usage.cache_read_input_tokens
    with pytest.raises(anthropic.NotFoundError):
        client.messages.create(**{**request, "model": "nobody"})
