"""A step's batch as one small message to every rank. Knows no tensors and no sockets.

Only the leading rank samples, so the samplings are not sent. Of a sequence's blocks only those are sent that the other
ranks do not know yet; both ends forget a sequence that no step has named for a while, in the same step.
"""

from collections.abc import Sequence

from axon.domain.sampling import Sampling
from axon.engine.batch import Batch, Draw, Span
from axon.engine.copies import Copies, Load, Save
from axon.engine.ranks.protocol import Moves, Plan, Work

_KEPT_STEPS = 64
_SOME_DRAW = Draw(sampling=Sampling(max_tokens=1, temperature=0.0), seed=0, choice=0, position=0)


class SentBlocks:
    """The blocks of each sequence that were sent, by its arrival and admission."""

    def __init__(self) -> None:
        self._blocks: dict[int, tuple[int, int, tuple[int, ...]]] = {}
        self._step = 0

    def next_step(self) -> None:
        """Counts a step, and forgets sequences that no step has named for a while."""
        self._step += 1
        if self._step % _KEPT_STEPS == 0:
            oldest = self._step - _KEPT_STEPS
            self._blocks = {key: value for key, value in self._blocks.items() if value[0] > oldest}

    def blocks_of(self, arrival: int, admission: int) -> tuple[int, ...]:
        """The blocks that the other end knows."""
        _, known_admission, blocks = self._blocks.get(arrival, (0, admission, ()))
        return blocks if known_admission == admission else ()

    def keep(self, arrival: int, admission: int, blocks: tuple[int, ...]) -> None:
        self._blocks[arrival] = (self._step, admission, blocks)


class PlanWriter:
    """The leading rank's end."""

    def __init__(self) -> None:
        self._sent = SentBlocks()

    def write(self, batch: Batch) -> Plan:
        """The batch as a message; batches must be written in the order of their steps."""
        self._sent.next_step()
        return Plan(spans=[self._work(span) for span in batch.spans])

    def _work(self, span: Span) -> Work:
        known = self._sent.blocks_of(span.arrival, span.admission)
        self._sent.keep(span.arrival, span.admission, span.block_ids)
        new = list(span.block_ids[len(known) :])
        drawn, num_scores = span.draw is not None, len(span.scores)
        return span.arrival, span.admission, span.first, drawn, num_scores, list(span.token_ids), new


class PlanReader:
    """The other ranks' end."""

    def __init__(self) -> None:
        self._sent = SentBlocks()

    def read(self, plan: Plan) -> Batch:
        """The batch, with some draw where a token is drawn or scored."""
        self._sent.next_step()
        return Batch(tuple(self._span(*work) for work in plan.spans))

    def _span(
        self,
        arrival: int,
        admission: int,
        first: int,
        drawn: bool,
        num_scores: int,
        token_ids: Sequence[int],
        new: Sequence[int],
    ) -> Span:
        blocks = (*self._sent.blocks_of(arrival, admission), *new)
        self._sent.keep(arrival, admission, blocks)
        return Span(
            id="",
            first=first,
            token_ids=tuple(token_ids),
            block_ids=blocks,
            draw=_SOME_DRAW if drawn else None,
            scores=(_SOME_DRAW,) * num_scores,
            arrival=arrival,
            admission=admission,
        )


def moves_of(copies: Copies) -> Moves:
    """A step's copies as a message; whose blocks they are, only the leading rank knows."""
    loads = [pair for load in copies.loads for pair in zip(load.slots, load.block_ids, strict=True)]
    return Moves(loads=loads, saves=[(save.block_id, save.slot) for save in copies.saves])


def copies_of(moves: Moves) -> Copies:
    """The copies that a message tells."""
    slots, blocks = tuple(slot for slot, _ in moves.loads), tuple(block for _, block in moves.loads)
    load = Load(id="", arrival=0, admission=0, first=0, end=0, slots=slots, block_ids=blocks)
    return Copies((load,) if slots else (), tuple(Save(block, slot) for block, slot in moves.saves))
