"""Asks the processes of a server or a fleet for profiles, from a gateway."""

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import replace

from axon.errors import AxonError, InvalidInput, NotFound, Unavailable
from axon.ports.live import Listener, Live
from axon.profiling.orders import (
    ORDERS,
    Began,
    Done,
    GiveUp,
    Here,
    Order,
    Refused,
    RollCall,
    Subject,
    answered,
    answers,
    encode,
    result_key,
)
from axon.profiling.packing import unpack
from axon.profiling.profile import Kind, Profile
from axon.runtime.clock import Clock

_ROLL_CALL_S, _BLIND_ROLL_CALL_S = 5.0, 1.5
"""Longest wait for the processes to say that they are there; the second where nobody knows how many there are, as with
a cluster of Redis, and it is always waited for."""
_BEGIN_S = 10.0
"""Longest wait for a process to begin."""
_MARGIN_S = 30.0
"""Longest wait beyond the profile's own seconds: a busy process needs time to write it down."""
_LOOK_S = 1.0
"""Interval at which the cache is looked into, should the notification be lost."""
_MAX_SUBJECTS = 1000


class Profiles:
    """Lists and profiles processes for the admin routes. ``own`` is the name of the process that they run in."""

    def __init__(self, live: Live, clock: Clock, own: str) -> None:
        self._live, self._clock, self.own = live, clock, own

    async def subjects(self) -> list[Subject]:
        """The processes that answer now, sorted by role and name; those that hang do not answer."""
        call = RollCall(uuid.uuid4().hex)
        found: dict[str, Subject] = {}
        async with self._live.wakeups.listen(answers(call.id)) as listener:
            expected = (await self._live.wakeups.counts([ORDERS]))[0]
            await self._live.wakeups.notify(ORDERS, encode(call))
            wait_s = _BLIND_ROLL_CALL_S if expected is None else _ROLL_CALL_S
            deadline, num = self._clock.monotonic() + wait_s, 0
            while len(found) < _MAX_SUBJECTS and (expected is None or num < expected):
                payload = await _next(listener, deadline - self._clock.monotonic())
                if payload is None:
                    break
                if isinstance(here := answered(payload), Here):
                    num += 1
                    found |= {each.name: each for each in here.subjects}
        return sorted(found.values(), key=lambda each: (each.role, each.name))

    async def record(self, subject: str, kind: Kind, seconds: float) -> Profile:
        """Profiles the subject of this name and returns the result; raises what its process raised, ``NotFound`` if
        none of this name answers, ``Unavailable`` if it does not end in time. Being cancelled ends the recording."""
        order = Order(uuid.uuid4().hex, subject, kind, seconds)
        async with self._live.wakeups.listen(answers(order.id)) as listener:
            await self._live.wakeups.notify(ORDERS, encode(order))
            if not await self._has_begun(listener):
                raise NotFound(
                    f"No process of the name {subject} answers. GET /v1/admin/processes lists those that do.",
                    code="process_not_found",
                    param="process",
                )
            try:
                packed = await self._result(order, listener)
            except asyncio.CancelledError:
                await self._live.wakeups.notify(ORDERS, encode(GiveUp(order.id)))
                raise
        await self._live.cache.drop(result_key(order.id))
        try:
            return replace(await asyncio.to_thread(unpack, kind, packed), process=subject)
        except ValueError as error:
            raise AxonError("The profile came back broken.", code="profile_failed") from error

    async def _has_begun(self, listener: Listener) -> bool:
        deadline = self._clock.monotonic() + _BEGIN_S
        while (payload := await _next(listener, deadline - self._clock.monotonic())) is not None:
            match answered(payload):
                case Began():
                    return True
                case Refused() as refused:
                    raise refused.error()
        return False

    async def _result(self, order: Order, listener: Listener) -> bytes:
        deadline = self._clock.monotonic() + order.seconds + _MARGIN_S
        while (left_s := deadline - self._clock.monotonic()) > 0:
            payload = await _next(listener, min(_LOOK_S, left_s))
            answer = answered(payload) if payload else None
            if isinstance(answer, Refused):
                raise answer.error()
            if payload is None or isinstance(answer, Done):
                packed = await self._live.cache.get(result_key(order.id))
                if packed is not None:
                    return packed
        raise Unavailable(f"{order.subject} did not end its profile in time.", code="profile_timed_out")


async def _next(listener: Listener, timeout_s: float) -> bytes | None:
    return await listener.next(timeout_s) if timeout_s > 0 else None


def chosen(subjects: Sequence[Subject], word: str) -> Subject:
    """The one subject that ``word`` stands for: its name, the start of its name, its role or its model. Raises
    ``NotFound`` if there is none and ``InvalidInput`` if there are several."""
    for found in (
        [each for each in subjects if each.name == word],
        [each for each in subjects if each.role == word],
        [each for each in subjects if each.model == word],
        [each for each in subjects if each.name.startswith(word)],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            raise InvalidInput(f"'{word}' stands for several processes: {_names(found)}. Name one.", param="process")
    known = f" There are: {_names(subjects)}." if subjects else ""
    raise NotFound(f"No process '{word}' answers.{known}", code="process_not_found", param="process")


def _names(subjects: Sequence[Subject], most: int = 10) -> str:
    shown = ", ".join(f"{each.name} ({each.role})" for each in subjects[:most])
    return shown + (f" and {len(subjects) - most} more" if len(subjects) > most else "")
