"""Client programs of the simulated world: they ask, read, go away, come back elsewhere, cancel and ask again."""

import asyncio
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from axon.domain.fairness.lane import lane_of
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk
from axon.domain.sampling import Sampling
from axon.domain.session.pin import Pin, pin_key
from axon.errors import AxonError, StreamDiverged
from axon.gateway.turn.ask import Ask
from axon.gateway.turn.reader import Reader
from tests.sim.engine import POISON_SEED
from tests.sim.history import Resolution
from tests.sim.rollout import COLD, LETTERS, number_of
from tests.sim.world import DEPLOYMENT, NUM_LANES, World

PROMPT = (1, 2, 3)
_GIVE_UP_S = 60.0
_PATIENCES_S = (_GIVE_UP_S, 0.7, 1.5, 2.8)
"""How long a reader gives a connection that says nothing; then it leaves and comes back."""


@dataclass(slots=True)
class Reading:
    """One connection to a stream: where it began and what it brought."""

    start: int
    ids: list[int] = field(default_factory=list)
    terminal: str = ""
    diverged: bool = False


@dataclass(slots=True)
class Asked:
    """A request as its client remembers it."""

    name: str
    seed: int
    max_tokens: int
    choices: int
    more_prompts: tuple[tuple[int, ...], ...] = ()
    job_id: str = ""
    accepted: bool = False
    refused: bool = False
    """At least once; what was set aside for it was given back."""
    cancelled: bool = False
    left: bool = False
    heard_at: float = 0.0
    """When its reader last heard something, or the turn was accepted."""
    longest_silence_s: float = 0.0
    patience_s: float = _GIVE_UP_S
    talks: bool = False
    """In its client's conversation."""
    told: frozenset[str] | None = None
    """The answers that it was told of; None when it was accepted without asking."""
    gateway: int | None = None
    """The gateway that it is sent to; None for any."""
    readings: list[Reading] = field(default_factory=list)

    @property
    def seq(self) -> int:
        last = self.readings[-1] if self.readings else Reading(0)
        return last.start + len(last.ids)


class Client:
    """One program and its requests, one after the other."""

    def __init__(self, world: World, name: str) -> None:
        self._world, self._name = world, name
        self.asked: list[Asked] = []

    async def run(self, num_requests: int) -> None:
        rng = self._world.rng
        for number in range(num_requests):
            await asyncio.sleep(rng.expovariate(1 / 0.4))
            max_tokens, choices = rng.choice([(3, 1), (8, 1), (12, 1), (80, 1), (3, 3), (8, 2)])
            asked = Asked(f"{self._name}.{number}", rng.randrange(1000), max_tokens, choices)
            if asked.seed % 2:  # by the seed, so that nothing else of a schedule depends on it
                asked.more_prompts = tuple((place,) for place in range(1, choices))
            asked.patience_s = _PATIENCES_S[asked.seed % len(_PATIENCES_S)]
            asked.talks = rng.random() < (0.8 if self._world.plan is None else 0.4)
            self.asked.append(asked)
            key = f"idem-{asked.name}" if rng.random() < 0.4 else ""
            if await self._ask(asked, key) and not asked.left:
                await self._read(asked)

    async def ask_cold(self, num_requests: int) -> None:
        """Asks a version without a worker, before anybody else asks anything."""
        for number in range(num_requests):
            asked = Asked(f"{self._name}.{number}", 5 * (number + 1), 3, 1)
            self.asked.append(asked)
            await self._send(asked, "")

    async def ask_poison(self) -> None:
        """Asks once, for an answer in the background that no engine survives."""
        await asyncio.sleep(1.0)
        self.asked.append(asked := Asked(f"{self._name}.0", POISON_SEED, 8, 1))
        await self._send(asked, "")

    async def _ask(self, asked: Asked, key: str) -> bool:
        """Sends the request; some come with a twin: another request under the same key at the same time."""
        if self._world.plan is not None and not key and not asked.talks:
            return await self._ask_in_two_tabs(asked)
        if not key or asked.seed % 3:
            return await self._send(asked, key)
        history = self._world.history
        twin = replace(asked, seed=asked.seed + 1, talks=False, left=True, readings=[])
        num_lost = history.num_lost
        accepted, _ = await asyncio.gather(self._send(asked, key), self._send(twin, key, tries=1))
        if twin.accepted:
            self.asked.append(twin)
        if accepted and twin.job_id == asked.job_id and history.num_lost == num_lost:
            raise history.broken(f"{asked.job_id} was accepted with two bodies")
        return accepted

    async def _ask_in_two_tabs(self, asked: Asked) -> bool:
        """Asks twice at once in the same session, whose name nobody locks; the second answer is not read."""
        tab = replace(asked, name=f"{asked.name}t", seed=asked.seed + 20, left=True, readings=[])
        asked.gateway, tab.gateway = self._world.rng.sample([0, 1], 2)
        accepted, _ = await asyncio.gather(self._send(asked, ""), self._send(tab, ""))
        if tab.accepted or tab.refused:
            self.asked.append(tab)
        return accepted

    async def _send(self, asked: Asked, key: str, tries: int = 3) -> bool:
        """Asks a gateway, again under its key when the answer is lost; True when it was accepted."""
        for _ in range(tries if key else 1):
            found: list[str] = []
            if await self._at_a_gateway(lambda parts, f=found: self._open(parts, asked, key, f), asked.gateway):
                [asked.job_id] = found
                asked.accepted = True
                return True
            asked.refused = True
        return False

    async def _open(self, parts: dict[str, Any], asked: Asked, key: str, found: list[str]) -> None:
        told: list[frozenset[str]] = []

        async def make(job_id: str, now: float) -> Job:
            job = Job(
                id=job_id,
                tenant=self._name,
                deployment=DEPLOYMENT,
                version="v1",
                lane=lane_of(self._name, DEPLOYMENT, NUM_LANES),
                prompt_ids=PROMPT,
                choices=asked.choices,
                more_prompts=asked.more_prompts,
                sampling=Sampling(max_tokens=asked.max_tokens),
                seed=asked.seed,
                deadline=now + 40.0,
                created=now,
                background=asked.seed == POISON_SEED,
            )
            if not asked.talks:
                return await self._pinned(parts, asked, job)
            history = await parts["histories"].enter(held, self._name, f"conv_{self._name}", job_id, wait_s=1.0)
            told.append(frozenset(item.id for item in history.items))
            ordinal = history.ordinal + 1
            job = replace(job, session=history.session, ordinal=ordinal, prompt_ids=ordinal * PROMPT)
            return await self._pinned(parts, asked, job)

        ask = Ask(
            prefix=f"resp_{asked.name}-",
            tenant=self._name,
            terms=self._world.terms,
            idempotency_key=key,
            body_digest=str(asked.seed),
        )
        async with AsyncExitStack() as held, parts["opening"].admitted(ask) as entry:
            if entry.is_new:
                await entry.accept(await make(entry.id, entry.now))
            if entry.is_new and entry.job.pin:
                await parts["pins"].confirm(entry.job.pin, Pin(entry.job.generation, entry.job.version))
        found.append(entry.job.id)
        asked.told = told[0] if told and entry.is_new else None  # else the first one's job counts, not this one

    async def _pinned(self, parts: dict[str, Any], asked: Asked, job: Job) -> Job:
        """The job on the version that its session is pinned to, as a gateway with its own view decides it.

        The move that it has to tell is in the job. A job may be put into the first version's lane, as a gateway of an
        earlier release does, which knows no letters.
        """
        world = self._world
        if world.plan is None:
            return job
        view, began = world.plan.view(parts["name"]), world.loop.monotonic()
        second = int(began) if asked.seed % 4 > 1 else 0  # some of these sessions are short
        name = job.session or (f"chat{asked.seed % 2}.{second}" if asked.seed % 5 else "")
        key = pin_key(DEPLOYMENT, "", session=name)  # some chats are in one session with those of other clients
        resolved = await parts["pins"].resolve(
            key, first=False, choose=lambda: view.choose(key or job.id), known=view.known, session=job.session
        )
        version = resolved.pin.version
        if world.plan.is_cold and not key:
            version, asked.left = COLD, True  # it runs without a reader, whenever its version has a worker
            job = replace(job, background=True, deadline=job.created + 300.0)
        moved = resolved.moved is not None
        if key:
            at = world.loop.monotonic()
            world.history.resolutions[job.id, job.created] = Resolution(key, resolved.pin, moved, began, at)
        letter = LETTERS[version] if asked.seed % 7 else ""
        return replace(
            job,
            version=version,
            pin=key,
            generation=resolved.pin.generation,
            lane=lane_of(self._name, DEPLOYMENT, NUM_LANES, letter=letter),
            prompt_ids=(*job.prompt_ids, number_of(version)),
            trace="moved" if moved else "",
        )

    async def _read(self, asked: Asked) -> None:
        """Reads to the end, over as many connections as it takes; some clients cancel, some never come back."""
        rng = self._world.rng
        asked.heard_at = self._world.loop.monotonic()
        deadline = self._world.loop.monotonic() + _GIVE_UP_S
        while self._world.loop.monotonic() < deadline:
            if not self._world.healed and rng.random() < 0.08:
                asked.left = True
                return
            if not self._world.healed and rng.random() < 0.05:
                asked.cancelled = True
                await self._at_a_gateway(lambda parts: parts["live"].log.flag(asked.job_id, cancel=True))
            reading = Reading(asked.seq)
            asked.readings.append(reading)
            cut_after = rng.randint(1, 6) if rng.random() < 0.5 and not self._world.healed else 1_000
            await self._at_a_gateway(lambda parts, r=reading, c=cut_after: self._follow(parts, asked, r, c))
            if reading.terminal or reading.diverged:
                return
            if not reading.ids:
                asked.readings.pop()
            await asyncio.sleep(rng.expovariate(1 / 0.1))
        raise self._world.history.broken(f"{asked.job_id}: its reader waited in vain")

    async def _follow(self, parts: dict[str, Any], asked: Asked, reading: Reading, cut_after: int) -> None:
        follower = parts["follower"]
        found = await parts["lookup"].find(asked.job_id, asker=self._name)
        if found is None:
            raise self._world.history.broken(f"{asked.job_id} was accepted and is unknown")
        await follower.arrive(asked.job_id)
        try:
            async with (
                aclosing(follower.follow(asked.job_id, after=reading.start, reader=Reader(found=found))) as stream,
                asyncio.timeout(asked.patience_s) as patience,
            ):
                async for chunk in stream:
                    if chunk is not None and self._heard(asked, reading, chunk, cut_after):
                        return
                    patience.reschedule(self._world.loop.time() + asked.patience_s)
        except StreamDiverged:
            reading.diverged = True
        except TimeoutError:
            return

    def _heard(self, asked: Asked, reading: Reading, chunk: Chunk, cut_after: int) -> bool:
        expected = reading.start + len(reading.ids) + 1
        if chunk.first != expected:
            raise self._world.history.broken(f"{asked.job_id}: the reader got {chunk.first} instead of {expected}")
        now = self._world.loop.monotonic()
        asked.longest_silence_s = max(asked.longest_silence_s, now - asked.heard_at)
        asked.heard_at = now
        reading.ids += [token.id for token in chunk.tokens]
        reading.terminal = chunk.terminal
        return bool(chunk.terminal) or len(reading.ids) >= cut_after

    async def _at_a_gateway(self, work: Any, number: int | None = None) -> bool:
        """Runs work inside a gateway's process; False when it was refused or the gateway was lost on the way."""
        nodes = [node for node in self._world.nodes if "opening" in node.parts]
        node = self._world.rng.choice(nodes) if number is None else nodes[number]
        if not node.process.alive:
            await asyncio.sleep(0.05)
            return False
        done = asyncio.get_running_loop().create_future()

        async def inside() -> None:
            try:
                await work(node.parts)
                done.set_result(True)
            except AxonError:
                done.set_result(False)

        task = node.process.spawn(inside())
        task.add_done_callback(lambda _: None if done.done() else done.set_result(False))
        answer: bool = await done
        return answer
