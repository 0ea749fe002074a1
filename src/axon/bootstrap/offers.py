"""Builds the offers of a gateway from its settings: a view of the workers and a text part for each model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from axon.bootstrap.model import Text
from axon.bootstrap.process import Process
from axon.bootstrap.services import Services
from axon.domain.served_version import ServedVersion
from axon.sessions.prompt import Prompts

if TYPE_CHECKING:
    from axon.gateway.http.body import Bodies
    from axon.gateway.offers import Offers


def make_offers(
    process: Process, services: Services, texts: Sequence[Text], served: Sequence[ServedVersion], bodies: "Bodies"
) -> "Offers":
    """``texts`` are those of the settings' models, in their order; ``served`` their versions, if they are known."""
    from axon.gateway.fleet import Fleet
    from axon.gateway.offers import Offer, Offers

    known = {each.name: each for each in served}
    longest: dict[str, int] = {}

    def learned(found: ServedVersion) -> None:
        longest[found.name] = found.max_model_len
        bodies.allow_prompts(max(longest.values()))

    for each in served:
        learned(each)
    return Offers(
        [
            Offer(
                Fleet(
                    each.model_name,
                    text=text.mark,
                    presences=services.live.presences,
                    learned=learned,
                    metrics=process.metrics,
                    deployment=known.get(each.model_name),
                    has_pools=not services.queue_forgets,
                ),
                Prompts(text.tokenizer, text.template),
            )
            for each, text in zip(process.settings.each_model(), texts, strict=True)
        ]
    )
