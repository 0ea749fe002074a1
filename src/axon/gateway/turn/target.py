"""The version that a turn is asked of: the one that its session is pinned to, or that a new session begins on."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from starlette.requests import Request

from axon.admission.place import Place
from axon.domain.model.adapter import JobAdapter, adapted, mark_of, split_adapted
from axon.domain.model.served_version import ServedVersion
from axon.domain.moved import Moved
from axon.domain.registry.deployment import Deployment
from axon.domain.registry.price import Price
from axon.domain.registry.snapshot import first_version, named_version
from axon.domain.session.pin import Pin, pin_key, with_adapter
from axon.errors import Unsupported
from axon.gateway.offers.fallbacks import holder_of, known_among, offer_at
from axon.gateway.offers.offers import Wanted
from axon.gateway.turn.context import gateway_of, identity_of
from axon.gateway.turn.entry import Answering, Entry
from axon.gateway.turn.headers import session_name
from axon.gateway.turn.kind import Kind, check_kind
from axon.sessions.prompt import Prompts
from axon.text.tools.prompt import Dialect


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The version that answers a turn, with what is needed to make a job for it."""

    deployment: Deployment
    served: ServedVersion
    prompts: Prompts
    """Its tokenizer and template."""
    key: str = ""
    """Key of the session's pin; empty for a turn that is its own session."""
    pin: Pin
    moved: Moved | None = None
    """The session's move to this version, which the answer tells."""
    price: Price | None = None
    """The price that holds for the version now."""
    adapter: JobAdapter | None = None
    """The LoRA adapter that the turn runs with."""
    fallback: str = ""
    """Name of the deployment, if it is not the asked one but a fallback of it; the answer tells that too."""

    awaits_worker: bool = False
    """Whether the turn waits in its lane until a worker starts: its version has none yet in its pool, or those there
    are busy for longer than is promised, and more are to start."""

    @property
    def patience_s(self) -> float:
        """Seconds that are added to the turn's time for the start of a worker."""
        return self.deployment.cold_patience_s if self.awaits_worker else 0.0

    @property
    def letter(self) -> str:
        """The version's letter in the names of lanes."""
        member = self.deployment.member(self.served.version)
        return member.letter if member else ""

    @property
    def dialect(self) -> Dialect:
        """How tools are described to the model and how it writes calls."""
        return self.prompts.dialect(self.served.call_format)

    def reasoning(self, prompt_ids: Sequence[int]) -> str:
        """The rule that separates reasoning from the answer; empty for a model that writes none."""
        return self.prompts.reasoning(prompt_ids) if self.served.reasons else ""


async def target_of(
    request: Request,
    entry: Entry,
    wanted: Wanted,
    *,
    session: str = "",
    is_first: bool = False,
    prompt_cache_key: str | None = None,
    kind: Kind = Kind.TEXT,
) -> Target:
    """Decides which version answers the turn, before its prompt is rendered; the pin in ``live`` binds all gateways.

    ``session`` names the conversation or the chain that the turn continues. ``is_first`` says that it is named by this
    very turn. Without a session, the request's session header names it, else its ``prompt_cache_key``. ``kind`` is
    what it asks for: raises ``Unsupported`` if the model cannot give it.
    """
    gateway, at = gateway_of(request), offer_at(wanted, entry.ask.deployment)
    key_of = partial(
        pin_key,
        tenant=identity_of(request).tenant,
        session=session,
        session_header=session_name(request),
        prompt_cache_key=prompt_cache_key or "",
    )
    key, adapter = key_of(wanted.pin_name(wanted.offer.name)), wanted.adapter
    plain = known = known_among(wanted, at)
    if adapter is not None:
        known = with_adapter(known, [mark_of(each.digest) for each in adapter.files])

    def choose() -> str:
        if wanted.version:
            return named_version(at.deployment, wanted.version)
        version = first_version(at.deployment, key or entry.id, is_fresh=at.is_fresh, gone=plain.gone)
        return adapted(version, mark_of(adapter.digest)) if adapter else version

    resolved = await gateway.sessions.pins.resolve(
        key,
        first=is_first,
        choose=choose,
        known=known,
        session=session,
        asked=wanted.version,
        earlier=[key_of(wanted.pin_name(name)) for name in wanted.earlier],
    )
    entry.is_drawn, entry.is_first = not wanted.version, resolved.is_new
    version, mark = split_adapted(resolved.pin.version) if adapter else (resolved.pin.version, "")
    offer = holder_of(version, wanted, at)
    entry.answering = Answering(offer, version)
    check_kind(served := offer.served(version), kind)
    if adapter is not None and served.embeds is not None:
        message = f"The model '{served.name}' gives vectors, and takes no LoRA adapters."
        raise Unsupported(message, code="adapter_not_supported", param="model")
    if offer is not at:
        await entry.switch(Place(offer.name, offer.pool(entry.ask.terms.pool)))
    return Target(
        deployment=offer.deployment,
        served=served,
        prompts=await offer.prompts(version),
        key=key,
        pin=resolved.pin,
        moved=resolved.moved,
        price=offer.price(version, at=entry.now),
        adapter=adapter.for_job(mark) if adapter else None,
        fallback=offer.name if offer is not wanted.offer else "",
        awaits_worker=entry.ask.meters.awaits_more or offer.awaits_worker(version, entry.ask.pool),
    )
