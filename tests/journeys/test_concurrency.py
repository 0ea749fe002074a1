"""Many at once: a neighbour changes nothing but the time."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.journeys.server import Server

PROMPTS = [
    "The capital of France is",
    "def fibonacci(n):",
    "Once upon a time in a small village,",
    "1, 2, 3, 4,",
    "Water boils at",
    "The three laws of robotics are",
    "Der schnellste Weg nach Hause ist",
    "In the beginning",
]


@pytest.mark.model
def test_eight_streams_at_once_say_what_each_says_alone(real: Server) -> None:
    def complete(prompt: str) -> str:
        body = {"model": "smollm2-135m-instruct", "prompt": prompt, "max_tokens": 40, "temperature": 0}
        with real.client() as http:
            text: str = http.post("/v1/completions", json=body).json()["choices"][0]["text"]
            return text

    alone = [complete(prompt) for prompt in PROMPTS]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(complete, PROMPTS))
    assert together == alone


def test_two_hundred_requests_at_once_are_each_answered_with_their_own(echo: Server) -> None:
    def complete(index: int) -> str:
        body = {"model": "echo", "prompt": f"number {index}.", "max_tokens": 64, "temperature": 0}
        text: str = http.post("/v1/completions", json=body).json()["choices"][0]["text"]
        return text

    with echo.client() as http, ThreadPoolExecutor(32) as pool:
        assert list(pool.map(complete, range(200))) == [f"number {index}." for index in range(200)]
