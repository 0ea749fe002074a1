"""A served model that is cut over ranks: losing one in the middle of an answer is a pause, and nothing else."""

from pathlib import Path

import pytest

from tests.engine.builders import make_tiny_llama
from tests.engine.load.convert.gguf_files import write_gguf
from tests.engine.ranks.group import CUTTABLE, children_of, kill, wait_until_gone
from tests.journeys.server import running
from tests.journeys.sse import Piece, pieces, text_of

NUM_TOKENS = 120


@pytest.mark.long("ranks")
def test_an_answer_is_whole_and_equal_when_a_rank_is_killed_under_it(tmp_path: Path) -> None:
    source = write_gguf(tmp_path / "tiny.gguf", make_tiny_llama(tmp_path / "weights", **CUTTABLE))
    settings = {"model": source, "models_dir": tmp_path / "models", "engine_tensor_parallel": 2}
    body = {"model": "tiny", "prompt": "he said", "max_tokens": NUM_TOKENS, "temperature": 0, "ignore_eos": True}
    with running(tmp_path / "data", engine_device="cpu", **settings) as server, server.client() as http:
        undisturbed = http.post("/v1/completions", json=body).json()
        [engine] = server.engine_pids()
        [rank] = children_of(engine)
        got: list[Piece] = []
        with http.stream("POST", "/v1/completions", json={**body, "stream": True}) as reply:
            for piece in pieces(reply.iter_lines()):
                got.append(piece)
                if len(got) == 10:
                    kill(rank)
        assert text_of(got) == undisturbed["choices"][0]["text"]
        assert got[-1].finish == "length"
        assert server.metric("axon_failovers_total") == 1
        [engine] = server.engine_pids()
        ranks = children_of(engine)
    wait_until_gone([engine, *ranks])
