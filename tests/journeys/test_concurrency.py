"""Many at once: a neighbour changes nothing but the time."""

from concurrent.futures import ThreadPoolExecutor

from tests.journeys.server import Server


def test_two_hundred_requests_at_once_are_each_answered_with_their_own(echo: Server) -> None:
    def complete(index: int) -> str:
        body = {"model": "echo", "prompt": f"number {index}.", "max_tokens": 64, "temperature": 0}
        text: str = http.post("/v1/completions", json=body).json()["choices"][0]["text"]
        return text

    with echo.client() as http, ThreadPoolExecutor(32) as pool:
        assert list(pool.map(complete, range(200))) == [f"number {index}." for index in range(200)]
