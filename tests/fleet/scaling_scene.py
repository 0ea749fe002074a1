"""A fleet that runs itself, under load: workers come when requests wait and go when they do not; forty models share a
machine that has memory for four.

python -m tests.fleet.scaling_scene                  2,000 requests, five times as many a second in the middle
python -m tests.fleet.scaling_scene --forty          rare requests for forty models, four of which fit
python -m tests.fleet.scaling_scene --requests 300   a shorter one

Engines are echoes whose steps are sleeps, so that the machine is not what is measured. It prints each decision of the
leader with its reason, then a table and one JSON line.

The largest load fits into the most workers, since a fleet at its most refuses what it cannot serve in time:

    a request     23 steps: the 22 tokens of its prompt come back, and the end
    a worker      8 requests at once, a step of 0.1 s: 80 tokens/s, 80 / 23 = 3.5 requests/s
    the load      2 requests/s, and 5 x 2 = 10 in the middle: 10 x 23 / 80 = 2.9 workers, below 0.8 x 6 = 4.8

It lasts 100 / 2 + 1,800 / 10 + 100 / 2 = 280 s, and about a minute more for the start and the drains.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.fleet import launched
from tests.fleet.fleet import ECHO, Fleet, shared_place
from tests.fleet.versions import MODEL, Registry, sent, version_body
from tests.journeys.conftest import PATIENT
from tests.journeys.server import wait_until

GB = 1 << 30
RATE, MOST = 2.0, 6
"""Requests a second before and after the crowd, and the most workers."""
_SLOTS, _STEP_S = 8, 0.1
_ENGINE = {"echo_step_s": str(_STEP_S), "max_sequences": str(_SLOTS)}
_WORDS = "again"
_STEPS = len(f"user: {_WORDS}\nassistant:") + 1
"""Steps of an answer: a token for each byte of the prompt, and the end."""
_ITL_TARGET_S = 0.3
"""A token is to come within this time: three steps, as other processes share the cores."""
_QUICK = {"control_look_s": 0.5, "control_scale_s": 1.0, "control_quiet_s": 10.0, "control_hold_s": 5.0}
_ANSWER_S = 180.0
_MINUTE_S = 58.0
"""A swap counts when it is decided, and is ordered up to two looks later."""
_CLIENTS = 400
"""Requests that are open at once, at most; later ones wait at their clients, and none is sent twice."""
_UNLIMITED = {"admission_requests_per_minute": 0, "admission_concurrent": 512, "admission_backlog_total": 4096}
"""One tenant asks for everything here."""


@dataclass(slots=True)
class Told:
    """What became of the requests."""

    answered: int = 0
    failures: list[str] = field(default_factory=list)
    waits_s: list[float] = field(default_factory=list)
    """From a request to its first byte of text."""
    num_told: int = 0
    """Answers whose client was told its place in the line."""
    decisions: list[dict[str, Any]] = field(default_factory=list)
    """The leader's, in their order."""
    counts: list[int] = field(default_factory=list)
    """Workers that ran, once a second."""

    @property
    def wait_p99_s(self) -> float:
        ordered = sorted(self.waits_s)
        return ordered[int(0.99 * (len(ordered) - 1))] if ordered else 0.0

    @property
    def most_stops(self) -> int:
        """Workers that were stopped in any one minute, at most."""
        return self._most_stops("")

    @property
    def most_swaps(self) -> int:
        """Workers that made room for others in any one minute, at most."""
        return self._most_stops("makes room for another model")

    def _most_stops(self, reason: str) -> int:
        stops = [each["at"] for each in self.decisions if each["action"] == "stop" and reason in each["reason"]]
        return max((sum(0 <= other - at < _MINUTE_S for other in stops) for at in stops), default=0)


class Scene:
    """A fleet whose control launches its workers."""

    def __init__(self, fleet: Fleet, registry: Registry) -> None:
        self.fleet, self._registry, self.told = fleet, registry, Told()
        self.num_ready = 0
        """Workers that are ready, at the last look."""
        self._seen: set[tuple[float, str, str]] = set()
        self._clients = asyncio.Semaphore(_CLIENTS)

    def deploy(self, name: str, **deployment: object) -> None:
        http = self._registry.http
        sent(http.post("/v1/admin/models", json={"id": name}))
        sent(http.post(f"/v1/admin/models/{name}/versions", json=version_body("v1", MODEL, **_ENGINE)))
        body = {"id": name, "model": name, "version": "v1", "num_lanes": 1, "patience_s": 60.0, **deployment}
        sent(http.post("/v1/admin/deployments", json=body))

    async def ask(self, http: httpx.AsyncClient, model: str, *, streamed: bool) -> None:
        """One request; what is not answered with its own text is a failure."""
        began = time.monotonic()
        body = {"model": model, "messages": [{"role": "user", "content": _WORDS}], "temperature": 0, "stream": streamed}
        try:
            async with self._clients:
                text = await (self._streamed if streamed else self._whole)(http, body, began)
        except (httpx.HTTPError, KeyError, ValueError) as error:
            self.told.failures.append(f"{type(error).__name__}: {error}")
            return
        if _WORDS in text:
            self.told.answered += 1
        else:
            self.told.failures.append(text[:200])

    async def _whole(self, http: httpx.AsyncClient, body: dict[str, Any], began: float) -> str:
        answer = await http.post("/v1/chat/completions", json=body)
        self.told.waits_s.append(time.monotonic() - began)
        self._began(answer)
        return str(answer.json()["choices"][0]["message"]["content"])

    async def _streamed(self, http: httpx.AsyncClient, body: dict[str, Any], began: float) -> str:
        text, is_whole = "", False
        async with http.stream("POST", "/v1/chat/completions", json=body) as answer:
            if answer.status_code != 200:
                await answer.aread()
            self._began(answer)
            async for line in answer.aiter_lines():
                is_whole = line == "data: [DONE]" or (is_whole and not line)
                if line.startswith("data: {"):
                    [choice] = json.loads(line[6:])["choices"] or [{"delta": {}}]
                    if (said := choice["delta"].get("content")) and not text:
                        self.told.waits_s.append(time.monotonic() - began)
                    text += said or ""
        if not is_whole:
            raise ValueError(f"a stream was cut after {text!r}")
        return text

    def _began(self, answer: httpx.Response) -> None:
        if answer.status_code != 200:
            raise ValueError(f"{answer.status_code} {answer.text}")
        self.told.num_told += "x-axon-queue-position" in answer.headers

    async def watch(self, *, quiet: bool = False) -> None:
        """Takes down the leader's decisions and how many workers run, until cancelled."""
        while True:
            await asyncio.to_thread(self.look, quiet=quiet)
            await asyncio.sleep(1.0)

    def look(self, *, quiet: bool = False) -> int:
        """Workers that run now."""
        num = len(launched.watched(self.fleet.data_dir))
        self.told.counts.append(num)
        report = self._registry.http.get("/v1/admin/fleet").json()
        self.num_ready = sum(each["state"] == "ready" for each in report.get("replicas", []))
        for each in reversed(report.get("decisions", [])):
            if (key := (each["at"], each["action"], each["replica"])) not in self._seen:
                self._seen.add(key)
                self.told.decisions.append(each)
                if not quiet:
                    clock = time.strftime("%H:%M:%S", time.gmtime(each["at"]))
                    print(f"{clock} {each['action']:<7} {each['replica']:<12} {each['reason']}", flush=True)
        return num


@contextmanager
def scene(**settings: object) -> Iterator[Scene]:
    """A fleet of its own without a worker of its own."""
    with tempfile.TemporaryDirectory(prefix="axon-scaling-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        chosen = {**ECHO, **PATIENT, "control_launcher": "process", "worker_announce_s": 0.5, **_QUICK, **_UNLIMITED}
        chosen |= settings
        fleet = Fleet(folder, shared_place(), **chosen)
        stack.callback(fleet.stop)
        opened: list[Registry] = []

        def registered(fleet: Fleet) -> None:
            url = fleet.gateways[0].url
            wait_until(lambda: _answers(url), "a gateway answers")
            opened.append(stack.enter_context(Registry(fleet)))
            Scene(fleet, opened[0]).deploy("m0", **_COLD)

        fleet.start(gateways=2, workers=0, controls=1, meanwhile=registered)
        yield Scene(fleet, opened[0])


_COLD: dict[str, object] = {"min_replicas": 0, "idle_s": 30.0, "memory_bytes": GB, "cold_patience_s": 170.0}


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/livez", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def busy_workers(rate: float) -> float:
    """Workers that so many requests a second keep busy."""
    return rate * _STEPS * _STEP_S / _SLOTS


def under_load(opened: Scene, num_requests: int, *, rate: float, most: int, quiet: bool = False) -> Told:
    """A steady load, five times of it for most of the requests, and the steady one again; then nothing."""
    opened.deploy(MODEL, min_replicas=1, max_replicas=most, scaling={"itl_target_s": _ITL_TARGET_S})
    wait_until(lambda: opened.look(quiet=quiet) >= 1 and opened.num_ready == 1, "the first worker is ready", 120)
    parts = [(num_requests // 20, rate), (num_requests * 18 // 20, 5 * rate), (num_requests // 20, rate)]
    models = [(MODEL, seconds) for seconds in _arrivals(parts, random.Random(1))]
    asyncio.run(_asked(opened, models, quiet=quiet))
    wait_until(lambda: opened.look(quiet=quiet) == 1, "one worker is left", 600)
    return opened.told


def forty_models(opened: Scene, num_requests: int, *, num_models: int = 40, over_s: float, quiet: bool = False) -> Told:
    """Rare requests for many models, of which a few fit into memory at a time."""
    for number in range(1, num_models):
        opened.deploy(f"m{number}", **_COLD)
    rng = random.Random(2)
    times = sorted(rng.uniform(0, over_s) for _ in range(num_requests))
    models = [(f"m{(index * 7) % num_models}", seconds) for index, seconds in enumerate(times)]
    asyncio.run(_asked(opened, models, quiet=quiet))
    return opened.told


def _arrivals(parts: Sequence[tuple[int, float]], rng: random.Random) -> Iterator[float]:
    at = 0.0
    for number, rate in parts:
        for _ in range(number):
            at += rng.expovariate(rate)
            yield at


async def _asked(opened: Scene, asks: Sequence[tuple[str, float]], *, quiet: bool) -> None:
    """Each request at its time, a third of them streamed, at one gateway or the other."""
    urls = [each.url for each in opened.fleet.gateways]
    headers = {"Authorization": f"Bearer {opened.fleet.key}"}
    limits = httpx.Limits(max_connections=512)
    began = time.monotonic()
    async with (
        httpx.AsyncClient(base_url=urls[0], headers=headers, timeout=_ANSWER_S, limits=limits) as one,
        httpx.AsyncClient(base_url=urls[-1], headers=headers, timeout=_ANSWER_S, limits=limits) as other,
        asyncio.TaskGroup() as tasks,
    ):
        watching = tasks.create_task(opened.watch(quiet=quiet))
        asking: list[asyncio.Task[None]] = []
        for number, (model, at) in enumerate(asks):
            await asyncio.sleep(max(0.0, began + at - time.monotonic()))
            http = (one, other)[number % 2]
            asking.append(tasks.create_task(opened.ask(http, model, streamed=number % 3 == 0)))
        await asyncio.wait(asking)
        watching.cancel()


def show(told: Told, name: str) -> None:
    """A table for people, one line for machines."""
    waits = sorted(told.waits_s)
    line = {
        "scene": name,
        "answered": told.answered,
        "failed": len(told.failures),
        "told_their_place": told.num_told,
        "wait_p50_s": round(waits[len(waits) // 2], 2) if waits else None,
        "wait_p99_s": round(told.wait_p99_s, 2),
        "most_workers": max(told.counts, default=0),
        "started": sum(each["action"] == "ensure" for each in told.decisions),
        "stopped": sum(each["action"] == "stop" for each in told.decisions),
        "most_swaps_in_a_minute": told.most_swaps,
        "most_stops_in_a_minute": told.most_stops,
    }
    for key, value in line.items():
        print(f"{key:<24} {value}")
    for failure in told.failures[:20]:
        print(f"failed: {failure}", file=sys.stderr)
    print(json.dumps(line))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fleet.scaling_scene", description=__doc__)
    parser.add_argument("--requests", type=int, default=0, help="[default: 2000, or 80 with --forty]")
    parser.add_argument("--forty", action="store_true", help="forty models on a machine for four")
    parser.add_argument("--seconds", type=float, default=480.0, help="that the rare requests are spread over")
    options = parser.parse_args()
    if options.forty:
        with scene(control_memory_bytes=4 * GB) as opened:
            told = forty_models(opened, options.requests or 80, over_s=options.seconds)
    else:
        with scene() as opened:
            told = under_load(opened, options.requests or 2000, rate=RATE, most=MOST)
    show(told, "forty models" if options.forty else "load")
    return 1 if told.failures else 0


if __name__ == "__main__":
    sys.exit(main())
