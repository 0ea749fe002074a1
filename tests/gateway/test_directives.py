"""Every field of a known client is honoured, refused by name or a hint, and the table says which."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from axon.errors import Unsupported
from axon.gateway.anthropic.requests import MessagesRequest
from axon.gateway.directive import Directives, Treatment
from axon.gateway.directives import (
    CHAT,
    COMPLETIONS,
    DETOKENIZE,
    MESSAGES,
    OLLAMA_CHAT,
    OLLAMA_EMBED,
    OLLAMA_GENERATE,
    RESPONSES,
    ROUTES,
    TOKENIZE,
)
from axon.gateway.http.body import Wire, parse
from axon.gateway.ollama.requests import OllamaChatRequest, OllamaEmbedRequest, OllamaGenerateRequest
from axon.gateway.openai.encoders.classify_requests import ClassifyRequest
from axon.gateway.openai.encoders.embedding_requests import EmbeddingRequest
from axon.gateway.openai.encoders.score_requests import RerankRequest, ScoreRequest
from axon.gateway.openai.requests import ChatRequest, CompletionRequest
from axon.gateway.openai.tokens import DetokenizeRequest, TokenizeRequest
from axon.gateway.responses.requests import ResponseRequest
from axon.gateway.vector_directives import CLASSIFY, EMBEDDINGS, RERANK, SCORE

ROOT = Path(__file__).parents[2]
KINDS: list[tuple[Directives, type[Wire], dict[str, Any]]] = [
    (CHAT, ChatRequest, {"model": "m", "messages": [{"role": "user", "content": "hi"}]}),
    (COMPLETIONS, CompletionRequest, {"model": "m", "prompt": "hi"}),
    (RESPONSES, ResponseRequest, {"model": "m", "input": "hi"}),
    (TOKENIZE, TokenizeRequest, {"model": "m", "prompt": "hi"}),
    (DETOKENIZE, DetokenizeRequest, {"model": "m", "tokens": [1]}),
    (OLLAMA_CHAT, OllamaChatRequest, {"model": "m"}),
    (OLLAMA_GENERATE, OllamaGenerateRequest, {"model": "m"}),
    (OLLAMA_EMBED, OllamaEmbedRequest, {"model": "m", "input": "hi"}),
    (RERANK, RerankRequest, {"model": "m", "query": "hi", "documents": ["ho"]}),
    (SCORE, ScoreRequest, {"model": "m", "text_1": "hi", "text_2": "ho"}),
    (CLASSIFY, ClassifyRequest, {"model": "m", "input": "hi"}),
    (EMBEDDINGS, EmbeddingRequest, {"model": "m", "input": "hi"}),
    (MESSAGES, MessagesRequest, {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}),
]


@pytest.mark.parametrize(("table", "kind", "body"), KINDS)
def test_what_a_request_declares_is_what_the_table_calls_honoured(
    table: Directives, kind: type[Wire], body: dict[str, Any]
) -> None:
    declared = {name for name in kind.model_fields if name not in table.named(Treatment.HINT)}
    assert declared == set(table.named(Treatment.HONOURED))


@pytest.mark.parametrize(("table", "kind", "body"), KINDS)
def test_a_refused_field_is_refused_by_name_and_its_neutral_values_are_not(
    table: Directives, kind: type[Wire], body: dict[str, Any]
) -> None:
    for name, directive in table.named(Treatment.REFUSED).items():
        for neutral in (None, *directive.neutral):
            parse(kind, json.dumps({**body, name: neutral}).encode(), table.refused, table.notes)
        with pytest.raises(Unsupported) as raised:
            parse(kind, json.dumps({**body, name: "something"}).encode(), table.refused, table.notes)
        assert raised.value.param == name


@pytest.mark.parametrize(("table", "kind", "body"), KINDS)
def test_a_hint_is_accepted_whatever_it_says(table: Directives, kind: type[Wire], body: dict[str, Any]) -> None:
    for name in table.named(Treatment.HINT):
        if name not in kind.model_fields:
            parse(kind, json.dumps({**body, name: {"any": "thing"}}).encode(), table.refused)


def test_an_error_says_what_to_send_instead() -> None:
    with pytest.raises(Unsupported, match="chat_template_kwargs"):
        parse(ChatRequest, json.dumps({**KINDS[0][2], "enable_thinking": False}).encode(), CHAT.refused, CHAT.notes)


def test_every_route_that_asks_the_model_has_a_table() -> None:
    assert [each.route for each in ROUTES] == [
        "POST /v1/chat/completions",
        "POST /v1/completions",
        "POST /v1/responses",
        "response.create over a WebSocket",
        "POST /v1/messages",
        "POST /v1/embeddings",
        "POST /v1/classify",
        "POST /v1/rerank",
        "POST /v1/score",
        "POST /tokenize",
        "POST /detokenize",
        "POST /api/chat",
        "POST /api/generate",
        "POST /api/embed",
        "options of POST /api/chat and /api/generate",
    ]


def test_the_page_of_the_docs_is_the_table() -> None:
    script = ROOT / "scripts" / "fields_page.py"
    subprocess.run([sys.executable, str(script), "--check"], check=True, timeout=60)
