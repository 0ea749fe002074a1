"""/tokenize and /detokenize: many ids are bounded, and are turned into text beside the event loop."""

import json
import threading
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from axon.errors import InvalidInput
from axon.gateway.openai import tokens
from axon.gateway.openai.tokens import DetokenizeRequest, TokenizeRequest, detokenize, tokenize
from axon.sessions.prompt import Prompts, Threads
from axon.text.tokenizer import ByteTokenizer

MANY = "a" * 5000


class Noting(ByteTokenizer):
    """Notes the threads in which it decodes."""

    def __init__(self) -> None:
        self.threads: set[threading.Thread] = set()

    def decode(self, token_ids: Iterable[int]) -> str:
        self.threads.add(threading.current_thread())
        return super().decode(token_ids)


@pytest.fixture
def threads() -> Iterator[Threads]:
    threads = Threads()
    yield threads
    threads.close()


async def asked(route: Any, ask: Any, prompts: Prompts, monkeypatch: pytest.MonkeyPatch) -> Any:
    async def given(*_: Any) -> Any:
        return b"", ask

    async def nothing(*_: Any) -> Any:
        return prompts

    offer = SimpleNamespace(prompts=nothing, deployment=SimpleNamespace(stable=None))
    monkeypatch.setattr(tokens, "read_body", given)
    monkeypatch.setattr(tokens, "_offer", lambda *_: offer)
    monkeypatch.setattr(tokens, "count_request", nothing)
    reply = await route(None)
    return json.loads(reply.body)


async def test_many_ids_are_not_turned_into_text_on_the_event_loop(
    threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = Noting()
    prompts = Prompts(tokenizer, None, threads, max_model_len=10_000)
    ids = [*MANY.encode()]
    assert await asked(detokenize, DetokenizeRequest(tokens=ids), prompts, monkeypatch) == {"prompt": MANY}
    found = await asked(tokenize, TokenizeRequest(prompt=MANY, return_token_strs=True), prompts, monkeypatch)
    assert found == {"count": 5000, "max_model_len": 10_000, "tokens": ids, "token_strs": [*MANY]}
    assert tokenizer.threads
    assert threading.main_thread() not in tokenizer.threads


async def test_more_ids_than_the_bound_are_refused(threads: Threads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_MAX_IDS", 200)
    for window, most in ((10, 80), (100, 200), (1000, 1000)):
        prompts = Prompts(ByteTokenizer(), None, threads, max_model_len=window)
        ask = DetokenizeRequest(tokens=[97] * most)
        assert await asked(detokenize, ask, prompts, monkeypatch) == {"prompt": "a" * most}
        with pytest.raises(InvalidInput, match=f"At most {most} token ids"):
            await asked(detokenize, DetokenizeRequest(tokens=[97] * (most + 1)), prompts, monkeypatch)
        with pytest.raises(InvalidInput, match=f"at most {most} tokens"):
            await asked(tokenize, TokenizeRequest(prompt="a" * (most + 1)), prompts, monkeypatch)
