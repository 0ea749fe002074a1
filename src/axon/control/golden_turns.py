"""Asks golden prompts in ordinary turns: rendered, queued in the version's lanes and read from its stream. Knows no
rollout."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol

from axon.domain.ids import new_id
from axon.domain.job import Job
from axon.domain.model.served_version import ServedVersion
from axon.domain.registry.deployment import Deployment
from axon.domain.registry.golden import Golden
from axon.domain.registry.served import served_of
from axon.domain.registry.snapshot import Snapshot
from axon.domain.registry.version import Version
from axon.domain.reply import ChatReply
from axon.domain.sampling import Sampling
from axon.domain.turn import Turn, TurnState
from axon.errors import Unavailable, Unsupported
from axon.runtime.clock import Clock
from axon.sessions.new_job import Destination, Work, make_job
from axon.sessions.prompt import Prompts

TENANT = "axon"
"""The tenant of turns that Axon itself asks; they are in the usage under this name."""


class Accepting(Protocol):
    """Accepts jobs."""

    async def accept(self, job: Job) -> Job:
        """Returns the accepted job; raises when acceptance is unknown."""


class Ends(Protocol):
    """Waits for the ends of turns."""

    async def ended(self, turn_id: str, *, wait_s: float) -> Turn | None:
        """The turn, once it has ended; raises ``Busy`` after ``wait_s`` seconds."""


class GoldenTurns:
    """``ask`` asks one golden prompt. Its turn has no reader, no limits and no session, and its text is not kept."""

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        load: Callable[[Version], Awaitable[Prompts]],
        dispatch: Accepting,
        ends: Ends,
        clock: Clock,
        *,
        timeout_s: float = 50.0,
    ) -> None:
        """``load`` reads a version's tokenizer and template. A turn expires after ``timeout_s``."""
        self._snapshot, self._load, self._dispatch, self._ends = snapshot, load, dispatch, ends
        self._clock, self._timeout_s = clock, timeout_s
        self._loaded: tuple[str, Prompts] | None = None
        """The last version's text, by its id: a rollout asks several prompts of one version."""

    async def ask(self, deployment: str, version: str, golden: Golden) -> str:
        """The text of the version's answer; raises when the turn could not be answered."""
        snapshot = self._snapshot()
        found, record = snapshot.deployments.get(deployment), snapshot.versions.get(version)
        if found is None or record is None or found.member(version) is None:
            raise Unavailable(f"The deployment '{deployment}' has no version '{version}' here yet.")
        prompts = await self._prompts(record)
        served = served_of(record, found)
        ids = await _rendered(prompts, golden.prompt)
        reasoning = prompts.reasoning(ids) if served.reasons else ""
        job = await self._dispatch.accept(self._job(found, served, golden, ids, reasoning))
        turn = await self._ends.ended(job.id, wait_s=self._timeout_s)
        if turn is None or turn.state is not TurnState.COMPLETED:
            raise Unavailable(turn.message if turn and turn.message else "The turn was lost.")
        return "".join(token.text for token in turn.tokens)

    async def _prompts(self, record: Version) -> Prompts:
        if self._loaded is None or self._loaded[0] != record.id:
            self._loaded = (record.id, (await self._load(record)).within(record.max_model_len))
        return self._loaded[1]

    def _job(
        self, deployment: Deployment, served: ServedVersion, golden: Golden, ids: Sequence[int], reasoning: str
    ) -> Job:
        now, member = self._clock.now(), deployment.member(served.version)
        max_tokens = min(golden.max_tokens, served.max_model_len - len(ids))
        work = Work(
            prompts=[ids],
            sampling=Sampling(max_tokens=max_tokens, temperature=0.0),
            seed=0,
            reasoning=reasoning,
            reply=ChatReply(model=deployment.name),
        )
        to = Destination(
            served=served,
            num_lanes=deployment.num_lanes,
            letter=member.letter if member else "",
            pool=deployment.pool,
        )
        job = make_job(new_id("golden_", now), TENANT, work, to, now=now, timeout_s=self._timeout_s)
        return replace(job, background=True, forget=True)


async def _rendered(prompts: Prompts, text: str) -> list[int]:
    """Token ids of a message to the model; of the plain text for a model that does not chat."""
    try:
        return await prompts.chat([{"role": "user", "content": text}])
    except Unsupported:
        return await prompts.text(text)
