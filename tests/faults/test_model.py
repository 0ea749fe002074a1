"""The real model, with memory and broker lost in the middle of its answer."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.fleet import Fleet
from tests.journeys.sse import Piece, pieces, text_of
from tests.services import rabbitmq
from tests.services.process import listening, wait_for
from tests.services.redis import RedisServer
from tests.services.require import require

pytestmark = [pytest.mark.services, pytest.mark.model]

_NUM_TOKENS = 60


@pytest.fixture
def victim(victims: Path) -> Iterator[RedisServer]:
    require("redis-server")
    server = RedisServer(victims / "redis")
    server.start()
    yield server
    server.kill()


def test_the_real_model_says_the_same_after_redis_was_flushed_and_rabbitmq_restarted(
    fleet: Callable[..., Fleet], victim: RedisServer
) -> None:
    broker = rabbitmq.started_victim()
    here = fleet(num_gateways=1, own={"live_port": victim.port, "rabbit": broker}, engine_kind="axon")
    [server] = here.gateways
    broker.sync()
    body = {
        "model": "smollm2-135m-instruct",
        "prompt": "Once upon a time",
        "max_tokens": _NUM_TOKENS,
        "temperature": 0,
        "ignore_eos": True,
    }
    got: list[Piece] = []
    with server.client() as http:
        undisturbed = http.post("/v1/completions", json=body).json()["choices"][0]["text"]
        with http.stream("POST", "/v1/completions", json={**body, "stream": True}) as reply:
            stream_id = reply.headers["x-axon-stream"]
            for piece in pieces(reply.iter_lines()):
                got.append(piece)
                if len(got) == 10:
                    victim.flush()
                    wait_for(lambda: here.place.job(stream_id), "the worker tells again what it remembers")
                if len(got) == 20:
                    broker.kill()
                    assert not listening(broker.port)
        broker.start()
        assert text_of(got) == undisturbed
        assert [piece.finish for piece in got if piece.finish] == ["length"]
        assert text_of(pieces(http.get(f"/v1/streams/{stream_id}").iter_lines())) == undisturbed
    assert here.metric("axon_failovers_total") == 0
    wait_for(lambda: here.place.ranks().get(stream_id) == 1, "the store has its end")
    [turn] = [turn for turn in here.place.turns() if turn.id == stream_id]
    assert (turn.state, turn.usage.output_tokens) == ("completed", _NUM_TOKENS)
    assert "".join(token.text for token in turn.tokens) == undisturbed
    wait_for(lambda: not here.place.messages(), "the queues are empty and nothing is held")
