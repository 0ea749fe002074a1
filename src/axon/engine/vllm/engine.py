"""The engine over vLLM: sequences in, one step after the other, tokens out. Imports no vLLM itself.

What it cannot promise is listed in ``axon.engine.vllm``.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from axon.domain.failure import Failure
from axon.engine.config import EngineConfig
from axon.engine.protocol.messages import Add, Counters, Emitted, Ready, Refused, Scored, StepOutput
from axon.engine.schedule.policy import make_policy
from axon.engine.schedule.sequence_limits import SequenceLimits
from axon.engine.vllm.door import Door
from axon.engine.vllm.opening import OpenedVllm
from axon.engine.vllm.outputs import Output, emitted_of, refusal_of, scored_of
from axon.engine.vllm.parameters import prompt_of, sampling_of
from axon.errors import Expired

NO_ADAPTERS = (
    "The vLLM engine runs no LoRA adapters here: serve the model with Axon's own engine, or merge the adapter into it."
)


class VllmEngine:
    """vLLM behind a door that lets sequences in by the fair order."""

    def __init__(self, config: EngineConfig, opened: OpenedVllm, *, now: Callable[[], float] = time.time) -> None:
        self._opened, self._llm, self._now = opened, opened.llm, now
        self._limits = SequenceLimits(
            max_model_len=opened.max_model_len, num_blocks=opened.num_blocks, block_size=opened.block_size
        )
        self._door = Door(opened.max_sequences, make_policy(config.policy))
        self._begun: set[str] = set()
        """The sequences inside that have had a token of this attempt."""
        self._refused: list[Refused] = []
        self._note: Callable[[Sequence[str]], None] = lambda ids: None

    @property
    def has_work(self) -> bool:
        """Whether a step would do something."""
        return bool(self._door.waiting or self._door.inside or self._refused)

    @property
    def wait_s(self) -> float:
        """No step is put off."""
        return 0.0

    @property
    def rest_s(self) -> float | None:
        """Nothing is to be looked after while it is idle."""
        return None

    def ready(self) -> Ready:
        """The model's kernel and the sizes of this engine."""
        return Ready(
            kernel=self._opened.kernel,
            max_model_len=self._opened.max_model_len,
            max_sequences=self._opened.max_sequences,
            num_blocks=self._opened.num_blocks,
            block_size=self._opened.block_size,
            eos_ids=self._opened.eos_ids,
        )

    def note_steps(self, note: Callable[[Sequence[str]], None]) -> None:
        """Has ``note`` called before each step with the ids of the sequences in it."""
        self._note = note

    def add(self, add: Add) -> None:
        """Takes in a sequence; a refusal comes with the next step's output."""
        self.abort([add.id])
        refusal = self._limits.refusal(replace(add, kv_share=1.0 if add.kv_share > 0 else add.kv_share))
        if add.adapter:
            refusal = Refused(add.id, Failure.ADAPTER_UNUSABLE, NO_ADAPTERS)
        if refusal is not None:
            self._refused.append(refusal)
        else:
            self._door.arrive(add)

    def abort(self, ids: list[str]) -> None:
        """Forgets sequences and frees their blocks; unknown ids are ignored."""
        inside = self._door.leave(ids)
        self._begun.difference_update(inside)
        self._refused = [each for each in self._refused if each.id not in ids]
        if inside:
            self._llm.abort_request(inside)

    def erase(self, sessions: list[str]) -> None:
        """Keeps no copy of a block outside the device, so there is none to erase."""

    def step(self) -> StepOutput:
        """Hands in what has a slot, has vLLM compute one step, and returns its output."""
        began = time.perf_counter()
        self._drop_expired()
        while (add := self._door.let_in()) is not None:
            self._hand_in(add)
        outputs: Sequence[Output] = []
        if self._door.inside:
            self._note(list(self._door.inside))
            outputs = self._llm.step()
        self._note([])
        emitted, scored, computed = self._take(outputs)
        refused, self._refused = self._refused, []
        return StepOutput(
            emitted=emitted,
            scored=scored,
            refused=refused,
            waiting=list(self._door.waiting),
            counters=self._count(computed, time.perf_counter() - began),
        )

    def tend(self) -> bool:
        """Nothing of its start is left for later."""
        return False

    def prepare(self) -> None:
        """Nothing to prepare: vLLM reads its tokenizer when it starts."""

    def check(self) -> None:
        """Proves that nothing is in use while nothing runs; raises AssertionError where it is."""
        assert self._door.inside or not self._begun, "a sequence has left, and is remembered"

    def close(self) -> None:
        """Ends vLLM."""
        self._opened.close()

    def _hand_in(self, add: Add) -> None:
        """Gives a sequence to vLLM; what it does not take is refused with its words."""
        self._note(list(self._door.inside))  # a crash over its grammar is its own
        try:
            params = self._opened.sampling(sampling_of(add, self._opened.eos_ids), add.sampling.grammar)
            id = self._llm.add_request(add.id, prompt_of(add), params, priority=-add.priority)
            if add.sampling.grammar and add.output_ids:
                self._opened.follow(id or add.id, add.output_ids)
        except self._opened.refusals as error:
            said = str(error).splitlines() or [type(error).__name__]
            self._refuse(add.id, Failure.INVALID, f"vLLM does not take this request: {said[0]}")

    def _drop_expired(self) -> None:
        now = self._now()
        for add in [*self._door.waiting.values(), *self._door.inside.values()]:
            if add.deadline is not None and add.deadline <= now:
                self._refuse(add.id, Expired.code, "The deadline has passed.")

    def _refuse(self, id: str, code: str, message: str) -> None:
        self.abort([id])
        self._refused.append(Refused(id, code, message))

    def _take(self, outputs: Sequence[Output]) -> tuple[list[Emitted], list[Scored], int]:
        """The messages of a step's outputs, and how many tokens it computed."""
        emitted: list[Emitted] = []
        scored: list[Scored] = []
        computed = 0
        for output in outputs:
            add = self._door.inside.get(output.request_id)
            if add is None:
                continue  # aborted meanwhile
            is_first = add.id not in self._begun
            if is_first and (scores := scored_of(output, add)) is not None:
                scored.append(scores)
            tokens = emitted_of(output, add, is_first=is_first)
            emitted += tokens
            computed += self._charge(add, tokens, is_first=is_first)
            refusal = refusal_of(output, add)
            if refusal is not None:
                self._refused.append(refusal)
            if refusal is not None or (tokens and tokens[-1].finish):
                self._door.leave([add.id])
                self._begun.discard(add.id)
        return emitted, scored, computed

    def _charge(self, add: Add, tokens: Sequence[Emitted], *, is_first: bool) -> int:
        """Charges a sequence's tenant for its new tokens; returns how many tokens were computed for them."""
        if not tokens:
            return 0
        self._begun.add(add.id)
        cached = tokens[0].cached
        prefilled = len(add.prompt_ids) + len(add.output_ids) - cached if is_first else 0
        self._door.charge(add.id, prefilled=prefilled, cached=cached, emitted=len(tokens))
        return prefilled + len(tokens) - is_first

    def _count(self, computed: int, step_s: float) -> Counters:
        priorities: dict[int, int] = {}
        for add in self._door.inside.values():
            priorities[add.priority] = priorities.get(add.priority, 0) + 1
        free = self._opened.num_free_blocks()
        return Counters(
            num_running=len(self._door.inside),
            num_waiting=len(self._door.waiting),
            batch_tokens=computed,
            blocks_free=free,
            blocks_used=self._opened.num_blocks - free,
            running_by_priority=priorities,
            step_s=step_s,
        )
