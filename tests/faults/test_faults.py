"""A slice of the fault program: some of the faults always, one of some others, once each, under a few requests.
``make faults`` is all of it."""

from pathlib import Path

import pytest

from tests.faults.every import FAULTS
from tests.faults.fault import Fault
from tests.faults.run import keep, run_fault
from tests.faults.stage import Stages
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
