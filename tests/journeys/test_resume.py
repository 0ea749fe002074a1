"""A stream that breaks off is picked up where it broke, and goes away when nobody comes back."""

import random

import pytest

from tests.journeys.conftest import Fresh, Past
from tests.journeys.server import Server, wait_until
from tests.journeys.sse import Piece, pieces, text_of

PROMPT = "The quick brown fox jumps over the lazy dog — größer, 更大. " * 4


def ask(**fields: object) -> dict[str, object]:
    return {
        "model": "echo",
        "prompt": PROMPT,
        "max_tokens": 300,
        "stream": True,
        "ignore_eos": True,
        "temperature": 0,
        **fields,
    }


def read_some(server: Server, body: dict[str, object], num_pieces: int) -> tuple[str, list[Piece]]:
    """Starts a stream and drops the connection after so many pieces."""
    got: list[Piece] = []
    with server.client() as http, http.stream("POST", "/v1/completions", json=body) as reply:
        stream_id = reply.headers["x-axon-stream"]
        for piece in pieces(reply.iter_lines()):
            got.append(piece)
            if len(got) == num_pieces:
                break
    return stream_id, got


def read_on(server: Server, stream_id: str, after: int, num_pieces: int | None = None) -> list[Piece]:
    got: list[Piece] = []
    with server.client() as http, http.stream("GET", f"/v1/streams/{stream_id}", params={"after": after}) as reply:
        assert reply.status_code == 200, reply.read()
        for piece in pieces(reply.iter_lines()):
            got.append(piece)
            if len(got) == num_pieces:
                break
    return got


def test_a_client_that_comes_back_gets_exactly_the_rest(slow: Server) -> None:
    with slow.client() as http:
        whole = http.post("/v1/completions", json=ask(stream=False)).json()["choices"][0]["text"]
    stream_id, before = read_some(slow, ask(), num_pieces=20)
    rest = read_on(slow, stream_id, after=before[-1].seq)
    assert text_of(before) + text_of(rest) == whole
    seqs = [piece.seq for piece in before + rest if piece.text]
    assert seqs == sorted(set(seqs))
    assert rest[-1].finish == "length"


def test_a_stream_cut_many_times_loses_and_repeats_nothing(slow: Server) -> None:
    rng = random.Random(4)
    with slow.client() as http:
        whole = http.post("/v1/completions", json=ask(stream=False)).json()["choices"][0]["text"]
    stream_id, got = read_some(slow, ask(), num_pieces=rng.randint(1, 10))
    while got[-1].finish is None:
        got += read_on(slow, stream_id, after=got[-1].seq, num_pieces=rng.randint(1, 60))
    assert text_of(got) == whole


@pytest.mark.parametrize("after", [0, 1, 150, 299, 300])
def test_a_finished_stream_is_read_again_from_any_seq(slow: Server, past: Past, after: int) -> None:
    stream_id, _ = read_some(slow, ask(), num_pieces=1)
    whole = text_of(read_on(slow, stream_id, after=0))
    rest = read_on(slow, stream_id, after=after)
    assert rest[-1].finish == "length"
    assert text_of(rest) == past(whole, after)


@pytest.mark.parametrize("said_as", ["after", "Last-Event-ID"])
def test_a_place_past_the_end_of_a_finished_stream_is_refused(slow: Server, said_as: str) -> None:
    stream_id, _ = read_some(slow, ask(), num_pieces=1)
    read_on(slow, stream_id, after=0)
    told = {"params": {said_as: 301}} if said_as == "after" else {"headers": {said_as: "301"}}
    with slow.client() as http:
        reply = http.get(f"/v1/streams/{stream_id}", **told)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, said_as)


def test_a_repeated_request_with_a_place_past_the_end_is_refused(slow: Server) -> None:
    key = {"Idempotency-Key": "place-past-the-end"}
    with slow.client() as http:
        assert http.post("/v1/completions", json=ask(), headers=key).status_code == 200
        reply = http.post("/v1/completions", json=ask(), headers={**key, "Last-Event-ID": "301"})
        again = http.post("/v1/completions", json=ask(), headers={**key, "Last-Event-ID": "300"})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "Last-Event-ID")
    assert again.status_code == 200


def test_the_seq_a_client_sends_must_be_a_number(slow: Server) -> None:
    stream_id, _ = read_some(slow, ask(max_tokens=3), num_pieces=1)
    with slow.client() as http:
        for wrong in ("-1", "x", "1.5", "9" * 400, "9" * 5000):
            reply = http.get(f"/v1/streams/{stream_id}", params={"after": wrong})
            assert (reply.status_code, reply.json()["error"]["param"]) == (400, "after")


def test_a_foreign_stream_is_answered_like_an_unknown_one(slow: Server) -> None:
    import json

    stream_id, _ = read_some(slow, ask(max_tokens=3), num_pieces=1)
    made = slow.axon("keys", "create", "--tenant", "other", "--json")
    other = {"Authorization": f"Bearer {json.loads(made.stdout)['key']}"}
    with slow.client() as http:
        foreign = http.get(f"/v1/streams/{stream_id}", headers=other)
        unknown = http.get("/v1/streams/chatcmpl-nothing", headers=other)
    assert foreign.status_code == unknown.status_code == 404
    assert foreign.text.replace(stream_id, "ID") == unknown.text.replace("chatcmpl-nothing", "ID")


def test_a_reader_gone_for_longer_than_the_grace_time_cancels_the_job(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.01, sessions_reader_grace_s=2.0)
    read_some(server, ask(max_tokens=5000), num_pieces=3)
    wait_until(lambda: server.metric("axon_requests_running") == 0, "the engine is free again")
    wait_until(lambda: server.metric(r'axon_kv_blocks\{.*state="used"\}') == 0, "its blocks are free again")
    tokens = r'axon_tokens_total\{kind="output"[^}]*\}'
    wait_until(lambda: server.metric(tokens) > 0, "its tokens are counted")
    assert server.metric(tokens) < 5000


def test_a_reader_of_event_ids_comes_back_with_the_last_one(slow: Server) -> None:
    headers = {"x-axon-event-ids": "true"}
    with slow.client() as http:
        whole = http.post("/v1/completions", json=ask(stream=False)).json()["choices"][0]["text"]
        with http.stream("POST", "/v1/completions", json=ask(), headers=headers) as reply:
            stream_id = reply.headers["x-axon-stream"]
            lines = reply.iter_lines()
            read = [next(lines) for _ in range(30)]
        last_id = [line for line in read if line.startswith("id: ")][-1].removeprefix("id: ")
        given = [line for line in read if line.startswith("data: ")]
        got = list(pieces([*given, "data: [DONE]"]))
        got = [piece for piece in got if piece.seq <= int(last_id)]
        with http.stream("GET", f"/v1/streams/{stream_id}", headers={"last-event-id": str(got[-1].seq)}) as reply:
            rest = list(pieces(line for line in reply.iter_lines() if not line.startswith("id: ")))
    assert text_of(got) + text_of(rest) == whole


def test_only_the_last_frame_says_that_it_is_the_last(slow: Server) -> None:
    _, got = read_some(slow, ask(max_tokens=20), num_pieces=1000)
    assert [bool(piece.event["axon"].get("end")) for piece in got] == [*[False] * (len(got) - 1), True]


def test_a_repeated_request_does_not_go_on_with_another_answer(fresh: Fresh) -> None:
    """Its stream was cancelled while nobody read it; the next one under the same key is another one."""
    server = fresh.start(engine_echo_step_s=0.02, sessions_reader_grace_s=1.5)
    headers = {"idempotency-key": "walk-1", "x-axon-event-ids": "true"}
    with server.client() as http:
        with http.stream("POST", "/v1/completions", json=ask(), headers=headers) as reply:
            stream_id = reply.headers["x-axon-stream"]
            next(reply.iter_lines())
        wait_until(lambda: server.metric("axon_requests_running") == 0, "the job without a reader is cancelled")
        again = http.post("/v1/completions", json=ask(), headers={**headers, "last-event-id": "5"})
    assert again.status_code == 410, (stream_id, again.text)
