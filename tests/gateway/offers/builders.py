"""Announcements of workers, a registry and its parts, for the tests of offers."""

from dataclasses import dataclass, field, replace
from typing import Any

from axon.adapters.live.memory.presences import MemoryPresences
from axon.domain.presence import Presence
from axon.domain.registry.snapshot import Snapshot
from axon.domain.registry.version import Version
from axon.gateway.offers.announced import AnnouncedOffer
from axon.gateway.offers.fleet import Fleet
from axon.gateway.offers.offers import Offers
from axon.gateway.offers.registered import RegisteredOffer
from axon.gateway.offers.watch import Watch
from axon.runtime.clock import FakeClock
from axon.sessions.prompt import Prompts, Threads
from axon.telemetry.metrics import Metrics
from axon.text.tokenizer import load_tokenizer
from tests.contracts.builders import make_presence

TEXT = "0a1b"


def said(worker: str, version: str = "v1", *, created: float = 100.0, draining: bool = False, **of: Any) -> Presence:
    presence = make_presence(worker, draining=draining)
    return replace(
        presence,
        deployment=replace(presence.deployment, version=version, created=created, **{"text": TEXT, **of}),
    )


def make_prompts() -> Prompts:
    return Prompts(load_tokenizer(None), None, Threads())


def make_fleet(name: str, clock: FakeClock) -> Fleet:
    return Fleet(name, presences=MemoryPresences(clock), clock=clock, metrics=Metrics())


@dataclass
class FakeView:
    """A registry that a test sets."""

    snapshot: Snapshot = field(default_factory=Snapshot)
    is_fresh: bool = True
    is_awaited: bool = True


class FakeTexts:
    """Every version has the same text."""

    async def of(self, version: Version) -> Prompts:
        return make_prompts()


def make_announced(name: str, clock: FakeClock, **more: Any) -> AnnouncedOffer:
    learned = more.pop("learned", lambda served: None)
    return AnnouncedOffer(make_fleet(name, clock), make_prompts(), text=TEXT, num_lanes=4, learned=learned, **more)


def make_offers(
    clock: FakeClock, *announced: AnnouncedOffer, view: FakeView | None = None, watch: Watch | None = None
) -> Offers:
    view = view or FakeView()

    def registered(name: str) -> RegisteredOffer:
        return make_registered(name, clock, view)

    return Offers(announced, view, registered, watch)


def make_registered(name: str, clock: FakeClock, view: FakeView) -> RegisteredOffer:
    fleet = make_fleet(name, clock)
    return RegisteredOffer(name, view, fleet, FakeTexts(), lambda name, length: None, clock.monotonic)
