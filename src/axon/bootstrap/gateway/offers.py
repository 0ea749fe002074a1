"""Builds the offers of a gateway: the models of its settings, and every deployment of the registry."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from axon.admission.line import read_lines
from axon.bootstrap.models.model import Text
from axon.bootstrap.models.version_text import text_loader
from axon.bootstrap.process import Process
from axon.bootstrap.services import Services
from axon.domain.model.served_version import ServedVersion
from axon.registry.cold_starts import ColdStarts
from axon.registry.fleet_report import FleetReports
from axon.registry.last_asked import LastAsked
from axon.registry.load_problems import LoadProblems
from axon.sessions.prompt import Prompts, Threads

if TYPE_CHECKING:
    from axon.gateway.http.body import Bodies
    from axon.gateway.offers.fleet import Fleet
    from axon.gateway.offers.offers import Offers
    from axon.gateway.offers.registered import View


class Contexts:
    """The context length of each deployment: bodies may be as large as the longest one needs."""

    def __init__(self, bodies: "Bodies") -> None:
        self._bodies, self._lengths = bodies, dict[str, int]()

    def learn(self, name: str, max_model_len: int) -> None:
        if self._lengths.get(name) != max_model_len:
            self._lengths[name] = max_model_len
            self._bodies.allow_prompts(max(self._lengths.values()))

    def learn_served(self, served: ServedVersion) -> None:
        self.learn(served.name, served.max_model_len)


def make_offers(
    process: Process,
    services: Services,
    texts: Sequence[Text],
    served: Sequence[ServedVersion],
    view: "View",
    bodies: "Bodies",
    stack: AsyncExitStack,
) -> "Offers":
    """``texts`` are those of the settings' models, in their order; ``served`` their versions, if they are known."""
    from axon.gateway.offers.announced import AnnouncedOffer
    from axon.gateway.offers.offers import Offers
    from axon.gateway.offers.registered import RegisteredOffer
    from axon.gateway.offers.texts import LoadedTexts
    from axon.gateway.offers.watch import Watch

    settings, threads, contexts = process.settings, Threads(), Contexts(bodies)
    stack.callback(threads.close)
    known = {each.name: each for each in served}
    for each in served:
        contexts.learn_served(each)
    fleet_of = _fleets(process, services)
    loaded = LoadedTexts(text_loader(settings, threads), keep=settings.gateway.max_texts)
    stack.callback(loaded.close)
    announced = [
        AnnouncedOffer(
            fleet_of(each.model_name),
            Prompts(text.tokenizer, text.template, threads),
            text=text.mark,
            num_lanes=settings.dispatch.num_lanes,
            learned=contexts.learn_served,
            served=known.get(each.model_name),
        )
        for each, text in zip(settings.each_model(), texts, strict=True)
    ]

    def registered(name: str) -> RegisteredOffer:
        return RegisteredOffer(name, view, fleet_of(name), loaded, contexts.learn, process.clock.monotonic)

    live = services.live
    watch = Watch(
        partial(read_lines, live.accounts),
        ColdStarts(live.cache),
        LastAsked(live.cache),
        FleetReports(live.cache),
        LoadProblems(live.cache),
        process.clock,
        process.metrics,
    )
    return Offers(announced, view, registered, watch)


def _fleets(process: Process, services: Services) -> "Callable[[str], Fleet]":
    from axon.gateway.offers.fleet import Fleet

    def fleet_of(name: str) -> Fleet:
        return Fleet(
            name,
            presences=services.live.presences,
            clock=process.clock,
            metrics=process.metrics,
            has_pools=not services.queue_forgets,
        )

    return fleet_of
