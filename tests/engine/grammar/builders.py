"""A made-up vocabulary and a made-up model, so that grammars can be followed in milliseconds."""

import json
import zlib
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

from axon.engine.batch import Batch, Drawn, Span, fill
from axon.engine.core import EngineCore
from axon.engine.draft_model import DraftModel
from axon.engine.grammar.grammars import Grammars
from axon.engine.grammar.vocabulary import Vocabulary
from axon.engine.protocol.messages import Emitted, Refused
from axon.engine.sample.sampler import sample
from axon.engine.schedule.limits.controller import NO_DRAFTS, FixedController, StepLimits
from tests.engine.builders import FREE_DRAFTS, make_scheduler

LONGER = [b'{"', b'":', b'",', b'"}', b'":"', b'","', b"ab", b"abc", b"abab", b"true", b"false", b"null", b"12", b"},{"]
SIZE = 256 + 2 + len(LONGER)
EOS_ID, OTHER_EOS_ID = SIZE - 1, SIZE - 2


class Pieces:
    """Single bytes and a few longer tokens, cut from text by the longest that fits."""

    eos_token_id = EOS_ID
    bos_token_id = None
    special_token_ids = (OTHER_EOS_ID, EOS_ID)
    tokens = (*(bytes([id]) for id in range(256)), *LONGER, b"<end>", b"<eos>")

    def __call__(self, text: bytes) -> list[int]:
        ids = []
        while text:
            piece = max((each for each in self.tokens[:-2] if text.startswith(each)), key=len)
            ids.append(self.tokens.index(piece))
            text = text[len(piece) :]
        return ids


@cache
def pieces() -> Vocabulary:
    return Vocabulary(LLTokenizer(TokenizerWrapper(Pieces()), n_vocab=SIZE, eos_token=[OTHER_EOS_ID, EOS_ID]))


def text_of(ids: Sequence[int]) -> str:
    return b"".join(Pieces.tokens[id] for id in ids if id < OTHER_EOS_ID).decode()


class MadeUpModel:
    """Its logits are random numbers that depend on all the tokens before, read back from the blocks."""

    def __init__(self, block_size: int, favourites: bytes = b"") -> None:
        self._block_size = block_size
        self._ids: dict[int, int] = {}
        self._favourites = [*favourites]

    def run(self, batch: Batch) -> list[Drawn]:
        rows = [row for span in batch.spans for row in self._rows(span)]
        return sample(np.array(rows, np.float32), batch.draws) if rows else []

    def _rows(self, span: Span) -> list[Any]:
        for offset, id in enumerate(span.token_ids):
            self._ids[self._slot(span, span.first + offset)] = id
        return [self._logits(span, end) for end in range(span.end - len(span.draws) + 1, span.end + 1)]

    def _logits(self, span: Span, end: int) -> Any:
        ids = [self._ids[self._slot(span, position)] for position in range(end)]
        row = np.random.default_rng(zlib.crc32(repr(ids).encode())).normal(0, 2, SIZE)
        row[self._favourites] += 6
        return row

    def _slot(self, span: Span, position: int) -> int:
        return span.block_ids[position // self._block_size] * self._block_size + position % self._block_size


class Ahead:
    """Runs a batch when it is launched: the one before it has landed by then, but is not settled."""

    def __init__(self, model: MadeUpModel) -> None:
        self._model = model
        self._latest: dict[str, int] = {}

    def launch(self, batch: Batch) -> "Ahead.Landed":
        drawn = self._model.run(fill(batch, self._latest))
        ids = [span.id for span in batch.spans if span.draw is not None]
        self._latest.update({id: each.token for id, each in zip(ids, drawn, strict=True)})
        return self.Landed(drawn)

    class Landed:
        def __init__(self, drawn: list[Drawn]) -> None:
            self._drawn = drawn

        def land(self) -> list[Drawn]:
            return self._drawn


def make_core(
    *,
    draft_price: float = NO_DRAFTS,
    blocks: int = 400,
    favourites: bytes = b"",
    ahead: bool = False,
    draft: bytes | None = None,
) -> EngineCore:
    """With ``draft``, a made-up model with these favourites drafts as often as it can."""
    scheduler = make_scheduler(
        blocks=blocks,
        max_batch_tokens=64,
        eos_ids=frozenset({OTHER_EOS_ID, EOS_ID}),
        max_draft_len=0 if draft is None else 1000,
    )
    model = MadeUpModel(scheduler.pool.block_size, favourites)
    limits = StepLimits(
        max_prefill_tokens=16, draft_price=draft_price, draft_costs=None if draft is None else FREE_DRAFTS
    )
    return EngineCore(
        scheduler,
        model,
        launcher=Ahead(model) if ahead else None,
        kernel="made up",
        controller=FixedController(limits),
        open_grammars=partial(Grammars, pieces),
        draft_model=None
        if draft is None
        else DraftModel(MadeUpModel(scheduler.pool.block_size, draft), vocab_size=SIZE, max_len=1000),
    )


def run(core: EngineCore, adds: Sequence[Any]) -> tuple[dict[str, list[Emitted]], dict[str, Refused]]:
    """Runs sequences to their ends; returns what each emitted, and the refusals."""
    outputs: dict[str, list[Emitted]] = {add.id: [] for add in adds}
    refused: dict[str, Refused] = {}
    for add in adds:
        core.add(add)
    for _ in range(5000):
        if not core.has_work:
            break
        output = core.step()
        for emitted in output.emitted:
            outputs[emitted.id].append(emitted)
        refused |= {each.id: each for each in output.refused}
    assert not core.has_work, "the engine does not come to an end"
    core.check()
    core.close()
    return outputs, refused


def tokens(emitted: Sequence[Emitted]) -> list[int]:
    return [each.token for each in emitted]


def of_schema(schema: Any) -> str:
    return LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides={"whitespace_flexible": False})


def of_regex(regex: str) -> str:
    return LLMatcher.grammar_from_regex(regex)
