"""What a real vLLM was told and said, played back: the same is told to it, and the same is made of what it says.

``make record-vllm`` records it anew.
"""

import base64
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from axon.engine.config import EngineConfig
from axon.engine.protocol.codec import Decoder
from axon.engine.protocol.messages import Abort, Add, StepOutput
from axon.engine.vllm.engine import VllmEngine
from tests.engine.vllm.record import RECORDED, script


class Player:
    """vLLM as it was recorded: every call must be the next in the record."""

    def __init__(self, lines: list[dict[str, Any]]) -> None:
        self._lines, self._place = lines, 0
        self.llm, self.refusals = self, (ValueError,)
        opened = self.next("opened")["opened"]
        self.kernel, self.eos_ids = opened["kernel"], opened["eos_ids"]
        self.max_model_len, self.max_sequences = opened["max_model_len"], opened["max_sequences"]
        self.num_blocks, self.block_size = opened["num_blocks"], opened["block_size"]

    @property
    def is_over(self) -> bool:
        return self._place == len(self._lines)

    @property
    def kind(self) -> str:
        """What the next line is."""
        return next(iter(self._lines[self._place]))

    def next(self, kind: str) -> dict[str, Any]:
        line = self._lines[self._place]
        assert next(iter(line)) == kind, f"line {self._place + 1} is no {kind}: {line}"
        self._place += 1
        return line

    def sampling(self, arguments: dict[str, Any], grammar: str) -> str:
        line = self.next("sampling")
        assert _json(arguments) == line["sampling"]
        assert grammar == line["grammar"]
        return "parameters"

    def add_request(self, request_id: str, prompt: Any, params: Any, *, priority: int = 0) -> str:
        line = self.next("add")
        assert (request_id, prompt, priority, params) == (line["add"], line["prompt"], line["priority"], "parameters")
        if "refused" in line:
            raise ValueError(line["refused"])
        return f"{request_id}-internal"

    def follow(self, request_id: str, token_ids: list[int]) -> None:
        assert self.next("follow")["follow"] == token_ids

    def abort_request(self, request_ids: list[str]) -> None:
        assert self.next("abort")["abort"] == request_ids

    def step(self) -> list[Any]:
        return [_output(each) for each in self.next("step")["step"]]

    def num_free_blocks(self) -> int:
        return int(self.next("free")["free"])

    def close(self) -> None: ...


def _json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _output(plain: dict[str, Any]) -> Any:
    completion = SimpleNamespace(
        token_ids=plain["token_ids"], logprobs=_likely(plain["logprobs"]), finish_reason=plain["finish_reason"]
    )
    return SimpleNamespace(
        request_id=plain["request_id"],
        outputs=[completion],
        prompt_logprobs=_likely(plain["prompt_logprobs"]),
        num_cached_tokens=plain["num_cached_tokens"],
    )


def _likely(rows: Any) -> Any:
    if rows is None:
        return None
    return [
        row and {int(id): SimpleNamespace(logprob=value, rank=rank) for id, (value, rank) in row.items()}
        for row in rows
    ]


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RECORDED.read_text().splitlines()]


def message_of(frame: str) -> Any:
    (message,) = Decoder().feed(base64.b64decode(frame))
    return message


def played(lines: list[dict[str, Any]]) -> list[tuple[StepOutput, StepOutput]]:
    """The outputs of each step, as they were recorded and as they are made now."""
    player = Player(lines)
    engine = VllmEngine(EngineConfig(kind="vllm"), player)
    outputs = []
    while not player.is_over:
        if player.kind == "told":
            match message_of(player.next("told")["told"]):
                case Add() as add:
                    engine.add(add)
                case Abort(ids=ids):
                    engine.abort(ids)
        else:
            made = engine.step()
            outputs.append((message_of(player.next("said")["said"]), made))
    engine.check()
    return outputs


def untimed(output: StepOutput) -> StepOutput:
    return replace(output, counters=replace(output.counters, step_s=0.0))


def test_the_same_is_told_to_vllm_and_the_same_is_made_of_what_it_says(lines: list[dict[str, Any]]) -> None:
    outputs = played(lines)
    assert outputs
    for recorded, made in outputs:
        assert untimed(made) == untimed(recorded)


def test_the_record_has_every_sequence_of_the_script_to_its_end(lines: list[dict[str, Any]]) -> None:
    ended: dict[str, str] = {}
    for output in (message_of(line["said"]) for line in lines if "said" in line):
        ended |= {each.id: each.finish for each in output.emitted if each.finish}
        ended |= {each.id: each.code for each in output.refused}
    aborted = {id for line in lines if "abort" in line for id in line["abort"]}
    assert {add.id for add in script()} == ended.keys() | aborted
    assert ended["biased"] == ended["grammar"] == ended["replayed grammar"] == "stop"
    assert ended["greedy"] == "length"
    assert ended["unknown"] == ended["no grammar"] == "invalid_value"
    assert ended["long"] == "context_length_exceeded"
    assert ended["adapted"] == "adapter_unusable"


def test_a_change_of_what_vllm_is_told_would_be_noticed(lines: list[dict[str, Any]]) -> None:
    place = next(index for index, line in enumerate(lines) if "sampling" in line)
    other = {**lines[place], "sampling": {**lines[place]["sampling"], "top_p": 0.123}}
    with pytest.raises(AssertionError):
        played([*lines[:place], other, *lines[place + 1 :]])
