"""The interpreter with vLLM is looked at before anything slow is done, and a model that only it may run is told so."""

import json
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from axon.adapters.live.memory.presences import MemoryPresences
from axon.bootstrap.models.fetching import fetch_version
from axon.bootstrap.models.model import prepare_model
from axon.bootstrap.models.preflight import require_engine
from axon.bootstrap.models.vllm import find_vllm, vllm_hint
from axon.bootstrap.worker.deployed import find_deployed
from axon.domain.registry.deployment import Deployment, Member, MemberState
from axon.domain.registry.snapshot import Snapshot
from axon.domain.registry.version import EngineSettings
from axon.engine.config import EngineConfig
from axon.errors import InvalidInput, Misconfigured
from axon.runtime.clock import FakeClock
from axon.settings import Settings
from axon.worker.config import WorkerConfig
from tests.domain.registry.builders import version
from tests.faults.model import FOR_VLLM, make_model
from tests.vllm_environment import stand_in_python


@pytest.fixture
def python(tmp_path: Path) -> str:
    return stand_in_python(tmp_path)


def program(folder: Path, *lines: str) -> str:
    """An interpreter that says what it is told to."""
    path = folder / "python-of-a-test"
    path.write_text("\n".join(["#!/bin/sh", *lines]))
    path.chmod(0o755)
    return str(path)


def test_a_server_for_vllm_needs_its_interpreter(tmp_path: Path) -> None:
    for python, said in (
        ("", r"needs engine\.vllm_python, .*pip install vllm"),
        (str(tmp_path / "none"), r"none is no Python interpreter that can be run: .*No such file"),
    ):
        with pytest.raises(Misconfigured, match=said):
            require_engine([EngineConfig(kind="vllm", vllm_python=python)])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("echo hello", "it does not answer as Python does$"),
        ("exit 3", "it ended with 3$"),
        ("echo one >&2; echo two >&2; exit 1", "can be run: two$"),
    ],
)
def test_what_is_no_interpreter_is_refused_in_one_line(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(Misconfigured, match=said):
        require_engine([EngineConfig(kind="vllm", vllm_python=program(tmp_path, line))])


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"python": [3, 10], "found": {"vllm": "x", "msgspec": "y"}}, r"is Python 3\.10; .* needs 3\.11 or newer"),
        ({"python": [3, 12], "found": {"msgspec": "y"}}, r"has no vllm: `.* -m pip install vllm`"),
        ({"python": [3, 12], "found": {"vllm": "x"}}, r"has no msgspec: `.* -m pip install msgspec`"),
    ],
)
def test_an_environment_that_lacks_something_is_refused_by_name(tmp_path: Path, answer: object, said: str) -> None:
    python = program(tmp_path, f"echo '{json.dumps(answer)}'")
    with pytest.raises(Misconfigured, match=said):
        find_vllm(EngineConfig(kind="vllm", vllm_python=python))


def test_arguments_that_cannot_be_read_are_refused_before_the_interpreter_is_asked(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"engine\.vllm_arguments is no JSON"):
        require_engine([EngineConfig(kind="vllm", vllm_python="/none", vllm_arguments="{")])


def test_its_table_of_models_is_read_without_importing_it(python: str) -> None:
    found = find_vllm(EngineConfig(kind="vllm", vllm_python=python))
    assert found.knows("FalconH1ForCausalLM")
    assert not found.knows("Odd")


def test_the_hint_says_whether_vllm_may_run_it(python: str) -> None:
    with_vllm = EngineConfig(vllm_python=python)
    assert "`engine: vllm` may run it: add it with --engine vllm" in vllm_hint(with_vllm, "FalconH1ForCausalLM")
    assert "does not know Odd either" in vllm_hint(with_vllm, "Odd")
    assert "does not know it either" in vllm_hint(with_vllm, "")
    assert "was not asked: set engine.vllm_python" in vllm_hint(EngineConfig(), "FalconH1ForCausalLM")
    assert "cannot be asked" in vllm_hint(EngineConfig(vllm_python="/none"), "FalconH1ForCausalLM")


def odd_model(folder: Path, model_type: str, architecture: str) -> Path:
    """A model of a family that Axon's engine does not know."""
    make_model(folder, **FOR_VLLM)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps(config | {"model_type": model_type, "architectures": [architecture]})
    )
    return folder


def settings(tmp_path: Path, python: str) -> Settings:
    return Settings(data_dir=tmp_path, models_dir=tmp_path / "models", engine=EngineConfig(vllm_python=python))


async def test_adding_a_model_that_only_vllm_may_run_says_so_and_with_it_is_registered_so(
    tmp_path: Path, python: str
) -> None:
    source = str(odd_model(tmp_path / "falcon", "falcon_h1", "FalconH1ForCausalLM"))
    with pytest.raises(InvalidInput) as refusal:
        await fetch_version(settings(tmp_path, python), model="falcon", source=source)
    said = refusal.value.message
    assert said.startswith(
        f"{source} cannot be served: models of type 'falcon_h1' are not supported yet: the engine lacks"
    )
    assert said.endswith("; vLLM has FalconH1ForCausalLM, so `engine: vllm` may run it: add it with --engine vllm")
    assert "\n" not in said
    fetched = await fetch_version(settings(tmp_path, python), model="falcon", source=source, engine="vllm")
    assert (fetched.version.settings.kind, fetched.version.max_model_len) == ("vllm", 1024)


async def test_adding_a_model_that_neither_knows_says_what_is_missing_and_what_is_nearest(
    tmp_path: Path, python: str
) -> None:
    source = str(odd_model(tmp_path / "odd", "mamba", "OddForCausalLM"))
    for engine in ("", "vllm"):
        with pytest.raises(InvalidInput) as refusal:
            await fetch_version(settings(tmp_path, python), model="odd", source=source, engine=engine)
        said = refusal.value.message
        assert "the engine lacks state space layers; the nearest architecture that works is llama" in said
        assert "vLLM" in said
        assert "know OddForCausalLM" in said
        assert "\n" not in said


async def test_a_model_that_axons_engine_alone_knows_is_sent_there(tmp_path: Path, python: str) -> None:
    source = str(odd_model(tmp_path / "own", "llama", "OnlyHereForCausalLM"))
    with pytest.raises(InvalidInput, match="Axon's own engine has llama: add it without --engine vllm"):
        await fetch_version(settings(tmp_path, python), model="own", source=source, engine="vllm")
    assert (await fetch_version(settings(tmp_path, python), model="own", source=source)).version.settings.kind == ""


async def test_where_no_vllm_is_named_it_is_said_that_it_may_be(tmp_path: Path) -> None:
    source = str(odd_model(tmp_path / "odd", "mamba", "OddForCausalLM"))
    with pytest.raises(InvalidInput) as refusal:
        await fetch_version(settings(tmp_path, ""), model="odd", source=source)
    assert refusal.value.message.endswith(
        "vLLM may run it as a second engine, and was not asked: set engine.vllm_python"
    )


def test_a_server_prepares_a_model_that_only_vllm_knows_and_needs_its_text(tmp_path: Path, python: str) -> None:
    folder = odd_model(tmp_path / "falcon", "falcon_h1", "FalconH1ForCausalLM")
    plain = settings(tmp_path, python)
    chosen = replace(plain, model=str(folder), engine=replace(plain.engine, kind="vllm"))
    assert prepare_model(chosen, lambda what, share: None).folder == folder
    (folder / "tokenizer.json").unlink()
    with pytest.raises(Misconfigured, match=r"has no tokenizer\.json"):
        prepare_model(chosen, lambda what, share: None)


async def test_a_worker_without_vllm_refuses_a_version_that_needs_it_before_it_fetches(tmp_path: Path) -> None:
    needs_it = replace(version(), settings=EngineSettings(kind="vllm"))
    member = Member(version=needs_it.id, state=MemberState.READY)
    chat = Deployment(name="chat", model=needs_it.model, members=(member,), stable=needs_it.id, created=1.0)
    known = Snapshot(revision=1, versions={needs_it.id: needs_it}, deployments={"chat": chat})
    worker = replace(Settings(data_dir=tmp_path), worker=WorkerConfig(deployment="chat"))
    deployed = await find_deployed(worker, known, MemoryPresences(FakeClock()))
    async with AsyncExitStack() as stack:
        with pytest.raises(Misconfigured, match=r"engine\.kind = vllm needs engine\.vllm_python"):
            await deployed.model(lambda what, share: None, stack)
