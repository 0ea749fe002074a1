"""Every error that the drivers of RabbitMQ can raise. Tests nothing."""

from collections.abc import Iterator

import aio_pika.exceptions
import aiormq.exceptions
import pamqp.exceptions
import pytest
from aiormq.abc import DeliveredMessage
from pamqp.commands import Basic
from pamqp.header import ContentHeader

pytestmark = pytest.mark.services


def driver_errors() -> Iterator[Exception]:
    """One of every exception that aio-pika, aiormq and pamqp can raise, and what they let through."""
    for module in (aio_pika.exceptions, aiormq.exceptions, pamqp.exceptions):
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, Exception):
                yield made(kind)
    yield from (OSError(), ConnectionResetError(), TimeoutError(), RuntimeError("closed"), ValueError(), Exception())


def made(kind: type[Exception]) -> Exception:
    if issubclass(kind, aiormq.exceptions.DeliveryError):
        returned = Basic.Return()
        return kind(DeliveredMessage(delivery=returned, header=ContentHeader(), body=b"", channel=None), returned)  # type: ignore[arg-type]
    return kind()
