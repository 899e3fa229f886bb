"""The standard suite of langchain-tests, with ChatOllama on the demo model."""

import os

from langchain_core.language_models import BaseChatModel
from langchain_ollama import ChatOllama
from langchain_tests.integration_tests import ChatModelIntegrationTests


class TestChatOllama(ChatModelIntegrationTests):
    """What a client of LangChain may rely on, as far as a model of 14 MB can show it: tests of tools, JSON mode and
    structured output need a model that follows instructions, and those of images fetch one from the web."""

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatOllama

    @property
    def chat_model_params(self) -> dict:
        return {"model": "demo", "base_url": os.environ["RULLAMA_URL"], "temperature": 0, "num_predict": 60}

    @property
    def has_tool_calling(self) -> bool:
        return False

    @property
    def has_structured_output(self) -> bool:
        return False

    @property
    def supports_json_mode(self) -> bool:
        return False
