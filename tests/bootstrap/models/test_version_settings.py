"""A version that no worker could serve is refused when it is registered, not when a server starts with it."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from axon.adapters.store.sqlite import SqliteStore
from axon.bootstrap.models.version_settings import MORE, check_servable, settings_of
from axon.bootstrap.registry import make_catalog
from axon.domain.registry.model import Model
from axon.domain.registry.version import EngineSettings, Version
from axon.engine.config import EngineConfig
from axon.errors import InvalidInput, Misconfigured
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
        ({"settings": EngineSettings(more=(("sequences", "8"),))}, "settings.more"),
        ({"settings": EngineSettings(more=(("rendezvous", "tcp://elsewhere:1"),))}, "settings.more"),
        ({"settings": EngineSettings(more=(("dtype", "float32"),))}, "settings.more"),
        ({"settings": EngineSettings(more=(("max_sequences", "many"),))}, "settings"),
    ],
)
def test_a_version_that_no_worker_could_serve_is_refused(wrong: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        check_servable(replace(GOOD, **wrong))
    assert refusal.value.param == param


def test_a_setting_that_is_the_machines_is_refused_by_its_name_with_those_that_a_version_may_have() -> None:
    with pytest.raises(InvalidInput) as refusal:
        check_servable(replace(GOOD, settings=EngineSettings(more=(("threads", "2"), ("rendezvous", "tcp://x:1")))))
    assert refusal.value.message == (
        "'settings.more' has 'rendezvous', which is no engine setting that a version may have. It may have: "
        f"{', '.join(MORE)}."
    )
    with pytest.raises(InvalidInput, match=r"which has a field of its own: 'settings\.dtype'"):
        check_servable(replace(GOOD, settings=EngineSettings(more=(("dtype", "int8"),))))


def test_a_version_of_an_earlier_release_with_such_a_setting_is_not_loaded() -> None:
    unsafe = replace(GOOD, settings=EngineSettings(more=(("rendezvous", "tcp://elsewhere:1"),)))
    with pytest.raises(Misconfigured, match="'rendezvous'"):
        settings_of(Settings(), unsafe)


def test_every_engine_setting_is_a_versions_or_is_left_out_on_purpose() -> None:
    known = {each.name for each in fields(EngineConfig)}
    ranks = {"rendezvous", "local_ranks", "hosts", "join_timeout_s", "rank_timeout_s"}
    shelf = {"kv_host_bytes", "kv_folder", "kv_folder_bytes", "kv_folder_max_age_s"}
    vllm = {"vllm_python", "vllm_arguments"}
    of_the_machine = {*ranks, *shelf, *vllm, "share_cores", "core_weight", "policy", "echo_script", "draft_model"}
    assert known == {*MORE, "kind", "dtype", "max_model_len"} | of_the_machine


@pytest.mark.parametrize(
    "good",
    [
        GOOD,
        replace(GOOD, source="hf://maker/tiny@main"),
        replace(GOOD, source="echo", settings=EngineSettings(kind="echo", more=(("echo_shift", "1"),))),
        replace(GOOD, settings=EngineSettings(dtype="float32", max_model_len=512)),
        replace(GOOD, settings=EngineSettings(kind="vllm", more=(("max_sequences", "64"),))),
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
    with pytest.raises(InvalidInput, match="'sequences', which is no engine setting"):
        await catalog.add_model(model, wrong, deploys=True, actor="ops")
    assert not (await catalog.snapshot()).models
    await catalog.add_model(model, GOOD, deploys=True, actor="ops")
    with pytest.raises(InvalidInput, match="no digest"):
        await catalog.add_version(replace(GOOD, label="v2", digest="other"), actor="ops")
    await store.aclose()
