"""The engine of an embedding model: token ids in, vectors out, one microbatch a step. Knows no KV blocks."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from axon.domain.failure import Failure
from axon.engine.config import EngineConfig
from axon.engine.encoder.gathering import BatchLimits, Gathering, Input
from axon.engine.phases import enter
from axon.engine.protocol.messages import Add, Counters, Embedded, Ready, Refused, StepOutput
from axon.errors import Expired

_BATCHES_IN_HAND = 2
"""The worker holds inputs for this many batches: one that is computed, and one that gathers meanwhile."""


class Encoder(Protocol):
    """Something that makes vectors of token ids."""

    @property
    def kernel(self) -> str: ...

    @property
    def max_model_len(self) -> int: ...

    @property
    def vocab_size(self) -> int: ...

    def encode(self, batch: Sequence[Sequence[int]], second_starts: Sequence[int] = ()) -> list[bytes]:
        """The vectors of the inputs, in order, each as float32 numbers. None depends on the others.

        ``second_starts`` has the index at which the second text of each input begins, 0 for a single text; it is empty
        if no input is a pair.
        """


class EncoderEngine:
    """Gathers inputs and computes them; a sequence ends with its vector."""

    def __init__(self, config: EngineConfig, encoder: Encoder) -> None:
        """``config`` has the defaults of its device."""
        self._encoder = encoder
        self._limits = BatchLimits(
            max_inputs=max(1, config.embedding_batch),
            max_tokens=max(1, config.max_batch_tokens),
            enough_tokens=max(1, config.embedding_enough_tokens),
            gather_s=max(0.0, config.embedding_gather_ms / 1000),
        )
        self._gathering = Gathering(self._limits)
        self._refused: list[Refused] = []
        self._note: Callable[[Sequence[str]], None] | None = None

    @property
    def has_work(self) -> bool:
        """Whether inputs wait, or a refusal."""
        return bool(len(self._gathering) or self._refused)

    @property
    def wait_s(self) -> float:
        """Seconds for which the next step may be put off, because its batch still gathers."""
        return 0.0 if self._refused else self._gathering.wait_s(time.monotonic()) or 0.0

    def ready(self) -> Ready:
        """The encoder's kernel, and how many inputs the worker may hand in at once. It has no blocks."""
        return Ready(
            kernel=self._encoder.kernel,
            max_model_len=self._encoder.max_model_len,
            max_sequences=_BATCHES_IN_HAND * self._limits.max_inputs,
            num_blocks=0,
            block_size=1,
        )

    def note_steps(self, note: Callable[[Sequence[str]], None]) -> None:
        """Has ``note`` called before each step with the ids of the inputs in it."""
        self._note = note

    def add(self, add: Add) -> None:
        """Takes an input in; a refusal comes with the next step's output."""
        self.abort([add.id])
        if add.adapter:
            message = "A model that gives vectors takes no LoRA adapters."
            self._refused.append(Refused(add.id, Failure.ADAPTER_UNUSABLE, message))
        elif len(add.prompt_ids) > self._encoder.max_model_len:
            message = f"The input has {len(add.prompt_ids)} tokens; the model takes {self._encoder.max_model_len}."
            self._refused.append(Refused(add.id, Failure.CONTEXT_TOO_LONG, message))
        elif not _is_known(add, self._encoder.vocab_size):
            self._refused.append(Refused(add.id, Failure.INVALID, "The input has token ids that the model lacks."))
        else:
            self._gathering.add(
                Input(
                    id=add.id,
                    token_ids=add.prompt_ids,
                    second_start=add.second_start,
                    request=(add.tenant, add.seed),
                    priority=add.priority,
                    weight=add.weight,
                    deadline=add.deadline,
                    arrived_at=time.monotonic(),
                )
            )

    def abort(self, ids: list[str]) -> None:
        """Forgets inputs; unknown ids are ignored."""
        self._gathering.drop(ids)

    @property
    def rest_s(self) -> float | None:
        """Nothing changes while it is idle."""
        return None

    def erase(self, sessions: list[str]) -> None:
        """It keeps nothing of any session."""

    def step(self) -> StepOutput:
        """Computes the next batch, if one is due."""
        enter("schedule")
        began = time.monotonic()
        refused, self._refused = self._refused, []
        refused += [Refused(id, Expired.code, "") for id in self._gathering.expired(time.time())]
        batch = self._gathering.take() if self._gathering.wait_s(began) == 0.0 else []
        self._note_ids([each.id for each in batch])
        enter("forward")
        vectors = self._encode(batch) if batch else []
        enter("settle")
        self._note_ids([])
        waiting = self._gathering.ids
        counters = Counters(
            num_running=len(batch),
            num_waiting=len(waiting),
            batch_tokens=sum(len(each.token_ids) for each in batch),
            step_s=time.monotonic() - began,
        )
        embedded = [Embedded(each.id, vector) for each, vector in zip(batch, vectors, strict=True)]
        return StepOutput(embedded=embedded, refused=refused, waiting=waiting, counters=counters)

    def tend(self) -> bool:
        """Nothing of the start is left for later."""
        return False

    def prepare(self) -> None:
        """Does nothing: an encoder knows no grammars."""

    def check(self) -> None:
        """Proves nothing: an encoder keeps no blocks."""

    def close(self) -> None:
        """Releases nothing: the process ends."""

    def _encode(self, batch: Sequence[Input]) -> list[bytes]:
        starts = [each.second_start for each in batch]
        return self._encoder.encode([each.token_ids for each in batch], starts if any(starts) else ())

    def _note_ids(self, ids: list[str]) -> None:
        if self._note is not None:
            self._note(ids)


def _is_known(add: Add, vocab_size: int) -> bool:
    """Whether the input has tokens, all of the vocabulary, and its second text begins among them."""
    is_inside = 0 <= add.second_start < max(1, len(add.prompt_ids))
    return is_inside and bool(add.prompt_ids) and all(0 <= token_id < vocab_size for token_id in add.prompt_ids)
