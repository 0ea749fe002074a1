"""The echo engine: a twin that needs no model."""

import subprocess
import sys

import pytest

from axon.domain.byte_tokens import EOS_ID
from axon.engine.config import EngineConfig
from axon.engine.echo import EchoEngine
from axon.text.tokenizer import ByteTokenizer
from tests.engine.builders import make_add, run_to_end


def make_echo(**changes: object) -> EchoEngine:
    return EchoEngine(EngineConfig(kind="echo", kv_memory_bytes=1 << 22, **changes))  # type: ignore[arg-type]


def test_the_prompt_comes_back_and_then_the_end_token() -> None:
    assert run_to_end(make_echo(), [make_add(prompt=[7, 8, 9], max_tokens=10)]) == {"a": [7, 8, 9, EOS_ID]}


def test_ignoring_the_end_it_goes_round() -> None:
    add = make_add(prompt=[7, 8], max_tokens=5, ignore_eos=True)
    assert run_to_end(make_echo(), [add]) == {"a": [7, 8, 7, 8, 7]}


def test_a_replay_goes_on_where_it_stopped() -> None:
    add = make_add(prompt=[7, 8, 9], output=[7, 8], max_tokens=10)
    assert run_to_end(make_echo(), [add]) == {"a": [9, EOS_ID]}


def test_with_a_temperature_it_picks_by_seed_and_a_replay_picks_the_same() -> None:
    whole = run_to_end(make_echo(), [make_add(prompt=40, max_tokens=30, temperature=1.0, seed=3)])["a"]
    assert whole != list(range(1, 31))
    replay = make_add(prompt=40, output=whole[:9], max_tokens=30, temperature=1.0, seed=3)
    assert run_to_end(make_echo(), [replay])["a"] == whole[9:]


def test_sequences_beyond_the_slots_wait_in_order() -> None:
    engine = make_echo(max_sequences=1)
    engine.add(make_add("first", prompt=[5], max_tokens=1))
    engine.add(make_add("second", prompt=[6], max_tokens=1))
    assert [emitted.id for emitted in engine.step().emitted] == ["first"]
    assert [emitted.id for emitted in engine.step().emitted] == ["second"]


def test_an_abort_frees_everything() -> None:
    engine = make_echo()
    engine.add(make_add(prompt=40, max_tokens=50))
    assert engine.step().counters.blocks_used > 0
    engine.abort(["a"])
    assert not engine.has_work
    assert engine.step().counters.blocks_used == 0
    engine.check()


def test_it_fails_the_share_that_it_is_told_to_and_answers_the_others() -> None:
    engine = make_echo(echo_fails=0.5)
    adds = [make_add(str(number), prompt=[7, 8], max_tokens=10, seed=number) for number in range(100)]
    for add in adds:
        engine.add(add)
    refused, ended = [], []
    while engine.has_work:
        output = engine.step()
        refused += [each.id for each in output.refused]
        ended += [each.id for each in output.emitted if each.token == EOS_ID]
    assert 30 < len(refused) < 70
    assert sorted([*refused, *ended]) == sorted(add.id for add in adds)


def test_its_end_token_is_the_byte_tokenizers() -> None:
    assert ByteTokenizer.eos_ids == {EOS_ID}
    assert make_echo().ready().eos_ids == [EOS_ID]


@pytest.mark.parametrize(
    "module", ["protocol.messages", "config", "echo", "process", "protocol.codec", "schedule.scheduler"]
)
def test_the_light_modules_do_not_import_torch(module: str) -> None:
    code = f"import sys, axon.engine.{module}; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
