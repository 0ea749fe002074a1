"""The engines that keep the engine's contract, each as a process to speak to, and what each does not promise."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from axon.domain.byte_tokens import EOS_ID
from axon.engine.config import EngineConfig
from axon.engine.native import library
from axon.engine.native.build import NotBuilt
from axon.engine.protocol.codec import Start
from axon.engine.protocol.messages import Add, Emitted, Ready, Refused, Scored, StepOutput
from axon.worker.child.process import foreign_environment
from tests.engine.peer import Peer
from tests.faults import model
from tests.vllm_environment import stand_in_python, vllm_python

BITWISE_REPLAY = "bitwise replay"
STEP_SHARES = "shares of each step"
KV_SHARES = "a tenant's share of the KV blocks"
MODEL = "a model"
"""An echo gives its prompt back, whatever ends it."""
_OF_VLLM = frozenset({BITWISE_REPLAY, STEP_SHARES, KV_SHARES})


@dataclass(frozen=True, slots=True)
class Kind:
    """An engine under the contract."""

    name: str
    config: EngineConfig
    lacks: frozenset[str] = frozenset()
    """Promises that it does not make: of vLLM, docs/vllm.md says why."""
    is_bytes: bool = False
    """Its tokens are bytes, not the test model's characters."""

    def ids(self, text: str) -> list[int]:
        return list(text.encode()) if self.is_bytes else [model.CHARACTERS.index(each) for each in text]

    @property
    def end_id(self) -> int:
        return EOS_ID if self.name == "echo" else model.END_ID if not self.is_bytes else 249


SIZES: dict[str, Any] = {"threads": 1, "kv_memory_bytes": 16 << 20, "max_sequences": 4, "max_model_len": 512}
KINDS = [
    Kind("echo", EngineConfig(kind="echo", **SIZES, echo_step_s=0.002), frozenset({MODEL}), is_bytes=True),
    Kind("native", EngineConfig(device="cpu", dtype="int8", **SIZES)),
    Kind("torch", EngineConfig(device="cpu", dtype="float32", **SIZES)),
    Kind("vllm stand-in", EngineConfig(kind="vllm", device="cpu", **SIZES), _OF_VLLM, is_bytes=True),
    Kind(
        "vllm",
        EngineConfig(
            kind="vllm", device="cpu", dtype="float32", **SIZES, vllm_arguments=json.dumps({"enforce_eager": True})
        ),
        _OF_VLLM,
    ),
]


def kinds(*promises: str) -> pytest.MarkDecorator:
    """Runs a test of the contract with every engine; one that does not promise it is skipped with that reason."""

    def marked(kind: Kind) -> object:
        missing = [each for each in promises if each in kind.lacks]
        reason = f"{kind.name} does not promise {', '.join(missing)}"
        return pytest.param(kind, id=kind.name, marks=[pytest.mark.skip(reason=reason)] if missing else [])

    return pytest.mark.parametrize("kind", [marked(kind) for kind in KINDS])


@dataclass(slots=True)
class Answer:
    """What came of one sequence."""

    emitted: list[Emitted] = field(default_factory=list)
    scored: list[Scored] = field(default_factory=list)
    refused: Refused | None = None

    @property
    def tokens(self) -> list[int]:
        return [each.token for each in self.emitted]

    @property
    def finish(self) -> str | None:
        return self.emitted[-1].finish if self.emitted else None

    @property
    def has_ended(self) -> bool:
        return self.refused is not None or self.finish is not None


class Running:
    """An engine's process, asked one thing after the other."""

    def __init__(self, kind: Kind, peer: Peer, ready: Ready) -> None:
        self.kind, self.peer, self.ready = kind, peer, ready
        self._num_asked = 0

    def new_id(self) -> str:
        self._num_asked += 1
        return str(self._num_asked)

    def ask(self, *adds: Add) -> dict[str, Answer]:
        """Runs sequences to their ends; by id, in the order in which they ended."""
        answers = {add.id: Answer() for add in adds}
        ended: dict[str, Answer] = {}
        self.peer.send(*adds)
        while len(ended) < len(adds):
            take(self.peer.receive(StepOutput), answers)
            ended |= {id: each for id, each in answers.items() if each.has_ended and id not in ended}
        return ended

    def one(self, add: Add) -> Answer:
        return self.ask(add)[add.id]


def take(output: StepOutput, answers: dict[str, Answer]) -> None:
    """Takes a step's output into the answers that it belongs to."""
    for scored in output.scored:
        if scored.id in answers:
            answers[scored.id].scored.append(scored)
    for emitted in output.emitted:
        if emitted.id in answers:
            answers[emitted.id].emitted.append(emitted)
    for refused in output.refused:
        if refused.id in answers:
            answers[refused.id].refused = refused


@contextmanager
def started(kind: Kind, folder: Path) -> Iterator[Running]:
    """Starts the engine with the test model in the folder."""
    peer = _peer(kind, folder)
    try:
        peer.socket.settimeout(300)
        peer.send(Start(config=kind.config, model_dir="" if kind.name == "echo" else str(folder)))
        yield Running(kind, peer, peer.receive(Ready))
    finally:
        peer.close()


def _peer(kind: Kind, folder: Path) -> Peer:
    if kind.name == "native":
        try:
            library.load()
        except NotBuilt as error:
            pytest.skip(f"no native kernels here: {error}")
    if kind.config.kind != "vllm":
        return Peer()
    python = stand_in_python(folder.parent) if kind.name == "vllm stand-in" else vllm_python()
    return Peer(python, foreign_environment(os.environ))
