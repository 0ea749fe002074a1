"""The vectors of a request's inputs: admits jobs of one chunk each, and waits for them. Knows no answer's form."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from starlette.requests import Request

from axon.admission.limits import BYTES_PER_TOKEN
from axon.domain.model.embeds import Embeds
from axon.domain.model.served_version import ServedVersion
from axon.domain.reply import EmbeddingReply
from axon.domain.sampling import Sampling
from axon.domain.tenants.tenant import Tier
from axon.errors import InvalidInput
from axon.gateway.http.errors import Gone
from axon.gateway.offers.offer import Offer
from axon.gateway.offers.offers import Wanted
from axon.gateway.openai.outcome import failure
from axon.gateway.openai.sentences import blaming
from axon.gateway.turn.asking import Api, Part, admitted
from axon.gateway.turn.context import find_model, gateway_of
from axon.gateway.turn.entry import Entry
from axon.gateway.turn.job import job_of
from axon.gateway.turn.kind import Kind, check_kind
from axon.gateway.turn.target import target_of
from axon.gateway.turn.whole import answered
from axon.sessions.embedding_inputs import Fields, Input, Pair, input_ids
from axon.sessions.new_job import Work

if TYPE_CHECKING:
    from axon.domain.job import Job


class Inputs(Protocol):
    """What a request wants vectors of."""

    @property
    def model(self) -> str: ...

    @property
    def tier(self) -> Tier: ...

    @property
    def truncate_prompt_tokens(self) -> int | None: ...

    @property
    def kind(self) -> Kind:
        """What is wanted of the model."""

    @property
    def fields(self) -> Fields:
        """The fields that errors about inputs name."""

    def texts(self, embeds: Embeds) -> Sequence[Input]:
        """The inputs with the model's prompts before them; all are pairs, or none is. Raises for what the model cannot
        do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """The vectors of all inputs, in order."""

    vectors: Sequence[bytes]
    embeds: Embeds
    num_tokens: int
    id: str
    """Id of the last job."""


async def embedded(request: Request, body: bytes, api: Api, ask: Inputs) -> Embedded:
    """Returns the vectors of the inputs, which the log forgets with that; raises the error of a job that failed."""
    gateway, wanted = gateway_of(request), replace(find_model(request, ask.model), fallbacks=())
    served = _expected(wanted)
    vectors: list[bytes] = []
    jobs: list[Job] = []
    # One job after the other: a large request holds one place of its tenant's, and memory for one chunk at a time.
    while len(vectors) < (sizes := _sizes(served, ask)).num_inputs:
        num_next = min(sizes.most, sizes.num_inputs - len(vectors))
        num_bytes = admitted_bytes(served, ask, len(body), skip=len(vectors), count=num_next)
        part = Part(len(jobs), num_bytes)
        entry, asked = await _accepted(request, body, api, ask, wanted, part, skip=len(vectors), most=num_next)
        jobs.append(entry.job)
        vectors += await _vectors(request, entry)
        served = answering(wanted.offer, entry.job.version, asked)
        wanted = replace(wanted, version=entry.job.version)  # vectors of two versions cannot be compared
    for job in jobs:
        await gateway.follower.delivered(job)
    num_tokens = sum(job.num_prompt_tokens for job in jobs)
    return Embedded(vectors=vectors, embeds=_embeds(served, ask.kind), num_tokens=num_tokens, id=jobs[-1].id)


async def _accepted(
    request: Request, body: bytes, api: Api, ask: Inputs, wanted: Wanted, part: Part, *, skip: int, most: int
) -> tuple[Entry, ServedVersion | None]:
    """Returns the entry of an accepted job for the next ``most`` inputs behind ``skip`` of them, and the version that
    this request's job was made for; None for a repeated one."""
    served: ServedVersion | None = None
    async with admitted(request, body, api, wanted, tier=ask.tier, keeps=False, streams=False, part=part) as entry:
        if entry.is_new:
            with blaming(ask.fields.others, ask.fields.others):
                target = await target_of(request, entry, wanted, kind=ask.kind)
                served, embeds = target.served, _embeds(target.served, ask.kind)
                found = await input_ids(
                    target.prompts,
                    ask.texts(embeds)[skip : skip + min(most, _sizes(served, ask).most)],
                    fields=ask.fields.behind(skip),
                    lowercase=embeds.lowercase,
                    truncate=cut_at(ask.truncate_prompt_tokens, target.prompts.max_model_len),
                )
                work = Work(
                    prompts=[each.ids for each in found],
                    second_starts=[each.second_start for each in found],
                    sampling=Sampling(max_tokens=0, temperature=0.0),
                    seed=None,
                    reply=EmbeddingReply(model=ask.model),
                )
                job = job_of(request, entry, target, work)
            await entry.accept(job)
    return entry, served


async def _vectors(request: Request, entry: Entry) -> tuple[bytes, ...]:
    """Waits for the job's end and returns its vectors; raises its error, or ``Gone`` for those that were delivered."""
    chunks = await answered(request, entry.job, found=entry.found)
    if error := failure(chunks[-1], entry.job.reply):
        raise error
    if len(chunks[-1].vectors) != entry.job.choices:
        raise Gone("The vectors of this repeated request are not kept any more.")
    return chunks[-1].vectors


def _expected(wanted: Wanted) -> ServedVersion:
    """The version that is asked for, else the stable one, which need not be the one that answers."""
    is_there = wanted.version and wanted.offer.deployment.member(wanted.version)
    return wanted.offer.served(wanted.version) if is_there else wanted.offer.listed().served


def cut_at(asked: int | None, max_model_len: int) -> int | None:
    """The number of tokens that each input is cut to; None where none is cut. -1 asks for the model's length."""
    if asked is None or 1 <= asked <= max_model_len:
        return asked
    if asked == -1:
        return max_model_len
    raise InvalidInput(
        f"'truncate_prompt_tokens' must be -1, or from 1 to {max_model_len}, which is what the model takes.",
        param="truncate_prompt_tokens",
    )


def answering(offer: Offer, version: str, asked: ServedVersion | None) -> ServedVersion:
    """The version that made vectors: the one that was asked, or that of an earlier request's job, which this one
    repeats. Raises ``Gone`` if that has left the deployment: nobody knows any more what its vectors mean."""
    if asked is not None and asked.version == version:
        return asked
    if offer.deployment.member(version) is None:
        raise Gone("The version that answered this repeated request is gone; ask again with another idempotency key.")
    return offer.served(version)


def admitted_bytes(served: ServedVersion, ask: Inputs, num_body_bytes: int, *, skip: int, count: int) -> int:
    """The size that a part of the request is admitted with: its share of the body. Pairs repeat a text, which counts in
    each, so far as the model reads it."""
    texts = ask.texts(_embeds(served, ask.kind))
    longest = served.max_model_len * BYTES_PER_TOKEN
    pairs = (each for each in texts[skip : skip + count] if isinstance(each, Pair))
    num_pair_bytes = sum(min(longest, len(first) + len(second)) for first, second in pairs)
    return max(num_pair_bytes, num_body_bytes * count // len(texts))


class _Sizes(NamedTuple):
    num_inputs: int
    """Inputs that the version reads."""
    most: int
    """Inputs that one job may have."""


def _sizes(served: ServedVersion, ask: Inputs) -> _Sizes:
    embeds = _embeds(served, ask.kind)
    texts = ask.texts(embeds)
    is_paired = isinstance(texts[0], Pair)
    return _Sizes(len(texts), embeds.max_pairs(served.max_model_len) if is_paired else embeds.max_inputs)


def _embeds(served: ServedVersion, kind: Kind) -> Embeds:
    """The model's facts; raises ``Unsupported`` if it cannot give what is wanted."""
    check_kind(served, kind)
    assert served.embeds is not None
    return served.embeds
