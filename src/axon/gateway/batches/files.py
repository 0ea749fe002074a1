"""Routes of /v1/files: upload, list, retrieve, download and delete. Knows no batch's lines."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from axon.domain.file import File, Purpose
from axon.domain.ids import new_id
from axon.domain.tenants.storage import Stored
from axon.errors import Conflict, InvalidInput, NotFound
from axon.gateway.batches.room import room_of
from axon.gateway.batches.upload import Upload
from axon.gateway.http.paging import Look, cursor, is_descending, limit_of, listed
from axon.gateway.turn.context import gateway_of, identity_of
from axon.gateway.turn.counting import count_request, note_erased, storing

router = APIRouter(tags=["files"], prefix="/v1/files")
_PREFIX = "file-"

_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file", "purpose"],
                    "properties": {
                        "file": {"type": "string", "format": "binary", "description": "JSON Lines, one request each."},
                        "purpose": {"type": "string", "enum": [str(Purpose.BATCH)]},
                        "expires_after[anchor]": {"type": "string", "enum": ["created_at"]},
                        "expires_after[seconds]": {
                            "type": "integer",
                            "description": "At least 3600, at most the server's retention.",
                        },
                    },
                }
            }
        },
    }
}
_LEAST_SECONDS = 3600


@router.post("", openapi_extra=_FORM, summary="Upload a file")
async def create(request: Request) -> dict[str, Any]:
    """Stores a file for a batch. It is written to disk as it arrives."""
    gateway, room, who = gateway_of(request), room_of(request), identity_of(request)
    config = room.config
    with room.uploads.held(who.tenant):
        upload = Upload(
            request,
            max_bytes=config.max_file_bytes,
            silence_s=gateway.config.body_timeout_s,
            timeout_s=config.upload_timeout_s,
        )
        async with storing(request, Stored(num_bytes=upload.num_bytes, num_objects=1)):
            now = gateway.clock.now()
            file_id = new_id(_PREFIX, now)
            num_bytes = await room.bytes.put(file_id, _checked(upload, config.retention_s))
            file = File(
                id=file_id,
                tenant=who.tenant,
                filename=upload.filename,
                purpose=Purpose.BATCH,
                num_bytes=num_bytes,
                created_at=now,
                expires_at=now + _lifetime_s(upload.fields, config.retention_s),
            )
            await room.files.put(file)
    return file_body(file)


@router.get("", summary="List files")
async def index(
    request: Request, after: str = "", limit: str = "100", order: str = "desc", purpose: str = ""
) -> dict[str, Any]:
    """Lists the tenant's files page by page, by default the newest first."""
    await count_request(request)
    num, newest_first = limit_of(limit), is_descending(order)
    found = await room_of(request).files.page(
        identity_of(request).tenant,
        after=cursor(after, _PREFIX),
        limit=num + 1,
        newest_first=newest_first,
        purpose=_purpose(purpose) if purpose else None,
    )
    return listed(found[:num], _FILE, has_more=len(found) > num)


@router.get("/{file_id}", summary="Retrieve a file's record")
async def show(request: Request, file_id: str) -> dict[str, Any]:
    """Returns what is known of a file, without its content."""
    return file_body(await find_file(request, file_id))


@router.get("/{file_id}/content", summary="Download a file")
async def content(request: Request, file_id: str) -> Response:
    """Returns the file's bytes, as they are."""
    file = await find_file(request, file_id)
    pieces = room_of(request).bytes.read(file.id)
    first = await anext(pieces, b"")  # a file that cannot be read is answered with an error, not with half a body
    headers = {
        "content-length": str(file.num_bytes),
        "content-disposition": "attachment",
        "content-security-policy": "sandbox",  # whoever opens it in a browser sees bytes, and nothing of it runs
    }
    return Download(first, pieces, headers=headers)


@router.delete("/{file_id}", summary="Delete a file")
async def delete(request: Request, file_id: str) -> dict[str, Any]:
    """Deletes a file and its bytes. One that a running batch reads is refused with 409."""
    room, file = room_of(request), await find_file(request, file_id)
    if users := await room.batches.users(file.id):
        raise Conflict(f"File '{file.id}' is read by batch '{users[0]}'; cancel that first.", code="file_in_use")
    await room.files.remove(file.id)
    await room.bytes.delete(file.id)
    note_erased(request)
    return {"id": file.id, "object": "file", "deleted": True}


async def find_file(request: Request, file_id: str, *, param: str = "file_id") -> File:
    """Returns a file of the caller's own tenant; raises the same ``NotFound`` for any other id."""
    file = await room_of(request).files.get(file_id)
    if file is None or file.tenant != identity_of(request).tenant:
        raise NotFound(f"No such File object: {file_id}", code="file_not_found", param=param)
    return file


def file_body(file: File) -> dict[str, Any]:
    """Returns a file as OpenAI's object."""
    return {
        "id": file.id,
        "object": "file",
        "bytes": file.num_bytes,
        "created_at": int(file.created_at),
        "expires_at": int(file.expires_at),
        "filename": file.filename,
        "purpose": str(file.purpose),
        "status": "processed",
        "status_details": None,
    }


_FILE = Look(lambda file: file.id, file_body)


async def _checked(upload: Upload, retention_s: float) -> AsyncIterator[bytes]:
    """The file's bytes; raises at their end what is wrong with the form, before the file is kept."""
    async with aclosing(upload.pieces()) as pieces:
        async for piece in pieces:
            yield piece
    if "purpose" not in upload.fields:
        raise InvalidInput("'purpose' is missing.", param="purpose", code="missing_required_parameter")
    if _purpose(upload.fields["purpose"]) is not Purpose.BATCH:
        raise InvalidInput("'purpose' must be 'batch': the server writes the output of batches.", param="purpose")
    _lifetime_s(upload.fields, retention_s)


def _purpose(text: str) -> Purpose:
    try:
        return Purpose(text)
    except ValueError:
        known = " or ".join(f"'{each}'" for each in Purpose)
        raise InvalidInput(f"'purpose' must be {known}; '{text[:64]}' is not supported.", param="purpose") from None


def _lifetime_s(fields: dict[str, str], retention_s: float) -> float:
    """Seconds that a file is kept: those that the form asks for, or the server's retention."""
    if fields.get("expires_after[anchor]", "created_at") != "created_at":
        raise InvalidInput("'expires_after.anchor' must be 'created_at'.", param="expires_after.anchor")
    text = fields.get("expires_after[seconds]")
    if text is None:
        return retention_s
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) >= _LEAST_SECONDS):
        param = "expires_after.seconds"
        raise InvalidInput(f"'{param}' must be a whole number, {_LEAST_SECONDS} at least.", param=param)
    return min(float(text), retention_s)


class Download(StreamingResponse):
    """A file's bytes; closes the file at the end, also when the client leaves before."""

    def __init__(self, first: bytes, rest: AsyncGenerator[bytes, None], *, headers: Mapping[str, str]) -> None:
        super().__init__(_joined(first, rest), media_type="application/octet-stream", headers=headers)
        self._file = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._file):
            await super().__call__(scope, receive, send)


async def _joined(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if first:
        yield first
    async for piece in rest:
        yield piece
