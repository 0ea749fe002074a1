"""The methods that travel between a front and the hub, read off the ports themselves. No I/O.

The Protocols are the schema: each coroutine method of a port has a name (``log.read``), the types of its arguments and
the type of its result, by which msgspec encodes and decodes them. Both ends run the same release, so there are no
versions.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, get_type_hints

import msgspec

from axon.adapters.remote.registry import RegistryRows
from axon.ports.batch_store import BatchStore, FileRecords
from axon.ports.conversation_store import IdleConversations
from axon.ports.journal import Journal
from axon.ports.live import Accounts, Cache, Crowds, Leases, Pins, Presences, Shares, TokenLog, Wakeups
from axon.ports.queue import Lanes
from axon.ports.store import (
    AuditStore,
    KeyStore,
    Markers,
    PinnedSessions,
    PlanStore,
    SessionTurns,
    StorageStore,
    Store,
    TenantStore,
    Terms,
    Tombstones,
    UsageStore,
    WebSessionStore,
)

PORTS: Mapping[str, type] = {
    "log": TokenLog,
    "leases": Leases,
    "accounts": Accounts,
    "crowds": Crowds,
    "shares": Shares,
    "cache": Cache,
    "pins": Pins,
    "presences": Presences,
    "wakeups": Wakeups,
    "queue": Lanes,
    "journal": Journal,
    "keys": KeyStore,
    "web_sessions": WebSessionStore,
    "tenants": TenantStore,
    "plans": PlanStore,
    "registry": RegistryRows,
    "audit": AuditStore,
    "usage": UsageStore,
    "storage": StorageStore,
    "turns": SessionTurns,
    "pinned": PinnedSessions,
    "markers": Markers,
    "terms": Terms,
    "conversations": IdleConversations,
    "tombstones": Tombstones,
    "files": FileRecords,
    "batches": BatchStore,
    "store": Store,
}
"""Every port that is served, by the name under which it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One method of a port."""

    name: str
    """``port.method``"""
    parameters: tuple[str, ...]
    num_positional: int
    """How many of the parameters may be given by position; the others are given by name."""
    defaults: Mapping[str, Any]
    arguments: "msgspec.msgpack.Decoder[Any]"
    result: "msgspec.msgpack.Decoder[Any]"

    def values(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> tuple[object, ...]:
        """The arguments of a call in the order of the parameters."""
        rest = self.parameters[len(args) :]
        return (*args, *(kwargs[each] if each in kwargs else self.defaults[each] for each in rest))

    def call(self, bound: Callable[..., Awaitable[object]], values: tuple[object, ...]) -> Awaitable[object]:
        """Calls a port's method with these values."""
        named = dict(zip(self.parameters[self.num_positional :], values[self.num_positional :], strict=True))
        return bound(*values[: self.num_positional], **named)


@cache
def methods_of(port: str) -> tuple[Method, ...]:
    """The methods of a port that can be called from another process: the coroutines."""
    found = inspect.getmembers(PORTS[port], inspect.iscoroutinefunction)
    return tuple(_method(f"{port}.{name}", function) for name, function in found)


def _method(name: str, function: Callable[..., object]) -> Method:
    hints = get_type_hints(function)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    kinds = tuple(hints[each.name] for each in parameters)
    return Method(
        name=name,
        parameters=tuple(each.name for each in parameters),
        num_positional=sum(each.kind is not inspect.Parameter.KEYWORD_ONLY for each in parameters),
        defaults={each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty},
        arguments=msgspec.msgpack.Decoder(tuple.__class_getitem__(kinds or ((),))),
        result=msgspec.msgpack.Decoder(hints["return"]),
    )
