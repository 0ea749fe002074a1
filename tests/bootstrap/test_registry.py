from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from axon.bootstrap.registry import removed_in
from axon.domain.registry.model import Model
from tests.contracts.builders import make_job
from tests.domain.registry.builders import deployment, snapshot, version


@pytest.mark.parametrize(
    ("asked", "is_removed"),
    [
        ("small@v1", False),
        ("small@v3", True),
        ("small@v9", True),
        ("fp_of_v1", False),
        ("fp_unknown", None),
        ("large@v1", None),
    ],
)
def test_only_versions_that_left_their_deployment_are_removed(asked: str, is_removed: bool | None) -> None:
    found = snapshot(deployment())
    records = {each.id: each for each in (replace(version("v1"), fingerprints=("fp_of_v1",)), version("v3"))}
    found = replace(found, models={"small": Model(name="small", created=1.0)}, versions=records)
    view: Any = SimpleNamespace(snapshot=found, is_fresh=True)
    job = make_job(deployment="small", version=asked)
    assert removed_in(view)(job) is is_removed
    view.is_fresh = False
    assert removed_in(view)(job) is not True
