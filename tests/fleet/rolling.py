"""Every process of a fleet is restarted, one after the other, under load; no request may fail.

python -m tests.fleet.rolling                    1,000 requests; a table, and one JSON line last
python -m tests.fleet.rolling --requests 60

Clients are OpenAI's own with their own retries, streams are followed by ``axon.client``. An answer counts when it is
the one that the undisturbed fleet gave.
"""

import argparse
import asyncio
import itertools
import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import openai

from axon.client import aresumed
from tests.fleet.fleet import Fleet, shared_fleet
from tests.fleet.member import Member

KINDS = ("chat", "chat stream", "response", "response stream")
PROMPTS = tuple(f"Request number {number} of a rolling restart, and not one is lost." for number in range(6))
_RETRIES = 5


@dataclass
class Restart:
    """One process's stop and start."""

    name: str
    not_ready_s: float
    """From the signal until it said that it is not ready."""
    stop_s: float
    start_s: float
    code: int


@dataclass
class Report:
    num_requests: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)
    """Answers that made a client ask again, by their status."""
    restarts: list[Restart] = field(default_factory=list)
    wall_s: float = 0.0

    @property
    def ok(self) -> bool:
        return not self.failures and all(each.code == 0 for each in self.restarts)


class Load:
    """Requests of every kind, each held against the undisturbed answer."""

    def __init__(self, url: str, key: str, report: Report, seed: int, kinds: Sequence[str] = KINDS) -> None:
        self._report, self._rng, self._kinds = report, random.Random(seed), kinds
        http = openai.DefaultAsyncHttpxClient(event_hooks={"response": [self._count]})
        self._api = openai.AsyncOpenAI(
            base_url=f"{url}/v1", api_key=key, max_retries=_RETRIES, timeout=60, http_client=http
        )
        self._expected: dict[tuple[str, str], str] = {}

    async def learn(self) -> None:
        """What each request is answered with when nobody disturbs it."""
        for kind, prompt in itertools.product(self._kinds, PROMPTS):
            self._expected[kind, prompt] = await self._ask(kind, prompt)

    async def run(self, num_requests: int, enough: threading.Event, *, clients: int) -> None:
        """At least so many, and until it was said that it is enough."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(clients):
                tasks.create_task(self._client(num_requests, enough))

    async def aclose(self) -> None:
        await self._api.close()

    async def _count(self, reply: httpx.Response) -> None:
        if reply.is_error:
            self._report.refusals[str(reply.status_code)] += 1

    async def _client(self, num_requests: int, enough: threading.Event) -> None:
        while self._report.num_requests < num_requests or not enough.is_set():
            self._report.num_requests += 1
            kind, prompt = self._rng.choice(self._kinds), self._rng.choice(PROMPTS)
            self._report.kinds[kind] += 1
            try:
                said = await self._ask(kind, prompt)
                if said != self._expected[kind, prompt]:
                    self._report.failures.append(f"{kind}: another answer: {said!r}")
            except Exception as error:
                self._report.failures.append(f"{kind}: {type(error).__name__}: {error}")

    async def _ask(self, kind: str, prompt: str) -> str:
        messages: Any = [{"role": "user", "content": prompt}]
        match kind:
            case "chat":
                chat = await self._api.chat.completions.create(model="echo", messages=messages, max_tokens=80)
                return chat.choices[0].message.content or ""
            case "chat stream":
                stream: Any = await self._api.chat.completions.create(
                    model="echo", messages=messages, max_tokens=80, stream=True
                )
                pieces = [chunk.choices[0].delta.content or "" async for chunk in aresumed(self._api, stream)]
                return "".join(pieces)
            case "response":
                response = await self._api.responses.create(model="echo", input=prompt, max_output_tokens=80)
                return response.output_text
        events: Any = await self._api.responses.create(model="echo", input=prompt, max_output_tokens=80, stream=True)
        deltas = [event.delta async for event in aresumed(self._api, events) if event.type.endswith("text.delta")]
        return "".join(deltas)


def restart(member: Member) -> Restart:
    """SIGTERM, the end, a new start."""
    began = time.monotonic()
    member.send(15)
    while member.probe("/readyz") == 200:
        time.sleep(0.01)
    not_ready = time.monotonic()
    code = member.wait()
    stopped = time.monotonic()
    member.start()
    return Restart(member.name, not_ready - began, stopped - began, time.monotonic() - stopped, code)


def roll(fleet: Fleet, report: Report, enough: threading.Event, over: threading.Event) -> None:
    """One process after the other; at least once round, and on until the load is over."""
    try:
        for number, member in enumerate(itertools.cycle(fleet.members)):
            if number >= len(fleet.members):
                enough.set()
                if over.is_set():
                    return
            report.restarts.append(restart(member))
    except Exception as error:
        report.failures.append(f"restarting broke: {error!r}")
    finally:
        enough.set()


async def rolled(fleet: Fleet, num_requests: int, *, clients: int = 8, seed: int = 1) -> Report:
    """The load and the restarts side by side."""
    report = Report()
    load = Load(fleet.url, fleet.key, report, seed)
    enough, over = threading.Event(), threading.Event()
    try:
        await load.learn()
        began = time.monotonic()
        rolling = asyncio.create_task(asyncio.to_thread(roll, fleet, report, enough, over))
        await load.run(num_requests, enough, clients=clients)
        report.wall_s = time.monotonic() - began
        over.set()
        await rolling
    finally:
        await load.aclose()
    return report


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fleet.rolling", description=__doc__)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="axon-rolling-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        fleet = shared_fleet(folder, stack, engine_echo_step_s=0.005).start(controls=2)
        report = asyncio.run(rolled(fleet, options.requests, clients=options.clients, seed=options.seed))
    show(report)
    return 0 if report.ok else 1


def show(report: Report) -> None:
    """A table for people, one line for machines."""
    print(f"{'process':<12} {'not ready':>10} {'stopped':>9} {'ready again':>12} {'exit':>5}")
    for each in report.restarts:
        print(
            f"{each.name:<12} {each.not_ready_s:>8.2f} s {each.stop_s:>7.2f} s {each.start_s:>10.2f} s {each.code:>5}"
        )
    for failure in report.failures[:20]:
        print(f"failed: {failure}", file=sys.stderr)
    print(
        json.dumps(
            {
                "requests": report.num_requests,
                "failed": len(report.failures),
                "asked_again": dict(report.refusals),
                "kinds": dict(report.kinds),
                "restarts": len(report.restarts),
                "longest_not_ready_s": round(max((each.not_ready_s for each in report.restarts), default=0.0), 3),
                "longest_stop_s": round(max((each.stop_s for each in report.restarts), default=0.0), 3),
                "wall_s": round(report.wall_s, 1),
            }
        )
    )


if __name__ == "__main__":
    sys.exit(main())
