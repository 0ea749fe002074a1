"""gRPC over the whole way, with grpcio's stub: answers, resumption, deadlines, errors, health and reflection."""

import contextlib
import io
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.reflection_pb2_grpc import ServerReflectionStub

from axon.gateway.grpc.methods import AXON, SERVICES
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
from tests.journeys.server import REPOSITORY, Server, running, wait_until
from tests.journeys.sse import pieces
from tests.journeys.sse import text_of as sse_text
from tests.journeys.test_cancel import cancelled
from tests.journeys.test_tenants import axon

GRPC: Settings = {"grpc_enabled": "true", "grpc_port": 0}
LONG: dict[str, Any] = {"max_tokens": 300, "ignore_eos": True, "temperature": 0}
LONG_FORM = pb.Sampling(max_tokens=200, temperature=0)
FOX = "The quick brown fox, größer, 更大. " * 12


@pytest.fixture(scope="module")
def server(place: Callable[[], Settings], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with time between its tokens."""
    settings = {"engine_kind": "echo", "engine_echo_step_s": 0.003, **GRPC, **PATIENT, **place()}
    with running(tmp_path_factory.mktemp("grpc") / "data", **settings) as server:
        yield server


@pytest.fixture
def line(server: Server) -> Iterator[Line]:
    with opened(address_of(server), server.key) as line:
        yield line


@pytest.mark.everywhere
def test_a_chat_is_answered_token_by_token(line: Line) -> None:
    call = line.generate(chat("hello there", temperature=0))
    got = list(call)
    assert text_of(got) == "user: hello there\nassistant:"
    first, last = got[0], got[-1]
    assert first.begun.id.startswith("chatcmpl-")
    assert (first.begun.model, first.begun.service_tier) == ("echo", "default")
    assert [message.seq for message in got] == sorted(message.seq for message in got)
    assert [(each.choice, each.reason) for each in last.finishes] == [(0, "stop")]
    assert last.end.usage.output_tokens == last.seq == 29, "and the end token"
    assert last.end.usage.prompt_tokens > 0
    told = dict(call.initial_metadata())
    assert told["x-axon-stream"] == first.begun.id
    assert told["x-request-id"]
    assert call.code() is grpc.StatusCode.OK


def test_several_choices_and_log_probabilities_come_by_choice(line: Line) -> None:
    got = list(line.generate(prompt("one two three", choices=3, max_tokens=5, ignore_eos=True, logprobs=2)))
    assert {each.choice for message in got for each in message.deltas} == {0, 1, 2}
    assert sorted((each.choice, each.reason) for message in got for each in message.finishes) == [
        (choice, "length") for choice in range(3)
    ]
    scored = [each for message in got for delta in message.deltas if delta.choice == 1 for each in delta.logprobs]
    assert len(scored) == 5
    assert all(each.logprob <= 0 and each.token and each.top for each in scored)


@pytest.mark.everywhere
def test_a_reader_that_leaves_comes_back_for_exactly_the_rest(line: Line) -> None:
    whole = text_of(line.generate(prompt(FOX, **LONG)))
    call = line.generate(prompt(FOX, **LONG))
    got: list[pb.GenerateResponse] = []
    for message in call:
        got.append(message)
        if message.seq >= 40:
            break
    call.cancel()
    turn_id, seq = got[0].begun.id, got[-1].seq
    rest = list(line.resume(turn_id, seq))
    assert text_of(got) + text_of(rest) == whole
    assert rest[0].begun.id == turn_id
    assert rest[-1].end.usage.output_tokens == 300
    again = list(line.resume(turn_id, 0))  # it has ended, and is kept for a while
    assert text_of(again) == whole


def test_what_was_begun_by_one_api_is_continued_by_the_other(server: Server, line: Line) -> None:
    whole = text_of(line.generate(prompt(FOX, **LONG)))
    body = {"model": "echo", "prompt": FOX, "stream": True, **LONG}
    with server.client() as http:
        with http.stream("POST", "/v1/completions", json=body) as reply:
            stream = pieces(reply.iter_lines())
            got = [next(stream) for _ in range(20)]
        rest = text_of(line.resume(reply.headers["x-axon-stream"], got[-1].seq))
        assert sse_text(got) + rest == whole
        begun = next(iter(line.generate(prompt(FOX, **LONG))))
        with http.stream("GET", f"/v1/streams/{begun.begun.id}?after={begun.seq}") as reply:
            assert sse_text(pieces(reply.iter_lines())) == whole


def test_a_repeated_call_finds_its_turn_and_another_body_is_refused(line: Line) -> None:
    key = ("idempotency-key", "only once")
    first = list(line.generate(chat("once"), key))
    second = list(line.generate(chat("once"), key))
    assert first[0].begun.id == second[0].begun.id
    assert text_of(first) == text_of(second)
    code, error = refused(line.generate(chat("twice"), key))
    assert (code, error.code) == (grpc.StatusCode.ALREADY_EXISTS, "idempotency_key_reused")


def test_a_turn_is_cancelled_and_its_stream_says_so(line: Line) -> None:
    call = line.generate(prompt("on and on", max_tokens=5000, ignore_eos=True))
    begun = next(iter(call)).begun
    ended = line.ask("Cancel", pb.CancelRequest(id=begun.id))
    assert (ended.id, ended.status) == (begun.id, "cancelled")
    code, error = refused(call)
    assert (code, error.code) == (grpc.StatusCode.CANCELLED, "cancelled")
    again = line.ask("Cancel", pb.CancelRequest(id=begun.id))
    assert (again.status, again.usage.output_tokens) == ("cancelled", ended.usage.output_tokens)


def test_a_call_that_is_closed_is_a_stream_that_is_closed(server: Server, line: Line) -> None:
    before = cancelled(server, "left")
    call = line.generate(prompt("on and on", max_tokens=8000, ignore_eos=True), ("x-axon-reader-grace", "0"))
    turn_id = next(iter(call)).begun.id
    call.cancel()
    wait_until(lambda: cancelled(server, "left") == before + 1, "its turn is cancelled at once")
    assert line.ask("Cancel", pb.CancelRequest(id=turn_id)).status == "cancelled"


def test_a_revoked_key_reads_nothing_more(server: Server) -> None:
    made = axon(server, "keys", "create", "--tenant", "acme")
    with opened(address_of(server), made["key"]) as acme:
        call = acme.generate(prompt("on and on", max_tokens=8000, ignore_eos=True))
        next(iter(call))
        assert server.axon("keys", "revoke", made["id"]).returncode == 0
        code, error = refused(call)
    assert (code, error.code) == (grpc.StatusCode.UNAUTHENTICATED, "key_revoked")


def test_the_deadline_of_a_call_is_the_turns(server: Server, line: Line) -> None:
    def num_expired() -> float:
        return server.metric(r'axon_turns_total\{.*outcome="expired".*\}')

    before = num_expired()
    call = line.generate(prompt("on and on", max_tokens=8000, ignore_eos=True), timeout_s=1.0)
    got: list[pb.GenerateResponse] = []
    assert read_on(call, got) is grpc.StatusCode.DEADLINE_EXCEEDED
    wait_until(lambda: num_expired() > before, "its own deadline has ended it, and not the lack of a reader")
    with server.client() as http:
        told = http.delete(f"/v1/streams/{got[0].begun.id}").json()
    assert told["status"] == "expired"


def test_a_deadline_that_has_passed_begins_nothing(server: Server) -> None:
    made = axon(server, "keys", "create", "--tenant", "latecomer")

    def counted() -> float:
        return server.metric(r'axon_tokens_total\{kind="output",tenant="latecomer"\}')

    with opened(address_of(server), made["key"]) as latecomer:
        with pytest.raises(grpc.RpcError) as failed:
            list(latecomer.generate(prompt("too late", max_tokens=5), timeout_s=0.0))
        assert failed.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        list(latecomer.generate(prompt("in time", max_tokens=3, ignore_eos=True)))
    wait_until(lambda: counted() >= 3, "the tokens of the second call are counted")
    assert counted() == 3, "the first one has none"


def test_models_are_listed(line: Line) -> None:
    [model] = line.ask("ListModels", pb.ListModelsRequest()).models
    assert (model.id, model.state, list(model.capabilities)) == ("echo", "ready", ["chat"])
    assert model.max_model_len == 8192
    assert model.version.startswith("fp_")


@pytest.mark.parametrize("key", ["", "axk_wrong", "axk_aaaaaaaa_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"])
def test_a_wrong_key_is_refused(server: Server, key: str) -> None:
    with opened(address_of(server), key) as stranger:
        code, error = refused(stranger.generate(chat()))
        assert (code, error.code) == (grpc.StatusCode.UNAUTHENTICATED, "invalid_api_key")
        assert error.type == "authentication_error"
    with grpc.insecure_channel(address_of(server)) as channel:
        method: Any = channel.unary_stream(f"/{AXON}/Generate")
        assert refused(method(b"", timeout=PATIENCE_S))[0] is grpc.StatusCode.UNAUTHENTICATED


def test_a_wrong_field_is_named(line: Line) -> None:
    wrong = {
        "model": prompt("a", model="nothing"),
        "temperature": prompt("a", temperature=9),
        "sampling.choices": prompt("a", choices=0),
        "turn": pb.GenerateRequest(turn=pb.Turn(model="echo")),
        "messages.0.role": pb.GenerateRequest(
            turn=pb.Turn(model="echo", chat=pb.Chat(messages=[pb.Message(role="king")]))
        ),
        "form.json_schema": pb.GenerateRequest(
            turn=pb.Turn(model="echo", prompt="a", form=pb.Form(json_schema='{"type": "zork"}'))
        ),
        "resume.id": pb.GenerateRequest(resume=pb.Resume(id="chatcmpl-nothing")),
        "resume.after": pb.GenerateRequest(resume=pb.Resume(id="a", after=-1)),
    }
    for param, asked in wrong.items():
        code, error = refused(line.generate(asked))
        expect = grpc.StatusCode.NOT_FOUND if param in ("model", "resume.id") else grpc.StatusCode.INVALID_ARGUMENT
        assert (code, error.param) == (expect, param), error
        assert error.type == "invalid_request_error"
        assert not error.HasField("retry_after_ms")
    assert refused(line.generate(pb.GenerateRequest()))[1].code == "missing_required_parameter"


def test_health_needs_no_key(server: Server) -> None:
    with grpc.insecure_channel(address_of(server)) as channel:
        health: Any = HealthStub(channel)
        for service in ("", AXON):
            answer = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=PATIENCE_S)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        watch = health.Watch(health_pb2.HealthCheckRequest(), timeout=PATIENCE_S)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        watch.cancel()
        with pytest.raises(grpc.RpcError) as failed:
            health.Check(health_pb2.HealthCheckRequest(service="zork"), timeout=PATIENCE_S)
        assert failed.value.code() is grpc.StatusCode.NOT_FOUND


def test_the_open_inference_protocols_calls(server: Server, line: Line) -> None:
    inference: Any = GRPCInferenceServiceStub(line.channel)
    key = {"metadata": bearer(server.key), "timeout": PATIENCE_S}
    assert inference.ServerLive(oip.ServerLiveRequest(), timeout=PATIENCE_S).live
    assert inference.ServerReady(oip.ServerReadyRequest(), timeout=PATIENCE_S).ready
    assert inference.ModelReady(oip.ModelReadyRequest(name="echo"), **key).ready
    told = inference.ServerMetadata(oip.ServerMetadataRequest(), **key)
    assert (told.name, list(told.extensions)) == ("axon", ["axon.v1"])
    model = inference.ModelMetadata(oip.ModelMetadataRequest(name="echo"), **key)
    assert (model.name, model.platform, len(model.versions)) == ("echo", "axon", 1)
    refusals: dict[grpc.StatusCode, Callable[[], object]] = {
        grpc.StatusCode.NOT_FOUND: lambda: inference.ModelReady(oip.ModelReadyRequest(name="nothing"), **key),
        grpc.StatusCode.UNAUTHENTICATED: lambda: inference.ModelReady(oip.ModelReadyRequest(name="echo")),
        grpc.StatusCode.UNIMPLEMENTED: lambda: inference.ModelInfer(oip.ModelInferRequest(model_name="echo"), **key),
    }
    for code, ask in refusals.items():
        with pytest.raises(grpc.RpcError) as failed:
            ask()
        assert failed.value.code() is code
        if code is grpc.StatusCode.UNIMPLEMENTED:
            assert "axon.v1.Axon/Generate" in str(failed.value.details())


def reflected(channel: grpc.Channel, key: str, version: str = "v1alpha", **question: str) -> Any:
    """The answer to a question of reflection, as grpcurl asks it."""
    asked = reflection_pb2.ServerReflectionRequest(**question)
    if version == "v1alpha":
        stub: Any = ServerReflectionStub(channel)
        return next(stub.ServerReflectionInfo(iter([asked]), metadata=bearer(key), timeout=PATIENCE_S))
    call: Any = channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    return next(call(iter([asked]), metadata=bearer(key), timeout=PATIENCE_S))


def test_reflection_lists_the_services_and_describes_them(server: Server, line: Line) -> None:
    for version in ("v1", "v1alpha"):
        listed = reflected(line.channel, server.key, version, list_services="")
        assert {each.name for each in listed.list_services_response.service} == SERVICES
    answer = reflected(line.channel, server.key, file_containing_symbol=AXON)
    [raw] = answer.file_descriptor_response.file_descriptor_proto
    file = FileDescriptorProto.FromString(raw)
    assert [method.name for method in file.service[0].method] == ["Generate", "Embed", "Cancel", "ListModels"]
    assert reflected(line.channel, server.key, file_containing_symbol="zork").error_response.error_code == 5


def test_the_pages_programs_run(server: Server) -> None:
    page = (REPOSITORY / "docs" / "grpc.md").read_text()
    ask, resume, *_ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    ask = ask.replace("127.0.0.1:50051", address_of(server)).replace("axk_…", server.key)
    names: dict[str, Any] = {"MODEL": "echo", "time": time}
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(ask, names)
    assert said.getvalue() == "user: What is the capital of France?\nassistant:"
    exec(resume, names)
    calls = [0]

    class Breaks:
        """The stub, whose first call breaks off."""

        def Generate(self, asked: Any, **more: Any) -> Iterator[Any]:
            calls[0] += 1
            for number, message in enumerate(stub.Generate(asked, **more)):
                if calls[0] == 1 and number == 5:
                    raise Lost
                yield message

    class Lost(grpc.RpcError):
        @staticmethod
        def code() -> grpc.StatusCode:
            return grpc.StatusCode.UNAVAILABLE

    stub, names["axon"] = names["axon"], Breaks()
    got = text_of(names["answered"](chat("What is the capital of France?")))
    assert (got, calls) == (said.getvalue(), [2])
    names["channel"].close()


def test_a_port_that_is_taken_is_named(server: Server, fresh: Fresh) -> None:
    port = address_of(server).rpartition(":")[2]
    with pytest.raises(AssertionError, match="did not come up") as failed:
        fresh.start(grpc_enabled="true", grpc_port=port)
    assert f"Cannot listen on 127.0.0.1:{port}" in str(failed.value)
