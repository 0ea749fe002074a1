"""Shared by the routes of the registry: the revision that a change was made from, the actor, and lists. No route."""

from collections.abc import Iterable
from typing import Annotated, Any, TypeVar

from pydantic import Field
from starlette.requests import Request

from axon.domain.registry.record import Record, name_of
from axon.errors import InvalidInput
from axon.gateway.http.paging import Look, page_of
from axon.registry.facts import facts_of

R = TypeVar("R", bound=Record)
_LOOK: Look[Any] = Look(name_of, facts_of)
_MAX_DIGITS = 15
Revision = Annotated[int, Field(ge=0, lt=10**_MAX_DIGITS)]


def needed_revision(request: Request, said: int | None) -> int:
    """The revision that a change was made from, by its body or by ``If-Match``; raises ``InvalidInput`` without one."""
    revision = asked_revision(request, said)
    if revision is None:
        raise InvalidInput(
            "Say which revision the change was made from, as 'revision' or as the header If-Match, so that nobody "
            "else's change is overwritten unseen.",
            code="revision_required",
            param="revision",
        )
    return revision


def asked_revision(request: Request, said: int | None = None) -> int | None:
    """The revision that a request names, by its body or by ``If-Match``; None when it names none."""
    header = request.headers.get("if-match")
    if header is None:
        return said
    digits = header.strip().removeprefix('"').removesuffix('"')
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS):
        raise InvalidInput('If-Match must be a revision, such as "12".', param="If-Match")
    if said is not None and said != int(digits):
        raise InvalidInput(f"'revision' is {said}, and If-Match is {digits}.", param="revision")
    return int(digits)


def page(records: Iterable[R], *, after: str, limit: str, order: str) -> dict[str, Any]:
    """One page of records of one kind, which must be in ascending order."""
    return page_of(list(records), _LOOK, after=after, limit=limit, order=order)


def removed(name: str, kind: str) -> dict[str, Any]:
    """The answer to a removal."""
    return {"id": name, "object": f"{kind}.deleted", "deleted": True}
