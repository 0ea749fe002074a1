"""The accounts on Redis: four keys an account, changed by one script in one round trip. Knows no limits."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from axon.adapters.live.redis.client import RedisClient, Run, milliseconds
from axon.adapters.live.redis.scripts import load
from axon.domain.tenants.account import (
    IDLE_S,
    LEARNING,
    SETTLED_S,
    Beat,
    Bound,
    Bounds,
    Budget,
    Entry,
    Round,
    Settlement,
    Standing,
)

_ACCOUNT = load("account")
_KEYS = ("account", "crowd", "jobs", "settled")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, Any]).decode


class RedisAccounts:
    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def admit(self, account: str, entry: Entry, bounds: Bounds) -> Standing:
        asked = {
            "job_id": entry.job_id,
            "tokens": entry.tokens,
            "least": entry.least,
            "ttl_ms": milliseconds(entry.ttl_s),
        }
        [answer] = await self._run([self._ask("admit", account, asked, bounds)])
        return answer

    async def beat(self, rounds: Sequence[Round]) -> Sequence[Standing]:
        return await self._run(
            [
                self._ask(
                    "beat",
                    each.account,
                    {"beats": [_beat(beat) for beat in each.beats], "ttl_ms": milliseconds(each.ttl_s)},
                    each.bounds,
                )
                for each in rounds
            ]
        )

    async def settle(self, ends: Sequence[Settlement]) -> None:
        runs = []
        for end in ends:
            asked: dict[str, Any] = {
                "job_id": end.job_id,
                "used": end.used,
                "took_s": end.took_s,
                "uncounted": end.uncounted,
                "settled_ms": milliseconds(SETTLED_S),
                "learning": LEARNING,
            }
            if end.output is not None:
                asked["output"] = end.output
            runs.append(self._ask("settle", end.account, asked, end.bounds))
        if runs:
            await self._client.run_all(_ACCOUNT, runs)

    async def _run(self, runs: Sequence[Run]) -> list[Standing]:
        if not runs:
            return []
        return [_standing(_decode(answer)) for answer in await self._client.run_all(_ACCOUNT, runs)]

    def _ask(self, verb: str, account: str, asked: Mapping[str, Any], bounds: Bounds) -> Run:
        body = {**asked, "bounds": _bounds(bounds), "idle_ms": milliseconds(IDLE_S)}
        name = "{" + account.replace("}", "%7D") + "}"  # one cluster slot, whatever characters the tenant's id has
        return [self._client.key("account", name, key) for key in _KEYS], (verb, _encode(body))


def _bounds(bounds: Bounds) -> dict[str, Any]:
    return {
        "requests_per_minute": bounds.requests_per_minute,
        "tokens_per_minute": bounds.tokens_per_minute,
        "jobs": bounds.jobs,
        "waiting": bounds.waiting,
        "work": bounds.work,
        "waiting_work": bounds.waiting_work,
        "budgets": [_budget(budget) for budget in bounds.budgets],
    }


def _budget(budget: Budget) -> dict[str, Any]:
    body: dict[str, Any] = {"name": budget.name, "window": budget.window, "limit": budget.limit}
    return body if budget.seed is None else {**body, "seed": budget.seed}


def _beat(beat: Beat) -> dict[str, Any]:
    body: dict[str, Any] = {
        "job_id": beat.job_id,
        "reserved": beat.reserved,
        "used": beat.used,
        "more": beat.more,
        "again": beat.again,
    }
    return body if beat.waits is None else {**body, "waits": beat.waits}


def _standing(answer: Mapping[str, Any]) -> Standing:
    return Standing(
        refused=Bound(answer["refused"]) if answer["refused"] else None,
        requests=float(answer["requests"]),
        tokens=float(answer["tokens"]),
        jobs=int(answer["jobs"]),
        waiting=int(answer["waiting"]),
        work=float(answer["work"]),
        waiting_work=float(answer["waiting_work"]),
        mean_output=_known(answer["mean_output"]),
        mean_s=_known(answer["mean_s"]),
        spent={name: float(spent) for name, spent in _map(answer["spent"])},
        unseeded=tuple(answer["unseeded"]),
        reserved={job_id: float(reserved) for job_id, reserved in _map(answer["reserved"])},
    )


def _known(value: float) -> float | None:
    return None if value < 0 else float(value)


def _map(packed: Any) -> Sequence[tuple[str, Any]]:
    """Lua encodes an empty table as a list; returns an empty mapping for it."""
    return list(packed.items()) if packed else ()
