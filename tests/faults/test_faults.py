"""A slice of the fault program: some of the faults always, one of some others, once each, under a few requests.
``make faults`` is all of it.

As for the default model, a draft head drafts for the streams, and the answers are those of an engine without one."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.engine.builders import make_add, open_engine, run_to_end, with_config
from tests.faults.every import FAULTS
from tests.faults.fault import Fault
from tests.faults.history import Ask
from tests.faults.model import CHARACTERS
from tests.faults.run import keep, run_fault
from tests.faults.stage import Stage, Stages
from tests.long import whole
from tests.services.disk import can_mount

pytestmark = [pytest.mark.services, pytest.mark.timeout(400)]

_NUM_REQUESTS = 16


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.tested == "always"], ids=lambda fault: fault.name)
def test_every_accepted_turn_ends_once_and_as_undisturbed(fault: Fault, stages: Stages, tmp_path: Path) -> None:
    check(fault, stages, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(
    "fault", [fault for fault in FAULTS if fault.tested == "one of ten"], ids=lambda fault: fault.name
)
def test_so_it_does_under_one_of_the_other_faults(fault: Fault, stages: Stages, tmp_path: Path) -> None:
    check(fault, stages, tmp_path)


@pytest.mark.long
@pytest.mark.skipif(not whole(), reason="engines with a shelf need a stage of their own: only make test-long")
@pytest.mark.parametrize("name", ["worker killed in decode", "engine killed in a fleet"])
def test_copies_of_blocks_outside_the_device_change_no_answer(name: str, shelved: Stages, tmp_path: Path) -> None:
    [fault] = [fault for fault in FAULTS if fault.name == name]
    check(fault, shelved, tmp_path)
    loaded = shelved.get(fault.stage).fleet.metric(r'axon_kv_shelf_moved_bytes_total\{.*way="load".*\}')
    assert loaded > 0


def check(fault: Fault, stages: Stages, tmp_path: Path) -> None:
    if fault.root and not can_mount():
        pytest.skip("needs root, for a disk of its own")
    stage = stages.get(fault.stage)
    outcome = run_fault(stage, fault, num_requests=_NUM_REQUESTS, rounds=1)
    if outcome.error or outcome.violations:
        path = keep(outcome, stage, tmp_path)
        stages.close()
        print(f"seed {outcome.seed}, again with AXON_FAULT_SEED={outcome.seed}; history and logs are in {path}")
    assert not outcome.error, f"the fault did not happen: {outcome.error}"
    assert not outcome.violations, "\n".join(f"{each.kind}: {each.what}" for each in outcome.violations[:10])
    assert outcome.proofs
    if stage.has_head:
        check_drafts(stage)


def check_drafts(stage: Stage) -> None:
    """The answers, which the fault has not changed, are those of an engine without a head; and drafts were accepted."""
    assert answers_without_a_head(stage.folder / "model", stage.asks) == [ask.texts for ask in stage.asks]
    drafted, accepted = (
        stage.fleet.metric(rf'axon_draft_tokens_total\{{.*source="model",stage="{each}".*\}}')
        for each in ("drafted", "accepted")
    )
    assert 0 < accepted < drafted


def answers_without_a_head(model: Path, asks: Sequence[Ask]) -> list[tuple[str, ...]]:
    """By an engine of this process."""
    engine = open_engine(model, with_config(dtype="int8", block_size=16, kv_memory_bytes=16 << 20), speculate=False)
    named = ("max_tokens", "min_tokens", "temperature", "seed")
    adds = [
        make_add(
            f"{ask.name} {choice}",
            prompt=[CHARACTERS.index(character) for character in ask.body["prompt"]],
            choice=choice,
            **{name: ask.body[name] for name in named if name in ask.body},
        )
        for ask in asks
        for choice in range(ask.num_choices)
    ]
    said = {id: "".join(CHARACTERS[token] for token in tokens) for id, tokens in run_to_end(engine, adds).items()}
    engine.close()
    return [tuple(said[f"{ask.name} {choice}"] for choice in range(ask.num_choices)) for ask in asks]
