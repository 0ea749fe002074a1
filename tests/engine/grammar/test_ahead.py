"""A spare engine process has read the vocabulary of the model that it takes over: its first grammar reads nothing."""

from pathlib import Path
from typing import Any

import pytest
from llguidance import LLMatcher

from axon.engine import engine as engine_module
from axon.engine import process
from axon.engine.config import EngineConfig
from axon.engine.engine import Engine
from axon.engine.grammar.vocabulary import Vocabulary, byte_vocabulary
from axon.engine.load.architecture import read_architecture
from axon.engine.protocol.codec import Start, Warm
from tests.engine.builders import make_add, run_to_end, with_config

CONFIG = EngineConfig(device="cpu", dtype="int8")
EOS_ID = 257


def received(*messages: object) -> Any:
    """What a process takes from a channel with these messages, one at a time."""
    left = list(messages)

    class Channel:
        def receive(self, timeout_s: float | None) -> list[object]:
            return [left.pop(0)]

    channel: Any = Channel()
    return process._receive_start(channel)


def test_a_spare_reads_the_vocabulary_of_the_model_that_it_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []

    def reading(folder: Path) -> Vocabulary:
        read.append(folder)
        return byte_vocabulary()

    monkeypatch.setattr(engine_module, "vocabulary_of", reading)
    start, rest, ahead = received(Warm(config=CONFIG, model_dir="/m"), Start(config=CONFIG, model_dir="/m"))
    assert (start.model_dir, rest, ahead.model_dir, read) == ("/m", [], "/m", [Path("/m")])
    assert ahead.vocabulary is not None
    _, _, ahead = received(Warm(config=CONFIG), Start(config=CONFIG, model_dir="/m"))
    assert (ahead.vocabulary, len(read)) == (None, 1)


def test_a_spare_that_cannot_read_it_serves_all_the_same(tmp_path: Path) -> None:
    *_, ahead = received(Warm(config=CONFIG, model_dir=str(tmp_path)), Start(config=CONFIG, model_dir="/m"))
    assert ahead.vocabulary is None


@pytest.mark.parametrize("same", [True, False])
def test_the_engine_takes_what_was_read_of_its_own_model_alone(
    same: bool, tiny_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[object] = []
    monkeypatch.setattr(engine_module, "Engine", lambda *_, vocabulary: given.append(vocabulary))
    ahead = process._Ahead(str(tiny_llama) if same else "/other", byte_vocabulary())
    process.start_engine(Start(config=CONFIG, model_dir=str(tiny_llama)), ahead)
    assert given == [ahead.vocabulary if same else None]


def test_an_engine_with_a_vocabulary_reads_none_for_its_first_grammar(tiny_llama: Path) -> None:
    assert not (tiny_llama / "tokenizer.json").exists()
    vocab_size = read_architecture(tiny_llama).vocab_size
    engine = Engine(with_config(), tiny_llama, vocabulary=byte_vocabulary(size=vocab_size, eos_id=EOS_ID))
    add = make_add("a", prompt=3, max_tokens=8, grammar=LLMatcher.grammar_from_regex("abc"))
    assert bytes(run_to_end(engine, [add])["a"][:3]) == b"abc"
    engine.close()
