"""Engines that answer by turns: how many streams stay busy, and what is compared."""

from pathlib import Path

from benchmarks.drafts import slower
from benchmarks.measures.turns import Streams

from axon.domain.sampling import Sampling
from axon.engine.config import EngineConfig
from axon.engine.engine import Engine
from tests.engine.builders import make_tiny_llama

PROMPTS = [[10 + index] * 5 for index in range(3)]
CONFIG = EngineConfig(dtype="float32", device="cpu", threads=1, kv_memory_bytes=2 << 20, speculate=False)


def test_where_an_answer_ends_the_next_one_begins(tmp_path: Path) -> None:
    engine = Engine(CONFIG, make_tiny_llama(tmp_path / "model"))
    streams = Streams(engine, PROMPTS, 2, Sampling(max_tokens=4, temperature=0.0, ignore_eos=True))
    turns = [streams.run(10) for _ in range(4)]
    answers = streams.close()
    engine.close()
    assert sum(turn.num_tokens for turn in turns[1:]) == 3 * 2 * 10  # a token a stream and step, to the last step
    assert len(answers) >= 18
    assert all(len(tokens) == 4 for tokens in answers.values())
    assert answers["2 streams, answer 0"] == answers["2 streams, answer 3"]  # the same prompt


def test_drafts_are_slower_only_where_the_whole_interval_says_so() -> None:
    figures = {"ratio": 0.95, "low": 0.90, "high": 0.96}
    found = {"random": {1: figures, 4: figures | {"high": 1.01}}}
    assert slower(found) == ["random, 1 streams: 0.950, at most 0.960"]
