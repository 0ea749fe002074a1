"""A client of the gRPC server, made of grpcio's own stub, for journeys."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc

from axon.v1 import axon_pb2 as pb
from axon.v1.axon_pb2_grpc import AxonStub
from tests.journeys.server import Server

PATIENCE_S = 60.0
Metadata = tuple[tuple[str, str], ...]


def address_of(server: Server) -> str:
    found = re.search(r"gRPC +(\S+)", server.screen)
    assert found, f"no gRPC server:\n{server.screen}"
    return found[1]


def bearer(key: str) -> Metadata:
    return (("authorization", f"Bearer {key}"),)


class Line:
    """A channel to one server, with one key."""

    def __init__(self, address: str, key: str) -> None:
        self.channel = grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
        self.stub: Any = AxonStub(self.channel)
        self._key = key

    def generate(self, asked: pb.GenerateRequest, *more: tuple[str, str], timeout_s: float | None = None) -> Any:
        """The call, whose messages are still to be read. A turn's deadline is ``timeout_s``."""
        return self.stub.Generate(asked, metadata=(*bearer(self._key), *more), timeout=timeout_s)

    def resume(self, turn_id: str, after: int) -> Any:
        return self.generate(pb.GenerateRequest(resume=pb.Resume(id=turn_id, after=after)))

    def ask(self, method: str, message: Any, *more: tuple[str, str]) -> Any:
        """The answer of a method with one answer."""
        return getattr(self.stub, method)(message, metadata=(*bearer(self._key), *more), timeout=PATIENCE_S)


@contextmanager
def opened(address: str, key: str) -> Iterator[Line]:
    line = Line(address, key)
    try:
        yield line
    finally:
        line.channel.close()


def chat(text: str = "hello there", model: str = "echo", **sampling: Any) -> pb.GenerateRequest:
    messages = [pb.Message(role="user", content=text)]
    turn = pb.Turn(model=model, chat=pb.Chat(messages=messages), sampling=pb.Sampling(**sampling))
    return pb.GenerateRequest(turn=turn)


def prompt(text: str, model: str = "echo", **sampling: Any) -> pb.GenerateRequest:
    return pb.GenerateRequest(turn=pb.Turn(model=model, prompt=text, sampling=pb.Sampling(**sampling)))


def text_of(messages: Iterable[pb.GenerateResponse], choice: int = 0) -> str:
    return "".join(each.text for message in messages for each in message.deltas if each.choice == choice)


def error_of(failed: grpc.RpcError) -> pb.Error:
    """What the trailing metadata of a call say of its error."""
    call: Any = failed
    told = dict(call.trailing_metadata())
    error = pb.Error.FromString(told["axon-error-bin"])
    assert told["x-axon-code"] == error.code
    assert told["x-request-id"] == error.request_id
    return error


def read_on(call: Any, got: list[pb.GenerateResponse]) -> grpc.StatusCode:
    """Reads a call to its end, however it ends, and adds its messages; its status."""
    try:
        for message in call:
            got.append(message)
    except grpc.RpcError as failed:
        found: Any = failed
        code: grpc.StatusCode = found.code()
        return code
    return grpc.StatusCode.OK


def refused(call: Any) -> tuple[grpc.StatusCode, pb.Error]:
    """Reads a call that fails; its status, and its error."""
    try:
        list(call)
    except grpc.RpcError as failed:
        found: Any = failed
        return found.code(), error_of(failed)
    raise AssertionError("the call was not refused")
