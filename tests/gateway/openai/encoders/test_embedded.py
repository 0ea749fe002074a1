"""Which version's vectors an answer has, and what a part of a request is admitted with."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest

from axon.domain.model.classes import Activation, Classes
from axon.domain.model.embeds import Embeds
from axon.domain.model.served_version import ServedVersion
from axon.domain.registry.deployment import Deployment, Member
from axon.errors import InvalidInput
from axon.gateway.http.errors import Gone
from axon.gateway.openai.encoders.embedded import admitted_bytes, answering, cut_at
from tests.gateway.openai.encoders.test_score_requests import rerank

if TYPE_CHECKING:
    from axon.gateway.offers.offer import Offer

PLAIN = Embeds(dimensions=8)
CROSS = Embeds(dimensions=1, classes=Classes(labels=("LABEL_0",), activation=Activation.SIGMOID))


def served(version: str, embeds: Embeds = PLAIN) -> ServedVersion:
    return ServedVersion(name="m", version=version, max_model_len=100, created=0.0, embeds=embeds)


@dataclass
class FakeOffer:
    """A deployment whose stable version is ``new``."""

    deployment: Deployment = field(
        default_factory=lambda: Deployment(
            name="m", model="m", members=(Member(version="new"),), stable="new", created=0.0
        )
    )

    def served(self, version: str) -> ServedVersion:
        return served(version)


OFFER = cast("Offer", FakeOffer())


def test_a_version_that_leaves_while_it_answers_still_says_what_its_vectors_are() -> None:
    asked = served("old", CROSS)
    assert answering(OFFER, "old", asked) is asked


@pytest.mark.parametrize("asked", [None, served("old")])
def test_a_repeated_request_has_the_version_of_its_first_job(asked: ServedVersion | None) -> None:
    assert answering(OFFER, "new", asked) == served("new")


@pytest.mark.parametrize("asked", [None, served("new")])
def test_a_repeated_request_whose_version_is_gone_says_so(asked: ServedVersion | None) -> None:
    with pytest.raises(Gone):
        answering(OFFER, "old", asked)


def test_a_query_counts_in_each_of_its_pairs_so_far_as_the_model_reads_it() -> None:
    short, long = rerank(query="q" * 90, documents=["d" * 10] * 20), rerank(query="q" * 9000, documents=["d"] * 40)
    assert admitted_bytes(served("v", CROSS), short, 400, skip=0, count=15) == 15 * 100
    assert admitted_bytes(served("v", CROSS), short, 400, skip=15, count=5) == 5 * 100
    assert admitted_bytes(served("v", CROSS), long, 9400, skip=0, count=40) == 40 * 400


def test_other_inputs_count_their_share_of_the_body() -> None:
    ask = rerank(query="q", documents=["d", "e", "f"])
    assert admitted_bytes(served("v"), ask, 400, skip=0, count=1) == 100


@pytest.mark.parametrize(("asked", "found"), [(None, None), (-1, 6), (1, 1), (6, 6)])
def test_inputs_are_cut_at_what_is_asked_or_at_the_models_length(asked: int | None, found: int | None) -> None:
    assert cut_at(asked, 6) == found


@pytest.mark.parametrize("asked", [0, 7])
def test_a_length_that_the_model_lacks_is_refused(asked: int) -> None:
    with pytest.raises(InvalidInput, match="from 1 to 6") as caught:
        cut_at(asked, 6)
    assert caught.value.param == "truncate_prompt_tokens"
