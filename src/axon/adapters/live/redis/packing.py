"""Packs commands with hiredis (C): the asyncio driver packs in Python, which is half the cost of an append."""

from typing import Any

import hiredis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import DataError


class _Packing(AbstractConnection):
    def pack_command(self, *args: Any) -> list[bytes]:
        name = args[0].encode() if isinstance(args[0], str) else args[0]
        try:
            return [hiredis.pack_command((*name.split(), *args[1:]))]
        except TypeError as error:
            raise DataError(f"An argument is neither text nor bytes nor a number: {error}") from None


def packing(connection_class: type[AbstractConnection]) -> type[AbstractConnection]:
    """A subclass of the connection class that packs with hiredis."""
    return type(f"Packing{connection_class.__name__}", (_Packing, connection_class), {})
