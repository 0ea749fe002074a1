"""A stand-in for the AWS provider: it tells Terraform the provider's schema by the plugin protocol, and makes nothing.

With ``mock_provider`` in a test Terraform asks a provider for no more than this, and ``terraform validate`` checks
every name and type by it. What the real provider would refuse for other reasons (a value that is no ARN, two settings
that exclude each other) passes here.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc

from tests.deploy.terraform.schema import Block

ADDRESS = "registry.terraform.io/hashicorp/aws"
_SERVICE = "tfplugin5.Provider"
_NESTING = {"single": 1, "list": 2, "set": 3}
_PROTOCOL = 5


def number(tag: int, value: int) -> bytes:
    """A number or a truth value as a field of a protocol buffer; nothing for 0, which is the default."""
    return _varint(tag << 3) + _varint(value) if value else b""


def text(tag: int, value: bytes | str) -> bytes:
    """Text, bytes or a message as a field of a protocol buffer."""
    raw = value.encode() if isinstance(value, str) else value
    return _varint(tag << 3 | 2) + _varint(len(raw)) + raw


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def block_message(block: Block) -> bytes:
    """A block as the plugin protocol's ``Schema.Block``."""
    parts = []
    for name, each in block.attributes.items():
        flags = number(4, each.required) + number(5, each.optional) + number(6, each.computed)
        parts.append(text(2, text(1, name) + text(2, json.dumps(each.type)) + flags))
    for name, nested in block.blocks.items():
        counts = number(4, nested.least) + number(5, nested.most)
        parts.append(
            text(3, text(1, name) + text(2, block_message(nested.block)) + number(3, _NESTING[nested.nesting]) + counts)
        )
    return b"".join(parts)


def schema_message(provider: Block, resources: Mapping[str, Block], data: Mapping[str, Block]) -> bytes:
    """The answer to ``GetSchema``."""
    parts = [text(1, text(2, block_message(provider)))]
    for tag, blocks in ((2, resources), (3, data)):
        parts += [text(tag, text(1, name) + text(2, text(2, block_message(each)))) for name, each in blocks.items()]
    # Terraform may keep the schema (get_provider_schema_optional): it asks once, not for each run of a test.
    return b"".join([*parts, text(6, number(2, 1))])


@contextmanager
def serving(message: bytes, folder: Path) -> Iterator[str]:
    """Serves the schema on a socket in the folder; gives the value of TF_REATTACH_PROVIDERS that leads there."""
    address = folder / "provider.sock"
    server = grpc.server(ThreadPoolExecutor(8))
    answers: dict[str, Callable[[bytes], bytes]] = {
        "GetSchema": lambda request: message,
        "PrepareProviderConfig": lambda request: request,
        "ValidateResourceTypeConfig": lambda request: b"",
        "ValidateDataSourceConfig": lambda request: b"",
        "Configure": lambda request: b"",
        "Stop": lambda request: b"",
    }
    handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        name: grpc.unary_unary_rpc_method_handler(_answering(answer)) for name, answer in answers.items()
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, handlers),))
    server.add_insecure_port(f"unix:{address}")
    server.start()
    try:
        yield json.dumps({ADDRESS: _reattach(address)})
    finally:
        server.stop(grace=None).wait()


def _answering(answer: Callable[[bytes], bytes]) -> Callable[[bytes, grpc.ServicerContext], bytes]:
    return lambda request, context: answer(request)


def _reattach(address: Path) -> dict[str, object]:
    where = {"Network": "unix", "String": str(address)}
    return {"Protocol": "grpc", "ProtocolVersion": _PROTOCOL, "Pid": os.getpid(), "Test": True, "Addr": where}
