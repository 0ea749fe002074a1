"""Requests that come at the same time under one Idempotency-Key: one body is taken, and every other is told so."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import httpx
import pytest

from tests.journeys.server import Server

NUM_OF_EACH = 4
NUM_ROUNDS = 6


@pytest.mark.everywhere
def test_of_two_bodies_under_one_key_at_once_one_is_answered_and_the_other_is_a_conflict(echo: Server) -> None:
    headers = {"Authorization": f"Bearer {echo.key}"}

    def ask(key: str, prompt: str) -> httpx.Response:
        body = {"model": "echo", "prompt": prompt, "max_tokens": 8}
        own = {**headers, "Idempotency-Key": key}
        return httpx.post(f"{echo.url}/v1/completions", json=body, headers=own, timeout=60)

    with ThreadPoolExecutor(2 * NUM_OF_EACH) as threads:
        for _ in range(NUM_ROUNDS):
            key, prompts = uuid4().hex, ["alpha", "omega"] * NUM_OF_EACH
            replies = list(threads.map(lambda prompt, key=key: ask(key, prompt), prompts))
            told = {prompt: {reply.status_code for reply in replies[at::2]} for at, prompt in enumerate(prompts[:2])}
            assert sorted(told.values(), key=min) == [{200}, {409}], told
            answers = {reply.text for reply in replies if reply.status_code == 200}
            assert len(answers) == 1
