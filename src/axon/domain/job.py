"""A turn's work on the queue. It is self-contained: any worker can run it, and a second run gives the same result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from axon.domain.billing.cost import Cost, Rates, amount_of
from axon.domain.billing.usage import Usage
from axon.domain.content.item import Item
from axon.domain.model.adapter import JobAdapter, adapted, mark_of
from axon.domain.moved import Moved
from axon.domain.reply import ChatReply, Reply
from axon.domain.sampling import Sampling

_SHORTEST_S = 5.0
"""Shortest reader lease in seconds: a reader's renewal may be late, or its gateway may have died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job. Its id is the turn's id, the stream's id and what the client sees as the answer's id."""

    v: int = 1
    id: str
    tenant: str
    deployment: str
    version: str
    """The deployment version it was tokenised for: weights, tokenizer, template and kernel."""
    lane: str
    prompt_ids: tuple[int, ...]
    more_prompts: tuple[tuple[int, ...], ...] = ()
    """The second and later prompts of a request with several. The choices are divided evenly among the prompts."""
    second_starts: tuple[int, ...] = ()
    """For prompts that are pairs of texts: the index at which each pair's second text begins, 0 if a tokenizer does not
    tell them apart; empty if no prompt is a pair."""
    sampling: Sampling
    """Sampling parameters, the same for each choice."""
    choices: int = 1
    """Number of answers over all prompts; one stream carries them all."""
    seed: int
    """Random seed, drawn at acceptance when the client gave none, so that a regenerated token is the same token."""
    deadline: float
    """Unix time after which the job has expired."""
    created: float
    reasoning: str = ""
    """Rule that separates reasoning from the answer: empty for none, ``text`` when the answer opens the reasoning,
    ``inside`` when the prompt has opened it already, ``harmony`` when it is a channel of the answer."""
    call_format: str = ""
    """Format in which the model writes tool calls, by which the worker parses them out of the text; empty if the
    request offers no tools."""
    max_calls: int = 0
    """Number of tool calls with which a choice ends; 0 for any number."""
    text_parameters: tuple[str, ...] = ()
    """Parameters of tools that are declared as text, as ``function/parameter``, for a format whose values do not say
    it."""
    formed: bool = False
    """Whether the answer is either tool calls, from its first character on, or text of a form that the request asks
    for, in which no calls are looked for."""
    ticket: str = ""
    priority: int = 0
    """Priority of its tier: 1 priority, 0 default, -1 flex."""
    weight: float = 1.0
    """Its tenant's weight in fair sharing."""
    kv_share: float = 1.0
    """Fraction of an engine's KV blocks that its tenant's turns may hold, 0 to 1."""
    reserved: float = 0.0
    """Fraction of a worker's slots reserved for its tenant, 0 to 1."""
    session: str = ""
    ordinal: int = 0
    """Number of its step in its session; equal ordinals are ordered by time."""
    affinity: str = ""
    """Routing key for turns without a session: a digest of the chat's first messages, which its turns have in
    common."""
    previous: str = ""
    """Id of the turn that it continues, where it names one."""
    items: tuple[Item, ...] = ()
    """Input items of this turn; earlier items belong to the session's earlier turns."""
    idempotency_key: str = ""
    body_digest: str = ""
    """Digest of the request's body, which distinguishes a repeated request from another one under the same key."""
    background: bool = False
    """Whether it runs without a reader."""
    reader_grace_s: float | None = None
    """Seconds that it runs on without a reader: None for the server's default, 0 ends it with its connection."""
    retain: bool = False
    """Whether its text is kept past the retention time (``store: true``)."""
    forget: bool = False
    """Whether its text is kept nowhere once it has ended (``store: false`` of a response)."""
    trace: str = ""
    """W3C traceparent: the trace, and the span under which the turn's goes; see ``axon.domain.tracing.context``."""
    tracestate: str = ""
    """W3C tracestate of the caller, which travels with ``trace``."""
    request: str = ""
    """Id of the request that it was asked with."""
    arrived: float = 0.0
    """Unix time at which that request arrived; 0 where it is not known."""
    loaded_s: float = 0.0
    """Seconds from ``created`` until it was published: history, prompt and tokens."""
    pin: str = ""
    """Key of the pin that holds its session on one version; empty for a turn that is its own session."""
    generation: int = 0
    """Number of times that its session was moved to another version before this turn."""
    moved: Moved | None = None
    """The move of its session to the version that it is asked of, if this is the first turn there. It is kept in the
    job, so that every reader is told the same."""
    queued: int = 0
    """Its position in the line, from 1 on, if it waits for a worker to start: its version had none when it was
    accepted, or too few and more were to start. Its deadline has the deployment's patience with cold starts in it,
    and its readers are told how it waits. 0 for any other turn."""
    fallback: str = ""
    """The deployment's name, if it is not the one that was asked but a fallback of it."""
    needs: tuple[str, ...] = ()
    """Features that a worker must support to run it; empty for those that every release has."""
    price: str = ""
    """Id of the price that held when it was accepted; empty for a version without a price."""
    rates: Rates | None = None
    """Figures of that price. They are kept in the job, because a price goes when its model is removed."""
    adapter: JobAdapter | None = None
    """The LoRA adapter that it runs with; None for the model itself. A job with one needs the feature ``adapters``."""
    reply: Reply = field(default_factory=ChatReply)
    """The form in which the gateway writes the answer."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a later version, kept as they came."""

    def prompt_of(self, choice: int) -> tuple[int, ...]:
        """Token ids of the prompt of a choice; choices are numbered prompt by prompt."""
        index = choice // self.choices_each
        return self.more_prompts[index - 1] if index else self.prompt_ids

    def second_start_of(self, choice: int) -> int:
        """The index at which the second text of a choice's prompt begins; 0 for a single text."""
        return self.second_starts[choice // self.choices_each] if self.second_starts else 0

    @property
    def pinned(self) -> str:
        """What its session's pin names: its version, and its adapter where it has one."""
        return adapted(self.version, mark_of(self.adapter.digest)) if self.adapter else self.version

    @property
    def choices_each(self) -> int:
        """Number of choices per prompt."""
        return self.choices // (1 + len(self.more_prompts))

    @property
    def num_prompt_tokens(self) -> int:
        """Prompt tokens over all prompts."""
        return len(self.prompt_ids) + sum(map(len, self.more_prompts))

    def cost_of(self, usage: Usage) -> Cost | None:
        """The cost of this usage at the price that held when the job was accepted; None without a price."""
        return None if self.rates is None else Cost(price=self.price, amount=amount_of(usage, self.rates))

    def reader_ttl_s(self, longest_s: float) -> float | None:
        """Seconds that a reader's lease on the stream lasts; None for a job that needs no reader. ``longest_s`` is the
        server's limit."""
        if self.background:
            return None
        grace_s = longest_s if self.reader_grace_s is None else self.reader_grace_s
        return min(longest_s, max(grace_s, _SHORTEST_S))

    @property
    def purged(self) -> bool:
        """Whether its text was erased; every other job has a prompt."""
        return not self.prompt_ids
