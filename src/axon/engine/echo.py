"""An engine without a model: it repeats its prompt. Runs the real scheduler and blocks; knows no torch.

Its KV memory holds token ids, written and read through the block tables, so an error in the bookkeeping shows as a
wrong echo.
"""

import os
import time
from array import array
from dataclasses import replace

from axon.domain.byte_tokens import EOS_ID
from axon.domain.failure import Failure
from axon.engine.batch import Batch, Draw, Drawn, Span
from axon.engine.config import EngineConfig, for_device
from axon.engine.constraint import Compiler, Mask
from axon.engine.copies import Copies
from axon.engine.core import EngineCore
from axon.engine.protocol.messages import Add, Refused, StepOutput
from axon.engine.runner import Moved
from axon.engine.sample.uniform import uniform
from axon.engine.schedule.blocks import BlockPool
from axon.engine.schedule.policy import make_policy
from axon.engine.schedule.scheduler import Scheduler
from axon.engine.script import Script, open_script
from axon.engine.shelf.opening import open_shelf

POISON = (255, 255, 255)
"""A prompt with these ids in a row kills the process that runs it; UTF-8 text never has the byte 0xFF."""
POISON_EXIT_CODE = 13
HANGING = (254, 254, 254)
"""A prompt with these ids in a row makes a step that never returns."""

ID_BYTES = 8
"""Bytes of a token in its memory."""
_CLOSING = b'"}]'
_DEFAULT_MODEL_LEN = 8192
_KV_BYTES_PER_TOKEN = 4096  # pretended, so that kv_memory_bytes means about what it means with a small model


class EchoEngine(EngineCore):
    """Emits the prompt's ids in order and then the end token."""

    def __init__(self, config: EngineConfig) -> None:
        config = for_device(config, "cpu")
        num_blocks = max(1, config.kv_memory_bytes // (config.block_size * _KV_BYTES_PER_TOKEN))
        runner = EchoRunner(
            num_blocks, config.block_size, config.echo_step_s, config.echo_shift, open_script(config.echo_script)
        )
        shelf, mover = open_shelf(
            config,
            block_bytes=config.block_size * ID_BYTES,
            identity=lambda: f"{_kernel(config)} {config.block_size}",
            open_mover=runner.open_mover,
            counted_bytes=config.block_size * _KV_BYTES_PER_TOKEN,
        )
        scheduler = Scheduler(
            BlockPool(num_blocks, config.block_size),
            max_sequences=config.max_sequences,
            max_batch_tokens=config.max_batch_tokens,
            max_prefill_tokens=config.max_prefill_tokens,
            max_model_len=config.max_model_len or _DEFAULT_MODEL_LEN,
            eos_ids=frozenset({EOS_ID}),
            policy=make_policy(config.policy),
            shelf=shelf,
        )
        super().__init__(scheduler, runner, kernel=_kernel(config), open_grammars=_open_grammars, mover=mover)
        self._fails, self._failing = config.echo_fails, list[Refused]()

    @property
    def has_work(self) -> bool:
        return super().has_work or bool(self._failing)

    def add(self, add: Add) -> None:
        """Fails the share of sequences that it is told to, and takes in the others."""
        if self._fails and uniform(add.seed, add.choice, 0) < self._fails:
            self._failing.append(Refused(add.id, Failure.ENGINE_CRASH, "The echo engine was told to fail."))
        else:
            super().add(add)

    def step(self) -> StepOutput:
        failing, self._failing = self._failing, []
        output = super().step()
        return replace(output, refused=[*output.refused, *failing])


def _open_grammars() -> Compiler:
    from axon.engine.grammar.grammars import Grammars  # numpy comes with it, which echoing does not need
    from axon.engine.grammar.vocabulary import byte_vocabulary

    return Grammars(byte_vocabulary)


def _kernel(config: EngineConfig) -> str:
    return f"echo+{config.echo_shift}" if config.echo_shift else "echo"


def _allowed(token: int, draw: Draw, mask: Mask) -> int:
    """The token if the grammar allows it; else, by the draw's number, one that it allows.

    Behind the echo's end it closes what is open, so that grammars end too.
    """
    allowed = mask.allowed_ids()
    if token in allowed or not allowed:
        return token
    closing = [id for id in _CLOSING if id in allowed] if token == EOS_ID else []
    printable = [id for id in allowed if 32 <= id < 127]
    ids = closing[:1] or printable or allowed
    return ids[int(uniform(draw.seed, draw.choice, draw.position) * len(ids))]


class EchoRunner:
    """Computes nothing: stores ids in blocks and reads them back."""

    def __init__(
        self, num_blocks: int, block_size: int, step_s: float, shift: int = 0, script: Script | None = None
    ) -> None:
        self._script = script
        self._memory = array("q", bytes(ID_BYTES * num_blocks * block_size))
        self._block_size, self._step_s, self._shift = block_size, step_s, shift

    def run(self, batch: Batch) -> list[Drawn]:
        """Writes every span's ids, then answers each draw from its sequence's blocks."""
        if self._step_s:
            time.sleep(self._step_s)
        for span in batch.spans:
            for offset, token_id in enumerate(span.token_ids):
                self._memory[self._slot(span, span.first + offset)] = token_id
        return [self._drawn(span, draw) for span in batch.spans for draw in span.draws]

    def open_mover(self, num_slots: int) -> "EchoMover":
        """Makes slots for so many blocks; returns what copies them."""
        return EchoMover(memoryview(self._memory), self._block_size, num_slots)

    def _drawn(self, span: Span, draw: Draw) -> Drawn:
        """Every token has probability 1, drawn or given."""
        token = self._answer(span, draw) if draw.given is None else draw.given
        if draw.mask is not None:
            token = _allowed(token, draw, draw.mask)
        if draw.sampling.logprobs is None:
            return Drawn(token)
        rank = None if draw.given is None else 1
        return Drawn(token, 0.0, ((token, 0.0),) if draw.sampling.logprobs else (), rank)

    def _answer(self, span: Span, draw: Draw) -> int:
        assert span.draw is not None
        num_prompt = span.end - len(span.drafts) - span.draw.position
        if len(span.token_ids) > 1 or draw.position == 0:
            self._obey_poison(span, num_prompt)
        if self._script is not None:
            said = self._script.answer((span.id, span.arrival), lambda: self._prompt(span, num_prompt))
            if said is not None:
                return said[draw.position] if draw.position < len(said) else EOS_ID
        if draw.position >= num_prompt and not draw.sampling.ignore_eos and EOS_ID not in draw.banned_ids:
            return EOS_ID
        if draw.sampling.temperature > 0:
            index = int(uniform(draw.seed, draw.choice, draw.position) * num_prompt)
        else:
            index = (draw.position + self._shift) % num_prompt
        return self._memory[self._slot(span, index)]

    def _obey_poison(self, span: Span, num_prompt: int) -> None:
        prompt = self._prompt(span, num_prompt)
        trigrams = {tuple(prompt[index : index + 3]) for index in range(num_prompt - 2)}
        if POISON in trigrams:
            os._exit(POISON_EXIT_CODE)
        while HANGING in trigrams:
            time.sleep(3600)

    def _prompt(self, span: Span, num_prompt: int) -> list[int]:
        return [self._memory[self._slot(span, index)] for index in range(num_prompt)]

    def _slot(self, span: Span, position: int) -> int:
        return span.block_ids[position // self._block_size] * self._block_size + position % self._block_size


class EchoMover:
    """Copies blocks of ids to slots and back."""

    def __init__(self, blocks: memoryview, block_size: int, num_slots: int) -> None:
        self._blocks, self._block_size = blocks, block_size
        self._slots = memoryview(array("q", bytes(ID_BYTES * num_slots * block_size)))

    @property
    def memory(self) -> memoryview:
        return self._slots.cast("B")

    def move(self, copies: Copies) -> Moved:
        """Makes the copies."""
        began = time.perf_counter()
        for load in copies.loads:
            for slot, block_id in zip(load.slots, load.block_ids, strict=True):
                self._blocks[self._of(block_id)] = self._slots[self._of(slot)]
        for save in copies.saves:
            self._slots[self._of(save.slot)] = self._blocks[self._of(save.block_id)]
        return Moved(time.perf_counter() - began)

    def _of(self, number: int) -> slice:
        return slice(number * self._block_size, (number + 1) * self._block_size)
