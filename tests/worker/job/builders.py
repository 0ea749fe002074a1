"""Builds attempts at a job, and feeds them tokens."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from hypothesis import strategies as st

from axon.domain.log.chunk import Chunk, Token
from axon.domain.sampling import Sampling
from axon.engine.protocol.messages import Emitted
from axon.ports.queue import Delivery
from axon.text.tokenizer import ByteTokenizer
from axon.worker.job.running import Running
from tests.contracts.builders import make_job

TOKENIZER = ByteTokenizer()


stop_strings = st.lists(st.text("ab\né", min_size=1, max_size=4), max_size=3).map(tuple)
"""Of few letters, so that they begin and break off often; of more than one byte, so that a token is half a letter."""


texts = st.text("ab\né🙂", max_size=24)


def make_running(
    *,
    stop: Iterable[str] = (),
    epoch: int = 1,
    choices: int = 1,
    reasoning: str = "",
    more_prompts: tuple[tuple[int, ...], ...] = (),
) -> Running:
    job = make_job(
        sampling=Sampling(max_tokens=1000, stop=tuple(stop)),
        choices=choices,
        reasoning=reasoning,
        more_prompts=more_prompts,
    )
    delivery = Delivery(tag=1, lane=job.lane, body=b"", redelivered=False)
    return Running(job=job, delivery=delivery, epoch=epoch, tokenizer=TOKENIZER)


def push(running: Running, token_id: int, finish: str | None = None, *, choice: int = 0) -> bool:
    return running.push(running.choices[choice], Emitted("", token_id, finish))


def run(running: Running, ids: Iterable[int], finish: str = "length") -> Running:
    """Pushes the rest of the ids, the last with its finish, until something ends the job."""
    left = list(ids)[len(running.tokens) :]
    for place, token_id in enumerate(left, start=1):
        if push(running, token_id, finish if place == len(left) else None):
            break
    return running


def text_of(tokens: Iterable[Token]) -> str:
    return "".join(token.text for token in tokens)


def said(chunk: Chunk | None) -> Chunk | None:
    """What a chunk says, without what it took."""
    return replace(chunk, ledger=None) if chunk else None


def joined(chunks: list[Chunk]) -> Chunk:
    """What a reader makes of chunks that follow one another."""
    for before, after in pairwise(chunks):
        assert after.first == before.last + 1
    last = chunks[-1]
    tokens = tuple(token for chunk in chunks for token in chunk.tokens)
    ends = tuple({end: None for chunk in chunks for end in chunk.ends})
    return Chunk(first=1, epoch=last.epoch, tokens=tokens, ends=ends, terminal=last.terminal)
