"""gRPC of servers that are set up for one test: with schemas, vectors, budgets, several processes, at their end."""

import json
import os
import signal
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub

from axon.oip import inference_pb2 as oip
from axon.oip.inference_pb2_grpc import GRPCInferenceServiceStub
from axon.v1 import axon_pb2 as pb
from tests.journeys.conftest import PATIENT, Fresh, Settings
from tests.journeys.grpc_line import (
    PATIENCE_S,
    Line,
    address_of,
    bearer,
    chat,
    opened,
    prompt,
    read_on,
    refused,
    text_of,
)
from tests.journeys.server import running, wait_until
from tests.journeys.test_embeddings import DIMENSIONS, TEXTS, expected

GRPC: Settings = {"grpc_enabled": "true", "grpc_port": 0}
LONG: dict[str, Any] = {"max_tokens": 300, "ignore_eos": True, "temperature": 0}
LONG_FORM = pb.Sampling(max_tokens=200, temperature=0)
FOX = "The quick brown fox, größer, 更大. " * 12


def test_tools_and_schemas_are_asked_as_over_http(fresh: Fresh) -> None:
    server = fresh.start(**GRPC)
    city = {"type": "string", "enum": ["Paris"]}
    schema = json.dumps(
        {"type": "object", "properties": {"city": city}, "required": ["city"], "additionalProperties": False}
    )
    with opened(address_of(server), server.key) as line:
        form = pb.Form(json_schema=schema)
        asked = pb.GenerateRequest(turn=pb.Turn(model="echo", prompt="a", form=form, sampling=LONG_FORM))
        assert json.loads(text_of(line.generate(asked))) == {"city": "Paris"}
        tool = pb.Tool(name="look", parameters=schema, strict=True)
        messages = [pb.Message(role="user", content="look")]
        chat = pb.Chat(messages=messages, tools=[tool], function="look")
        got = list(line.generate(pb.GenerateRequest(turn=pb.Turn(model="echo", chat=chat, sampling=LONG_FORM))))
    calls = [call for message in got for delta in message.deltas for call in delta.tool_calls]
    assert [call.name for call in calls if call.name] == ["look"]
    assert calls[0].id.startswith("call_")
    assert json.loads("".join(call.arguments for call in calls)) == {"city": "Paris"}
    assert [each.reason for each in got[-1].finishes] == ["tool_calls"]


def test_embeddings(place: Callable[[], Settings], tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = {"engine_kind": "echo", "engine_echo_dimensions": DIMENSIONS, "model_name": "vectors"}
    with (
        running(tmp_path_factory.mktemp("vectors") / "data", **settings, **GRPC, **PATIENT, **place()) as server,
        opened(address_of(server), server.key) as line,
    ):
        found = line.ask("Embed", pb.EmbedRequest(model="vectors", texts=TEXTS))
        assert [tuple(each.values) for each in found.vectors] == [expected(text) for text in TEXTS]
        assert found.usage.prompt_tokens == sum(len(text.encode()) for text in TEXTS)
        ids = [pb.TokenIds(ids=text.encode()) for text in TEXTS]
        assert line.ask("Embed", pb.EmbedRequest(model="vectors", token_ids=ids)).vectors == found.vectors
        wrong = (pb.EmbedRequest(model="vectors"), pb.EmbedRequest(model="vectors", texts=["a"], dimensions=7))
        for asked in wrong:
            with pytest.raises(grpc.RpcError) as failed:
                line.ask("Embed", asked)
            assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        code, error = refused(line.generate(chat(model="vectors")))
        assert (code, error.code) == (grpc.StatusCode.INVALID_ARGUMENT, "model_not_supported")
        [model] = line.ask("ListModels", pb.ListModelsRequest()).models
        assert list(model.capabilities) == ["embeddings"]
        inference: Any = GRPCInferenceServiceStub(line.channel)
        told = inference.ModelMetadata(oip.ModelMetadataRequest(name="vectors"), metadata=bearer(server.key))
        assert list(told.outputs[0].shape) == [-1, DIMENSIONS]


def test_a_spent_budget_and_a_rate_are_told_with_their_time(fresh: Fresh) -> None:
    server = fresh.start(**GRPC, engine_echo_step_s=0.01, admission_requests_per_minute=2, admission_tokens_per_day=40)
    with opened(address_of(server), server.key) as line:
        got = list(line.generate(prompt("on and on", max_tokens=1000, ignore_eos=True)))
        assert got[-1].end.stopped == "budget"
        code, error = refused(line.generate(prompt("more", max_tokens=1)))
        assert (code, error.code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "insufficient_quota")
        assert not error.HasField("retry_after_ms")
        found = [refused(line.generate(prompt("more", temperature=9))) for _ in range(3)]
        code, error = found[-1]
        assert (code, error.code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "rate_limit_exceeded")
        assert error.retry_after_ms > 0


def test_a_server_that_ends_lets_streams_be_resumed_and_takes_no_new_call(fresh: Fresh) -> None:
    server = fresh.start(**GRPC, engine_echo_step_s=0.02, lifecycle_drain_s=1.0)
    address = address_of(server)
    with opened(address, server.key) as line:
        call = line.generate(prompt("on and on " * 9, max_tokens=400, ignore_eos=True, temperature=0))
        got = [next(call) for _ in range(5)]
        os.kill(server.pid, signal.SIGTERM)
        health: Any = HealthStub(line.channel)

        def is_draining() -> bool:
            answer = health.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE_S)
            return bool(answer.status == health_pb2.HealthCheckResponse.NOT_SERVING)

        wait_until(is_draining, "the server drains")
        wait_until(lambda: refused_with(line, "draining"), "new turns are refused")
        assert read_on(call, got) is grpc.StatusCode.UNAVAILABLE
        assert dict(call.trailing_metadata())["x-axon-code"] == "draining"
        server.stop()
        seq, text = got[-1].seq, text_of(got)
    server = fresh.start(**GRPC)
    with opened(address_of(server), server.key) as line:
        rest = text_of(line.resume(got[0].begun.id, seq))
        whole = text_of(line.generate(prompt("on and on " * 9, max_tokens=400, ignore_eos=True, temperature=0)))
        assert text + rest == whole


def refused_with(line: Line, code: str) -> bool:
    try:
        for _ in line.generate(prompt("more", max_tokens=1)):
            return False
    except grpc.RpcError as failed:
        found: Any = failed
        assert found.code() is grpc.StatusCode.UNAVAILABLE
        return dict(found.trailing_metadata()).get("x-axon-code") == code
    return False


def test_a_killed_engine_is_not_noticed(fresh: Fresh) -> None:
    server = fresh.start(**GRPC, engine_echo_step_s=0.01)
    with opened(address_of(server), server.key) as line:
        whole = text_of(line.generate(prompt(FOX, **LONG)))
        call = line.generate(prompt(FOX, **LONG))
        got = [next(call) for _ in range(20)]
        for pid in server.engine_pids():
            os.kill(pid, signal.SIGKILL)
        got += list(call)
        assert text_of(got) == whole


def test_several_processes_serve_one_grpc_port(fresh: Fresh) -> None:
    server = fresh.start(**GRPC, gateway_processes=2)
    for _ in range(8):
        with opened(address_of(server), server.key) as line:
            assert text_of(line.generate(chat("hello there", temperature=0))) == "user: hello there\nassistant:"
