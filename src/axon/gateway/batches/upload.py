"""Reads an upload piece by piece: the file's bytes are yielded as they come, the form's fields are kept. Bounded in
memory, size and time. Knows no store."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.requests import ClientDisconnect, Request

from axon.errors import InvalidInput, TooLarge
from axon.gateway.batches.multipart import MultipartParser, PartBegan, boundary_of
from axon.gateway.http.errors import ClientLeft, Timeout

_MAX_FIELD_BYTES = 1024
_FORM_BYTES = 64 << 10
"""Bytes that a form may have beside its file."""
_MAX_NAME_CHARS = 255


class Upload:
    """One upload: iterate over ``pieces`` first, then read what the form said."""

    def __init__(self, request: Request, *, max_bytes: int, silence_s: float, timeout_s: float) -> None:
        """Raises ``InvalidInput`` or ``TooLarge`` by the headers alone."""
        self._request, self._max_bytes = request, max_bytes
        self._silence_s, self._timeout_s = silence_s, timeout_s
        self.fields: dict[str, str] = {}
        self.filename = ""
        self.num_bytes = length_of(request)
        """Size of the whole body, as its header says; the HTTP parser holds the client to it."""
        if self.num_bytes > max_bytes + _FORM_BYTES:
            raise self._too_large()
        self._parser = MultipartParser(boundary_of(request.headers.get("content-type", "")))

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The file's bytes; raises what is wrong with the upload, at its end too."""
        part: PartBegan | None = None
        values: dict[str, bytearray] = {}
        num_files = num_bytes = 0
        async with aclosing(self._received()) as received:
            async for data in received:
                for event in self._parser.feed(data):
                    if isinstance(event, PartBegan):
                        part = event
                        if part.name != "file":
                            values[part.name] = bytearray()
                            continue
                        num_files += 1
                        self.filename = _filename(part.filename)
                    elif part is not None and part.name == "file":
                        num_bytes += len(event.data)
                        if num_bytes > self._max_bytes:
                            raise self._too_large()
                        yield event.data
                    elif part is not None:
                        values[part.name] += event.data
                        if len(values[part.name]) > _MAX_FIELD_BYTES:
                            raise InvalidInput("A field of the form is too long.", code="invalid_multipart")
        self._parser.close()
        if num_files != 1:
            problem = "'file' is missing." if not num_files else "Send one 'file' at a time."
            raise InvalidInput(problem, param="file", code="missing_required_parameter")
        if not num_bytes:
            raise InvalidInput("The file is empty.", param="file", code="empty_file")
        self.fields = {name: value.decode("utf-8", "replace") for name, value in values.items()}

    async def _received(self) -> AsyncGenerator[bytes, None]:
        """The body's bytes; raises ``Timeout`` when they do not come in time."""
        stream, clock = self._request.stream(), asyncio.get_running_loop().time
        end = clock() + self._timeout_s
        while True:
            try:
                async with asyncio.timeout_at(min(end, clock() + self._silence_s)):  # not around the yield below
                    data = await anext(stream, None)
            except TimeoutError:
                raise Timeout() from None
            except ClientDisconnect:
                raise ClientLeft() from None
            if data is None:
                return
            yield data

    def _too_large(self) -> TooLarge:
        return TooLarge(f"The file is larger than {self._max_bytes} bytes.", param="file")


def length_of(request: Request) -> int:
    """The body's size by its header, which an upload must have: its tenant's quota is asked before it is read."""
    if encoding := request.headers.get("content-encoding"):
        raise InvalidInput(f"Content-Encoding '{encoding}' is not supported.", code="unsupported_encoding")
    length = request.headers.get("content-length")
    if length is None:
        raise InvalidInput("An upload needs a Content-Length.", code="length_required")
    return int(length)  # cannot fail: the HTTP parser accepts only digits


def _filename(name: str | None) -> str:
    """The file's name without folders and what cannot be printed."""
    last = (name or "").replace("\\", "/").rpartition("/")[2]
    return "".join(each if each.isprintable() else "_" for each in last)[:_MAX_NAME_CHARS] or "upload"
