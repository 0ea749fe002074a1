"""A version that no worker could serve is refused when it is registered, not when a server starts with it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from axon.adapters.store.sqlite import SqliteStore
from axon.bootstrap.registry import make_catalog
from axon.bootstrap.version_settings import check_servable, settings_of
from axon.domain.registry.model import Model
from axon.domain.registry.version import EngineSettings, Version
from axon.errors import InvalidInput
from axon.runtime.clock import FakeClock
from axon.settings import Settings
from tests.domain.registry.builders import nobody_pinned, version

GOOD = replace(version(), digest="d" * 64)


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"digest": "../../etc/passwd"}, "digest"),
        ({"digest": "D" * 64}, "digest"),
        ({"source": "ftp://host/model"}, "source"),
        ({"source": "hf://../name"}, "source"),
        ({"settings": EngineSettings(kind="other")}, "settings"),
        ({"settings": EngineSettings(dtype="float8")}, "settings"),
        ({"settings": EngineSettings(more=(("sequences", "8"),))}, "settings"),
        ({"settings": EngineSettings(more=(("max_sequences", "many"),))}, "settings"),
    ],
)
def test_a_version_that_no_worker_could_serve_is_refused(wrong: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        check_servable(replace(GOOD, **wrong))
    assert refusal.value.param == param


@pytest.mark.parametrize(
    "good",
    [
        GOOD,
        replace(GOOD, source="hf://maker/tiny@main"),
        replace(GOOD, source="echo", settings=EngineSettings(kind="echo", more=(("echo_shift", "1"),))),
        replace(GOOD, settings=EngineSettings(dtype="float32", max_model_len=512)),
    ],
)
def test_any_other_version_is_served_with_its_own_settings(good: Version) -> None:
    check_servable(good)
    assert settings_of(Settings(), good, "chat").model == good.source


async def test_the_catalog_of_every_process_refuses_it(tmp_path: Path) -> None:
    store, clock = SqliteStore(tmp_path / "axon.db"), FakeClock()
    await store.open()
    catalog = make_catalog(Settings(data_dir=tmp_path), store, clock, None, nobody_pinned)
    model = Model(name="small", created=0.0)
    wrong = replace(GOOD, settings=EngineSettings(more=(("sequences", "8"),)))
    with pytest.raises(InvalidInput, match="no setting of an engine"):
        await catalog.add_model(model, wrong, deploys=True, actor="ops")
    assert not (await catalog.snapshot()).models
    await catalog.add_model(model, GOOD, deploys=True, actor="ops")
    with pytest.raises(InvalidInput, match="no digest"):
        await catalog.add_version(replace(GOOD, label="v2", digest="other"), actor="ops")
    await store.aclose()
