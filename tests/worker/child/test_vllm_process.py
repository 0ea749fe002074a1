"""vLLM's process as a worker sees it: its environment, its death, and what it says when it cannot start."""

import base64
import json
import shlex
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from axon.engine.config import EngineConfig
from axon.engine.protocol.codec import encode
from axon.engine.protocol.messages import Ready, Refused, StepOutput
from axon.errors import EngineDied
from axon.worker.child.process import EngineProcess, foreign_environment
from tests.engine.builders import make_add
from tests.engine.vllm.record import RECORDED
from tests.vllm_environment import stand_in_python

POISON, FAILING = [241, 241, 241], [243, 243, 243]
"""What the stand-in obeys."""


@pytest.fixture
def config(tmp_path: Path) -> EngineConfig:
    return EngineConfig(kind="vllm", vllm_python=stand_in_python(tmp_path), device="cpu", max_sequences=2)


@pytest.fixture
async def engine(config: EngineConfig, tmp_path: Path) -> AsyncIterator[EngineProcess]:
    process = EngineProcess(config, tmp_path)
    await process.open(timeout_s=60)
    yield process
    await process.aclose()


async def outputs_until_death(engine: EngineProcess) -> list[StepOutput]:
    return [output async for output in engine.outputs()]


async def test_what_kills_it_ends_its_outputs_and_leaves_its_name(engine: EngineProcess) -> None:
    engine.add(make_add("fine", prompt=5, max_tokens=400, ignore_eos=True))
    engine.add(make_add("deadly", prompt=POISON))
    await outputs_until_death(engine)
    assert "deadly" in engine.in_step


async def test_an_error_of_a_step_is_its_death_too(engine: EngineProcess) -> None:
    engine.add(make_add("deadly", prompt=FAILING))
    await outputs_until_death(engine)
    assert engine.in_step == {"deadly"}


async def test_what_vllm_does_not_take_is_refused_with_its_words_and_others_go_on(engine: EngineProcess) -> None:
    engine.add(make_add("unknown", prompt=[9999]))
    engine.add(make_add("wild", prompt=3, presence_penalty=5.0))
    engine.add(make_add("adapted", prompt=3, adapter="d" * 64))
    engine.add(make_add("fine", prompt=3, max_tokens=2, ignore_eos=True))
    refused: dict[str, Refused] = {}
    finished: set[str] = set()
    async for output in engine.outputs():
        refused |= {each.id: each for each in output.refused}
        finished |= {each.id for each in output.emitted if each.finish}
        if len(refused) == 3 and finished:
            break
    assert refused["unknown"].message.endswith("9999 is out of vocabulary"), "one line is enough"
    assert "presence_penalty must be" in refused["wild"].message
    assert refused["adapted"].code == "adapter_unusable"
    assert finished == {"fine"}


@pytest.mark.parametrize(
    ("folder", "changes", "said"),
    [
        ("broken", {}, r"Model architectures \['Odd'\] are not supported"),
        ("model", {"dtype": "int8"}, "int8 is not for vLLM"),
        ("model", {"vllm_arguments": json.dumps({"no_such": 1})}, "does not take what engine.vllm_arguments says"),
    ],
)
async def test_what_cannot_start_says_why(
    config: EngineConfig, tmp_path: Path, folder: str, changes: dict[str, str], said: str
) -> None:
    process = EngineProcess(replace(config, **changes), tmp_path / folder)  # type: ignore[arg-type]
    with pytest.raises(EngineDied, match=said):
        await process.open(timeout_s=60)
    await process.aclose()


async def test_an_interpreter_without_vllm_says_so(tmp_path: Path) -> None:
    config = EngineConfig(kind="vllm", vllm_python=sys.executable, device="cpu")
    process = EngineProcess(config, tmp_path)
    with pytest.raises(EngineDied, match=r"has no vLLM that can be imported .*: pip install vllm there"):
        await process.open(timeout_s=60)
    await process.aclose()


async def test_an_interpreter_that_is_not_there_says_so(tmp_path: Path) -> None:
    process = EngineProcess(EngineConfig(kind="vllm", vllm_python="/none/python"), tmp_path)
    with pytest.raises(EngineDied, match="could not be started: No such file"):
        await process.open(timeout_s=60)


def test_it_gets_neither_our_settings_nor_our_packages() -> None:
    ours = {"AXON_STORE": "postgresql://secret", "PYTHONPATH": "/ours", "PYTHONHOME": "/ours", "HOME": "/root"}
    environment = foreign_environment({**ours, "VIRTUAL_ENV": "/ours", "CUDA_VISIBLE_DEVICES": "1"})
    assert environment["CUDA_VISIBLE_DEVICES"] == "1"
    assert environment["HOME"] == "/root"
    assert not {"AXON_STORE", "PYTHONHOME", "VIRTUAL_ENV"} & environment.keys()
    folder = Path(environment["PYTHONPATH"])
    assert {path.stem for path in folder.glob("*.py")} == {"axon", "__init__"}


PLAYS_FRAMES = """
import socket, sys
with socket.socket(fileno=int(sys.argv[sys.argv.index("--fd") + 1])) as peer:
    for name in ("ready", "frames"):  # the one after Start, the other after the first sequence
        peer.recv(1 << 16)
        with open({folder!r} + "/" + name, "rb") as file:
            peer.sendall(file.read())
    peer.recv(1 << 16)
"""


async def test_a_worker_reads_the_frames_that_a_real_vllm_has_sent(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    frames = [base64.b64decode(line["said"]) for line in lines if "said" in line]
    ready = Ready(**next(line["opened"] for line in lines if "opened" in line))
    (tmp_path / "ready").write_bytes(encode(ready))
    (tmp_path / "frames").write_bytes(b"".join(frames))
    (tmp_path / "plays.py").write_text(PLAYS_FRAMES.format(folder=str(tmp_path)))
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {tmp_path / "plays.py"} "$@"\n')
    program.chmod(0o755)
    engine = EngineProcess(EngineConfig(kind="vllm", vllm_python=str(program)), tmp_path)
    assert await engine.open(timeout_s=60) == ready
    engine.add(make_add("greedy"))
    tokens: dict[str, int] = {}
    num_outputs = 0
    async for output in engine.outputs():
        num_outputs += 1
        for emitted in output.emitted:
            tokens[emitted.id] = tokens.get(emitted.id, 0) + 1
        if num_outputs == len(frames):
            break
    await engine.aclose()
    assert (tokens["greedy"], tokens["likely"], tokens["penalised"]) == (6, 3, 4)
