"""A turn's work on the queue: self-contained, so that any worker can run it, twice if need be, with one result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from axon.domain.item import Item
from axon.domain.reply import ChatReply, Reply
from axon.domain.sampling import Sampling

_SHORTEST_S = 5.0
"""No reader is taken for gone sooner: its words may be late, or its gateway lost."""


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
    """Of one that asks several prompts at once: those behind the first. Each has as many of the choices."""
    sampling: Sampling
    """Of each choice."""
    choices: int = 1
    """Answers asked for: one stream carries them all."""
    seed: int
    """Drawn at acceptance when the client gave none: a regenerated token is the same token."""
    deadline: float
    """Unix time after which nobody waits for it."""
    created: float
    reasoning: str = ""
    """Whether thinking is parted from the answer: empty for no, ``text`` or ``inside`` when the prompt has begun it."""
    ticket: str = ""
    priority: int = 0
    """Of its tier: 1 priority, 0 default, -1 flex."""
    weight: float = 1.0
    """Its tenant's share, measured against the others'."""
    kv_share: float = 1.0
    """How much of an engine's blocks its tenant's turns may hold."""
    reserved: float = 0.0
    """Share of a worker's slots that is its tenant's whenever it asks."""
    session: str = ""
    ordinal: int = 0
    """Its place in its session; of equal ones the earlier comes first."""
    affinity: str = ""
    """What turns with a common beginning share where they have no session: a digest of a chat's first messages."""
    previous: str = ""
    """The turn it goes on from, where it names one."""
    items: tuple[Item, ...] = ()
    """What was said in this turn before its answer; what was said before it is its session's."""
    idempotency_key: str = ""
    body_digest: str = ""
    """Of the request's body, to tell a repeated request from another one under the same key."""
    background: bool = False
    """Goes on without a reader."""
    reader_grace_s: float | None = None
    """How long it goes on without a reader: None for as long as its server lets it, 0 ends it with its connection."""
    retain: bool = False
    """Its text is kept past the retention time (``store: true``)."""
    forget: bool = False
    """Its text is kept nowhere once it has ended (``store: false`` of a response)."""
    trace: str = ""
    """W3C traceparent."""
    tracestate: str = ""
    """W3C tracestate of the caller, which travels with ``trace``."""
    pin: str = ""
    """Key of the pin that holds its session on one version; empty for a turn that is its own session."""
    generation: int = 0
    """How often its session was moved to another version before this turn."""
    needs: tuple[str, ...] = ()
    """What a worker must understand to run it; empty for what every release does."""
    price: str = ""
    """Id of the price that held when it was accepted."""
    reply: Reply = field(default_factory=ChatReply)
    """How its gateway writes the answer."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a later version, kept as they came."""

    def prompt_of(self, choice: int) -> tuple[int, ...]:
        """What a choice goes on from: the first prompt's choices come first."""
        place = choice // self.choices_each
        return self.more_prompts[place - 1] if place else self.prompt_ids

    @property
    def choices_each(self) -> int:
        """Of each of its prompts."""
        return self.choices // (1 + len(self.more_prompts))

    @property
    def num_prompt_tokens(self) -> int:
        """Of all its prompts."""
        return len(self.prompt_ids) + sum(map(len, self.more_prompts))

    def reader_ttl_s(self, longest_s: float) -> float | None:
        """How long a word that it has a reader counts; None where it waits for none. ``longest_s``: the server's."""
        if self.background:
            return None
        grace_s = longest_s if self.reader_grace_s is None else self.reader_grace_s
        return min(longest_s, max(grace_s, _SHORTEST_S))

    @property
    def purged(self) -> bool:
        """Its text was forgotten after its time: a job always has a prompt."""
        return not self.prompt_ids
