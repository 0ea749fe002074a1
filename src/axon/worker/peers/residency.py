"""Tells the dispatch whose KV blocks this worker holds, so that a session's next turn is offered to it."""

from axon.dispatch.affinity import Residences
from axon.domain.session.residence import Residence
from axon.runtime.clock import Clock
from axon.worker.identity import Identity
from axon.worker.job.running import Running


class Residency:
    """Records one residence for each turn that completes here."""

    def __init__(self, residences: Residences, identity: Identity, clock: Clock) -> None:
        self._residences, self._identity, self._clock = residences, identity, clock
        self.block_size = 1
        """Tokens in a KV block; known when the engine is up."""

    async def record(self, running: Running) -> None:
        """The job has completed: its session's next turn finds the blocks of this one here."""
        num_prompt = len(running.job.prompt_ids)
        num_tokens = num_prompt + len(running.tokens)
        residence = Residence(
            worker=self._identity.name,
            incarnation=self._identity.incarnation,
            num_prompt=num_prompt,
            num_tokens=num_tokens,
            num_blocks=num_tokens // self.block_size,
            at=self._clock.now(),
        )
        await self._residences.put(running.job, residence)
