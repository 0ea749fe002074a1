"""The engine's own process, over a real socket."""

import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from axon.domain.byte_tokens import EOS_ID
from axon.engine.config import EngineConfig
from axon.engine.echo import POISON, POISON_EXIT_CODE
from axon.engine.engine import Engine
from axon.engine.protocol.codec import Failed, Start
from axon.engine.protocol.messages import Abort, Ready, StepOutput
from tests.engine.builders import make_add, require_native, run_to_end, with_config
from tests.engine.peer import Peer, has_finished

ECHO = EngineConfig(kind="echo", kv_memory_bytes=1 << 22)


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.close()


def test_it_says_ready_echoes_and_leaves_when_its_peer_does(peer: Peer) -> None:
    peer.send(Start(config=ECHO), make_add(prompt=[1, 2], max_tokens=9))
    assert peer.receive(Ready).kernel == "echo"
    outputs = peer.receive_until(has_finished)
    assert [emitted.token for output in outputs for emitted in output.emitted] == [1, 2, EOS_ID]
    assert peer.close() == (0, "")


def test_an_aborted_sequence_falls_silent(peer: Peer) -> None:
    endless = make_add("endless", prompt=[1], max_tokens=5000, ignore_eos=True)
    peer.send(Start(config=with_config(kind="echo", echo_step_s=0.002)), endless)
    peer.receive(Ready)
    peer.receive_until(lambda output: bool(output.emitted))
    peer.send(Abort(ids=["endless"]), make_add("next", prompt=[2], max_tokens=1))
    last = peer.receive_until(has_finished)[-1]
    assert [(emitted.id, emitted.token) for emitted in last.emitted] == [("next", 2)]
    assert last.counters.num_running == 0


def test_a_refusal_comes_even_if_nothing_runs(peer: Peer) -> None:
    peer.send(Start(config=ECHO), make_add("empty", prompt=[]))
    peer.receive(Ready)
    output = peer.receive(StepOutput)
    assert [refused.id for refused in output.refused] == ["empty"]


def test_ctrl_c_does_not_reach_it(peer: Peer) -> None:
    peer.send(Start(config=ECHO))
    peer.receive(Ready)
    peer.process.send_signal(signal.SIGINT)
    peer.send(make_add(prompt=[1], max_tokens=1))
    assert has_finished(peer.receive(StepOutput))


def test_it_leaves_in_the_middle_of_work_too(peer: Peer) -> None:
    peer.send(Start(config=ECHO), make_add(prompt=[1], max_tokens=8000, ignore_eos=True))
    peer.receive(Ready)
    peer.receive(StepOutput)
    assert peer.close() == (0, "")


def test_poison_kills_it_at_once(peer: Peer) -> None:
    peer.send(Start(config=ECHO), make_add(prompt=[1, *POISON, 2]))
    peer.receive(Ready)
    assert peer.process.wait(timeout=60) == POISON_EXIT_CODE


def test_a_model_that_cannot_be_loaded_is_reported(peer: Peer, tmp_path: Path) -> None:
    peer.send(Start(config=EngineConfig(), model_dir=str(tmp_path)))
    assert "no config.json" in peer.receive(Failed).message
    code, errors = peer.close()
    assert code == 1
    assert errors == "", "the message says it: no place in the code beside it"


def test_a_message_it_does_not_take_ends_it_with_a_trace(peer: Peer) -> None:
    peer.send(Start(config=ECHO))
    peer.receive(Ready)
    peer.send(Failed("nonsense"))
    assert peer.process.wait(timeout=60) == 1
    assert "does not take Failed" in peer.close()[1]


def test_a_model_gives_the_same_tokens_as_in_this_process(peer: Peer, tiny_llama: Path) -> None:
    add = make_add(prompt=[3, 1, 4, 1, 5], max_tokens=8, ignore_eos=True)
    peer.send(Start(config=with_config(), model_dir=str(tiny_llama)), add)
    assert peer.receive(Ready).kernel == "torch-float32"
    outputs = peer.receive_until(has_finished)
    tokens = [emitted.token for output in outputs for emitted in output.emitted]
    assert tokens == run_to_end(Engine(with_config(), tiny_llama), [add])["a"]


def test_an_engine_with_a_draft_model_that_is_killed_is_replayed_by_one_without(peer: Peer, tiny_llama: Path) -> None:
    require_native()
    config = with_config(dtype="int8", block_size=16, draft_model=str(tiny_llama))
    add = make_add(prompt=[3, 1, 4, 1, 5], max_tokens=400, ignore_eos=True, temperature=0.9, seed=3)
    peer.send(Start(config=config, model_dir=str(tiny_llama)), add)
    peer.receive(Ready)
    outputs = peer.receive_until(lambda output: output.counters.model_accepted > 0 or has_finished(output))
    peer.process.kill()
    before = [emitted.token for output in outputs for emitted in output.emitted]
    assert before
    plain = replace(config, draft_model="", speculate=False)
    replayed = replace(add, output_ids=before, sampling=replace(add.sampling, max_tokens=len(before) + 20))
    whole = replace(add, sampling=replayed.sampling)
    after = run_to_end(Engine(plain, tiny_llama), [replayed])["a"]
    assert [*before, *after] == run_to_end(Engine(config, tiny_llama), [whole])["a"]
