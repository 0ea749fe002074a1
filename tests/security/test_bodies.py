"""Bodies made to be dear, sent to a server: each is refused by name while the others are served, and counted."""

from collections.abc import Iterator

import httpx
import pytest

from tests.journeys.server import Server, running
from tests.security.raw import PATIENCE_S
from tests.security.test_floods import ASK, healthy, num_bytes

SIZE = 4 << 20
_MORE_BYTES = 256 << 20
_PER_MINUTE = 30


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {"engine_kind": "echo", "admission_requests_per_minute": 0}
    with running(tmp_path_factory.mktemp("bodies") / "data", **settings) as server:
        yield server


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose tenants have few requests."""
    settings = {"engine_kind": "echo", "admission_requests_per_minute": _PER_MINUTE}
    with running(tmp_path_factory.mktemp("limited") / "data", **settings) as server:
        yield server


def filled(before: str, entry: str, after: str) -> bytes:
    return (before + ",".join([entry] * ((SIZE - 200) // (len(entry) + 1))) + after).encode()


MODEL = '{"model":"echo",'
CHAT = MODEL + '"messages":[{"role":"user","content":"x"}],'
NAMES = ",".join(f'"x{at}":{{}}' for at in range(250_000))
HOSTILE: dict[str, tuple[str, bytes, str]] = {
    "objects for prompts": ("completions", filled(MODEL + '"prompt":[', "{}", "]}"), "prompt"),
    "200,000 objects for prompts": (
        "completions",
        (MODEL + '"prompt":[' + "{}," * 199_999 + "{}]}").encode(),
        "prompt",
    ),
    "biases": ("chat/completions", (CHAT + '"logit_bias":{' + NAMES + "}}").encode(), "logit_bias"),
    "metadata": ("responses", (MODEL + '"input":"x","metadata":{' + NAMES + "}}").encode(), "metadata"),
    "content": (
        "chat/completions",
        filled(MODEL + '"messages":[{"role":"user","content":[', "{}", "]}]}"),
        "messages",
    ),
    "input": ("responses", filled(MODEL + '"input":[', "{}", "]}"), "input"),
    "items": ("conversations", filled('{"items":[', "{}", "]}"), "items"),
    "metadata of a conversation": ("conversations", ('{"metadata":{' + NAMES + "}}").encode(), "metadata"),
}


def post(server: Server, path: str, body: bytes) -> httpx.Response:
    headers = {"Authorization": f"Bearer {server.key}", "content-type": "application/json"}
    return httpx.post(f"{server.url}/v1/{path}", content=body, headers=headers, timeout=PATIENCE_S)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_body_is_refused_by_name_and_costs_nobody_anything(server: Server, name: str) -> None:
    path, body, param = HOSTILE[name]
    assert post(server, "completions", b"{}").status_code == 400
    before = num_bytes(server)
    with healthy(server):
        replies = [post(server, path, body) for _ in range(3)]
    for reply in replies:
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, param), reply.text
    assert num_bytes(server) - before < _MORE_BYTES


def test_a_large_field_that_nobody_knows_costs_nothing(server: Server) -> None:
    before = num_bytes(server)
    body = filled(MODEL + '"prompt":"hello","max_tokens":1,"junk":[', "{}", "]}")
    assert post(server, "completions", body).status_code == 200
    assert num_bytes(server) - before < _MORE_BYTES


def test_a_request_that_is_refused_for_what_it_says_counts_against_its_sender(limited: Server) -> None:
    with limited.client() as http:
        for num_left in reversed(range(_PER_MINUTE // 2, _PER_MINUTE)):
            reply = http.post("/v1/completions", content=b"{}")
            assert reply.status_code == 400
            assert int(reply.headers["x-ratelimit-remaining-requests"]) >= num_left
        statuses = [http.post("/v1/completions", content=b"{}").status_code for _ in range(2 * _PER_MINUTE)]
        assert {400, 429} >= set(statuses)
        assert statuses[-1] == 429
        assert http.post("/v1/completions", json=ASK).status_code == 429
