"""Conversations whose KV blocks left the device: they come back from the folder, and go with their session."""

import os
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.journeys.conftest import Fresh
from tests.journeys.server import Server, wait_until
from tests.journeys.test_responses import GREEDY, client

BLOCK = 16
FEW_BLOCKS = 40
"""Blocks of the engine, with room for two of these conversations."""
OTHERS = 4
ID_BYTES = 8
"""Bytes of a token in the echo's blocks."""
IN_FILES = r'axon_kv_shelf_bytes\{.*place="file".*\}'
WRITTEN = r'axon_kv_shelf_moved_bytes_total\{.*way="write".*\}'


def start(fresh: Fresh, folder: Path, **more: Any) -> Server:
    return fresh.start(
        engine_kv_memory_bytes=FEW_BLOCKS * BLOCK * 4096,
        engine_kv_folder=folder,
        engine_echo_step_s=0.05,  # a prompt costs more than its file
        **more,
    )


def words(number: int) -> str:
    return " ".join(f"{number}-{index}" for index in range(50))


def ask(http: httpx.Client, number: int) -> tuple[str, int, int]:
    """The answer, and of how many tokens of the prompt how many were cached."""
    messages = [{"role": "user", "content": words(number)}]
    body = {"model": GREEDY["model"], "messages": messages, "temperature": 0, "max_tokens": 2}
    answer = http.post("/v1/chat/completions", json=body).raise_for_status().json()
    usage = answer["usage"]
    text: str = answer["choices"][0]["message"]["content"]
    return text, usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]


def whole_blocks(num_tokens: int) -> int:
    return (num_tokens - 1) // BLOCK * BLOCK


def test_a_conversation_comes_back_after_others_took_its_blocks(fresh: Fresh, tmp_path: Path) -> None:
    server = start(fresh, tmp_path / "kv")
    with server.client() as http:
        text, num_prompt, cached = ask(http, 0)
        assert cached == 0
        for other in range(1, OTHERS + 1):
            ask(http, other)
        assert ask(http, 0) == (text, num_prompt, whole_blocks(num_prompt))
        wait_until(lambda: server.metric("axon_kv_shelf_hits_total") >= whole_blocks(num_prompt), "it is counted")
        assert server.metric(IN_FILES) > 0


@pytest.mark.everywhere
def test_a_conversation_is_found_after_the_engine_and_the_server_were_killed(fresh: Fresh, tmp_path: Path) -> None:
    server = start(fresh, tmp_path / "kv")
    with server.client() as http:
        text, num_prompt, _ = ask(http, 0)
        found = (text, num_prompt, whole_blocks(num_prompt))
        num_bytes = whole_blocks(num_prompt) * ID_BYTES
        wait_until(lambda: ask(http, 1) and server.metric(WRITTEN) >= num_bytes, "its blocks are in the folder")
        [engine] = server.engine_pids()
        os.kill(engine, signal.SIGKILL)
        wait_until(lambda: server.engine_pids() not in ([], [engine]), "another engine is started")
        assert ask(http, 0) == found
    server.kill()
    server = start(fresh, tmp_path / "kv")
    with server.client() as http:
        assert ask(http, 0) == found


@pytest.mark.everywhere
def test_an_erased_conversation_leaves_the_folder(fresh: Fresh, tmp_path: Path) -> None:
    server = start(fresh, tmp_path / "kv")
    with client(server) as api:
        talk = api.conversations.create()
        first = api.responses.create(**GREEDY, input=words(0), conversation=talk.id, max_output_tokens=2)
        assert first.usage is not None
        wait_until(lambda: server.metric(IN_FILES) > 0, "its blocks are in the folder")
        api.conversations.delete(talk.id)
        wait_until(lambda: server.metric(IN_FILES) == 0, "its blocks are erased")
        again = api.responses.create(**GREEDY, input=words(0), max_output_tokens=2)
    assert again.usage is not None
    assert again.usage.input_tokens_details.cached_tokens == 0


def test_what_is_not_stored_is_not_in_the_folder(fresh: Fresh, tmp_path: Path) -> None:
    server = start(fresh, tmp_path / "kv")
    with client(server) as api:
        api.responses.create(**GREEDY, input=words(0), store=False, max_output_tokens=2)
    for path in (tmp_path / "kv").rglob("blocks"):
        assert path.stat().st_size == 0
