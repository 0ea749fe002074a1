"""Values to try the domain with. Text is anything that encodes; lone surrogates are refused before they get here."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from axon.domain.billing.ledger import Ledger
from axon.domain.billing.usage import Usage
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk, End, Token
from axon.domain.reply import ChatReply, CompletionReply, MessagesReply, OtherReply, Reply, ResponseReply
from axon.domain.sampling import Sampling
from axon.domain.turn import Turn, TurnState

text = st.text(max_size=8)
numbers = st.integers(0, 2**31 - 1)
times = st.floats(0, 2**40)
plain: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(text, inner, max_size=2),
    max_leaves=4,
)
extras = st.dictionaries(text.map(lambda name: f"x_{name}"), plain, max_size=2)
"""Fields of a later version: names no value of today has."""
tokens = st.tuples(st.integers(0, 3), numbers, text).map(lambda parts: Token(*parts))
ends = st.builds(End, st.integers(0, 3), st.sampled_from(["stop", "length"]), st.none() | st.integers(1, 20))
samplings = st.builds(
    Sampling,
    max_tokens=numbers,
    temperature=st.floats(0, 2),
    top_k=numbers,
    top_p=st.floats(0, 1),
    stop=st.lists(text, max_size=2).map(tuple),
    stop_ids=st.lists(numbers, max_size=2).map(tuple),
    ignore_eos=st.booleans(),
)


def make_job(**changes: Any) -> Job:
    job = Job(
        id="turn_1",
        tenant="acme",
        deployment="small",
        version="v1",
        lane="small/00",
        prompt_ids=(1, 2, 3),
        sampling=Sampling(max_tokens=8),
        seed=7,
        deadline=1_000.0,
        created=100.0,
    )
    return replace(job, **changes)


def replies() -> st.SearchStrategy[Reply]:
    return st.one_of(
        st.builds(
            ChatReply,
            model=text,
            include_usage=st.booleans(),
            prompt_logprobs=st.none() | st.integers(0, 20),
            extra=extras,
        ),
        st.builds(
            CompletionReply,
            model=text,
            echo=st.lists(text, min_size=2, max_size=3).map(tuple),
            best=st.integers(0, 4),
            hides_logprobs=st.booleans(),
            prompt_logprobs=st.none() | st.integers(0, 20),
            extra=extras,
        ),
        st.builds(
            ResponseReply,
            model=text,
            instructions=st.none() | st.text(min_size=1, max_size=8),
            max_output_tokens=st.none() | st.integers(1, 100),
            metadata=st.dictionaries(text, text, max_size=2),
            extra=extras,
        ),
        st.builds(MessagesReply, model=text, hides_thinking=st.booleans(), extra=extras),
        st.builds(OtherReply, name=text.map(lambda name: f"later-{name}"), extra=extras),
    )


def jobs() -> st.SearchStrategy[Job]:
    return st.builds(
        Job,
        id=text,
        tenant=text,
        deployment=text,
        version=text,
        lane=text,
        prompt_ids=st.lists(numbers, max_size=4).map(tuple),
        more_prompts=st.lists(st.lists(numbers, max_size=2).map(tuple), max_size=2).map(tuple),
        sampling=samplings,
        seed=st.integers(0, 2**63 - 1),
        deadline=times,
        created=times,
        ticket=text,
        choices=st.integers(1, 4),
        priority=st.integers(-5, 5),
        session=text,
        background=st.booleans(),
        retain=st.booleans(),
        trace=text,
        reply=replies(),
        pin=text,
        generation=numbers,
        needs=st.lists(text, max_size=2).map(tuple),
        extra=extras,
    )


ledgers = st.builds(Ledger, queued=numbers, emitted=numbers, wasted=numbers, attempts=numbers, queue_s=times)


def chunks() -> st.SearchStrategy[Chunk]:
    return st.builds(
        Chunk,
        first=st.integers(1, 10**6),
        epoch=st.integers(0, 2**53),
        tokens=st.lists(tokens, max_size=4).map(tuple),
        ends=st.lists(ends, max_size=2).map(tuple),
        terminal=st.sampled_from(["", *TurnState]).map(str),
        code=text,
        message=text,
        cached=numbers,
        ledger=st.none() | ledgers,
        extra=extras,
    )


def turns() -> st.SearchStrategy[Turn]:
    return st.builds(
        Turn,
        id=text,
        tenant=text,
        state=st.sampled_from(TurnState),
        opened_at=times,
        ended_at=st.none() | times,
        job=jobs(),
        tokens=st.lists(tokens, max_size=4).map(tuple),
        ends=st.lists(ends, max_size=2).map(tuple),
        usage=st.builds(Usage, prompt_tokens=numbers, cached_tokens=numbers, output_tokens=numbers),
        ledger=st.none() | ledgers,
        code=text,
        message=text,
        extra=extras,
    )


def streams() -> st.SearchStrategy[Chunk]:
    """A whole ended stream, as one chunk; every token's id is its seq."""

    def build(texts: list[str], marks: list[End], terminal: str) -> Chunk:
        numbered = tuple(Token(seq % 2, seq, piece) for seq, piece in enumerate(texts, start=1))
        return Chunk(first=1, epoch=1, tokens=numbered, ends=tuple(marks), terminal=terminal)

    marks = st.lists(ends, max_size=2, unique_by=lambda end: end.choice)
    states = st.sampled_from([str(state) for state in TurnState if state.terminal])
    return st.builds(build, st.lists(text, max_size=12), marks, states)


def cuts() -> st.SearchStrategy[list[int]]:
    """Places to cut a stream at."""
    return st.lists(st.integers(0, 12), max_size=6)


def cut_chunk(stream: Chunk, places: list[int]) -> tuple[Chunk, ...]:
    """The stream in pieces, some of them empty; the marks stay on the last."""
    edges = sorted(min(place, len(stream.tokens)) for place in places)
    pieces = []
    for start, end in zip([0, *edges], [*edges, len(stream.tokens)], strict=True):
        pieces.append(Chunk(first=start + 1, epoch=1, tokens=stream.tokens[start:end]))
    marks = {"ends": stream.ends, "terminal": stream.terminal, "code": stream.code, "message": stream.message}
    return (*pieces[:-1], replace(pieces[-1], **marks))  # type: ignore[arg-type]
