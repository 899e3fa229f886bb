"""LiteLLM against the server at RULLAMA_URL, through Ollama's and OpenAI's APIs."""

import os

import litellm
import pytest

URL = os.environ["RULLAMA_URL"]
MESSAGES = [{"role": "user", "content": "What is 23 + 45?"}]


@pytest.mark.parametrize("name", ["ollama_chat/demo", "openai/demo"])
def test_litellm(name):
    base = URL if name.startswith("ollama") else f"{URL}/v1"
    reply = litellm.completion(model=name, messages=MESSAGES, api_base=base, api_key="any", temperature=0, max_tokens=200)
    assert "68" in reply.choices[0].message.content
    pieces = litellm.completion(
        model=name, messages=MESSAGES, api_base=base, api_key="any", temperature=0, max_tokens=200, stream=True
    )
    text = "".join(part.choices[0].delta.content or "" for part in pieces)
    assert "68" in text
