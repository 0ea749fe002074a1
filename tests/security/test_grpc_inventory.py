"""Every gRPC method × everything a tenant can have × every wrong key: nobody gets into another's room."""

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthListRequest
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest

from axon.domain.tenants.key import HOLDER, Scope
from axon.gateway.grpc.methods import AXON, HEALTH, INFERENCE, REFLECTIONS, make_methods
from axon.oip import inference_pb2 as oip
from axon.v1 import axon_pb2 as pb
from tests.journeys.grpc_line import PATIENCE_S, Metadata, address_of, bearer, chat, error_of, opened, refused
from tests.journeys.server import Server
from tests.security.keyring import Headers, Keyring, basic, wrong_ways
from tests.security.rooms import Room, alike, seen_by_owner
from tests.security.rooms import running as is_running

METHODS = make_methods()
CLOSED = [path for path, method in METHODS.items() if method.needed]
MESSAGES: dict[str, Message] = {
    f"/{AXON}/Generate": chat(max_tokens=2),
    f"/{AXON}/Embed": pb.EmbedRequest(model="echo", texts=["hello"]),
    f"/{AXON}/Cancel": pb.CancelRequest(id="chatcmpl-nothing"),
    f"/{AXON}/ListModels": pb.ListModelsRequest(),
    f"/{INFERENCE}/ServerLive": oip.ServerLiveRequest(),
    f"/{INFERENCE}/ServerReady": oip.ServerReadyRequest(),
    f"/{INFERENCE}/ModelReady": oip.ModelReadyRequest(name="echo"),
    f"/{INFERENCE}/ServerMetadata": oip.ServerMetadataRequest(),
    f"/{INFERENCE}/ModelMetadata": oip.ModelMetadataRequest(name="echo"),
    f"/{INFERENCE}/ModelInfer": oip.ModelInferRequest(model_name="echo"),
    f"/{HEALTH}/Check": HealthCheckRequest(),
    f"/{HEALTH}/List": HealthListRequest(),
    f"/{HEALTH}/Watch": HealthCheckRequest(),
    **{f"/{each}/ServerReflectionInfo": ServerReflectionRequest(list_services="") for each in REFLECTIONS},
}
"""A good one for each method."""
_REFUSALS = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)


@pytest.fixture(scope="module")
def channel(server: Server) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(address_of(server)) as channel:
        yield channel


def asked(channel: grpc.Channel, path: str, message: bytes, metadata: Metadata) -> tuple[grpc.StatusCode, Any]:
    """The status of a call, and its error or its first message."""
    method: Any = channel.stream_stream(path)
    call = method(iter([message]), metadata=metadata, timeout=PATIENCE_S)
    first = None
    try:
        for first in call:
            call.cancel()  # the rest of a stream is not asked for
            return grpc.StatusCode.OK, first
    except grpc.RpcError as failed:
        return call.code(), error_of(failed)
    return call.code(), first


def as_metadata(headers: Headers) -> Metadata:
    return tuple((name.lower(), value) for name, value in headers)


def test_every_method_is_in_the_inventory() -> None:
    assert set(MESSAGES) == set(METHODS)


@pytest.mark.parametrize("path", CLOSED)
def test_no_wrong_key_opens_a_method(channel: grpc.Channel, keys: Keyring, path: str) -> None:
    message = MESSAGES[path].SerializeToString()
    for what, headers in {**wrong_ways(keys), "a password": basic(keys.mine)}.items():
        code, error = asked(channel, path, message, as_metadata(headers))
        assert (code, error.code) == (grpc.StatusCode.UNAUTHENTICATED, "invalid_api_key"), what
    code, error = asked(channel, path, message, bearer(keys.suspended))
    assert (code, error.code) == (grpc.StatusCode.PERMISSION_DENIED, "tenant_suspended")


@pytest.mark.parametrize("path", CLOSED)
def test_a_key_opens_what_its_scopes_say_and_nothing_else(channel: grpc.Channel, keys: Keyring, path: str) -> None:
    holders = {
        keys.scopeless: frozenset[Scope](),
        keys.reader: frozenset({Scope.READ}),
        keys.asker: frozenset({Scope.INFERENCE}),
        keys.versioner: frozenset({Scope.VERSIONS}),
        keys.admin: frozenset({Scope.ADMIN}),
        keys.mine: HOLDER,
    }
    for key, scopes in holders.items():
        # Generate with a turn needs more than Generate that goes on with one.
        needed = frozenset({Scope.INFERENCE}) if path.endswith("/Generate") else METHODS[path].needed
        code, told = asked(channel, path, MESSAGES[path].SerializeToString(), bearer(key))
        if scopes & needed:
            assert code not in _REFUSALS, (scopes, told)
        else:
            assert (code, told.code) == (grpc.StatusCode.PERMISSION_DENIED, "insufficient_permissions"), scopes


def test_open_methods_say_nothing_of_tenants_or_models(channel: grpc.Channel) -> None:
    for path in set(METHODS) - set(CLOSED):
        code, told = asked(channel, path, MESSAGES[path].SerializeToString(), ())
        assert code is grpc.StatusCode.OK
        assert not {b"echo", b"tenant"} & set(told.lower().split()), "statuses and names of services alone"
        assert path.endswith("/List") or len(told) <= 4, "a status and nothing else"


def test_a_method_that_is_not_there_is_not_implemented_whoever_asks(channel: grpc.Channel, keys: Keyring) -> None:
    for path in (f"/{AXON}/Zork", "/axon.v2.Axon/Generate", "/a/b", f"/{AXON}/generate"):
        for metadata in ((), bearer(keys.mine)):
            call: Any = channel.unary_unary(path)
            with pytest.raises(grpc.RpcError) as failed:
                call(b"", metadata=metadata, timeout=PATIENCE_S)
            assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_foreign_turns_are_answered_like_unknown_ones(server: Server, keys: Keyring, room: Room) -> None:
    before = turns_of(server, keys, room)
    turns = room.named("stream_id")
    with opened(address_of(server), keys.foreign) as stranger:
        for what, each in turns.items():
            nobodys = alike(each)
            for after in (0, 1, 10**6):
                assert told(stranger.resume(each, after), each) == told(stranger.resume(nobodys, after), nobodys), what
                code, error = refused(stranger.resume(each, after))
                assert (code, error.code) == (grpc.StatusCode.NOT_FOUND, "stream_not_found"), what
            with pytest.raises(grpc.RpcError) as failed:
                stranger.ask("Cancel", pb.CancelRequest(id=each))
            assert failed.value.code() is grpc.StatusCode.NOT_FOUND, what
    assert turns_of(server, keys, room) == before
    assert is_running(server, keys, turns["a background response"])


def turns_of(server: Server, keys: Keyring, room: Room) -> dict[str, Any]:
    """What the owner finds; of batches, which change by themselves and have no method here, nothing."""
    found = seen_by_owner(server, room, [("Authorization", f"Bearer {keys.mine}")])
    return {what: each for what, each in found.items() if "/v1/batches/" not in what}


def told(call: Any, turn_id: str) -> tuple[grpc.StatusCode, str]:
    """Everything that a refusal says but the id that was asked for and that of the request."""
    code, error = refused(call)
    error.request_id = ""
    return code, str(error).replace(turn_id, "ID")


def test_a_key_that_may_read_goes_on_with_a_turn_and_begins_none(server: Server, keys: Keyring) -> None:
    with opened(address_of(server), keys.mine) as line:
        turn_id = next(iter(line.generate(chat(max_tokens=2)))).begun.id
    with opened(address_of(server), keys.reader) as reader:
        assert list(reader.resume(turn_id, 0))[-1].HasField("end")
        code, error = refused(reader.generate(chat(max_tokens=2)))
        assert (code, error.code) == (grpc.StatusCode.PERMISSION_DENIED, "insufficient_permissions")
        with pytest.raises(grpc.RpcError) as failed:
            reader.ask("Cancel", pb.CancelRequest(id=turn_id))
        assert failed.value.code() is grpc.StatusCode.PERMISSION_DENIED


def test_anothers_idempotency_key_is_ones_own(server: Server, keys: Keyring) -> None:
    ids = []
    for key in (keys.mine, keys.foreign, keys.mine):
        with opened(address_of(server), key) as line:
            got = list(line.generate(chat(max_tokens=2), ("idempotency-key", "over gRPC")))
            ids.append(got[0].begun.id)
    assert ids[0] == ids[2] != ids[1]
