"""A draft head that drafts the next tokens of its target's streams. Knows no scheduler.

It drafts the likeliest tokens, greedy or not, as long as it is sure enough of them. What it drafts changes no token,
only the time of the step. Of its guesses it keeps nothing: once the target has computed the tokens that were right, it
computes them again out of what the target knows.
"""

import time
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from axon.engine.drafts import DraftAsk, Drafted, DraftRound
from axon.engine.native.draft_head import NativeHead
from axon.engine.native.model import Ints, Rows
from axon.engine.phases import within

_EXPECTED = 0.6
"""How sure a head is expected to be of its next guess."""


class HeadDrafter:
    """Asks the head. It keeps nothing of a stream but what is in its blocks."""

    keeps_drafts = False
    later = None

    def __init__(self, head: NativeHead, *, max_len: int) -> None:
        self._head = head
        self.max_len = max_len
        """Most tokens of a stream that the head can attend to."""

    def warm_up(self) -> None:
        """Drafts a token for nobody, before any stream: the first round makes the buffers."""
        self.draft([DraftAsk(id="", first=0, token_ids=(0,), block_ids=(0,), num_drafts=1)])

    def draft(self, asks: Sequence[DraftAsk]) -> Drafted:
        """Computes the asked tokens in a first round, and in each round after it the drafts of the one before."""
        if not asks:
            return Drafted()
        started_at = time.perf_counter()
        with within("draft"):
            guesses = self._head.draft(
                _rows_of(asks),
                _ints([ask.num_drafts for ask in asks]),
                inverse_temperatures=np.array([_inverse_temperature(ask) for ask in asks], np.float32),
                least=np.array([ask.min_probability for ask in asks], np.float32),
                going=np.array([ask.next_min_probability / _EXPECTED for ask in asks], np.float32),
            )
        by_id = {ask.id: drafts for ask, drafts in zip(asks, guesses.drafts, strict=True)}
        around_s = time.perf_counter() - started_at - sum(seconds for _, seconds in guesses.rounds)
        rounds = [
            DraftRound(
                num_tokens=num_rows,
                num_attended=_num_attended(asks, num_rows, first=not number),
                seconds=seconds if number else seconds + around_s,
            )
            for number, (num_rows, seconds) in enumerate(guesses.rounds)
        ]
        return Drafted(by_id=by_id, rounds=tuple(rounds), is_probe=all(ask.is_probe for ask in asks))


def _rows_of(asks: Sequence[DraftAsk]) -> Rows:
    return Rows(
        tokens=_ints([token for ask in asks for token in ask.token_ids]),
        positions=np.concatenate([np.arange(ask.first, ask.end, dtype=np.int32) for ask in asks]),
        span_starts=_ints([0, *accumulate(len(ask.token_ids) for ask in asks)]),
        block_ids=_ints([block_id for ask in asks for block_id in ask.block_ids]),
        table_starts=_ints([0, *accumulate(len(ask.block_ids) for ask in asks)]),
        outputs=_ints([]),
    )


def _num_attended(asks: Sequence[DraftAsk], num_rows: int, *, first: bool) -> int:
    """Tokens that the rows of a round attend to, which is an estimate for rounds after the first."""
    if first:
        return sum(len(ask.token_ids) * (ask.first + ask.end) // 2 for ask in asks)
    return num_rows * sum(ask.end for ask in asks) // len(asks)


def _inverse_temperature(ask: DraftAsk) -> float:
    """The inverse of the stream's temperature, which counts as 1 at least: below that, heads were measured on chats to
    be surer than they are right."""
    temperature = ask.draw.sampling.temperature if ask.draw is not None else 0.0
    return 1 / max(temperature, 1.0)


def _ints(numbers: list[int]) -> Ints:
    return np.array(numbers, np.int32)
