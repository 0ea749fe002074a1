"""What a turn costs: exact, fixed when it ends, at the price that held when it was accepted."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.billing.cost import Amount, Cost, Rates, amount_of
from axon.domain.billing.usage import Usage
from axon.domain.log.chunk import Chunk, Token
from axon.domain.registry.price import Price
from axon.domain.session.erasure import without_words
from axon.domain.turn import ended, opened, so_far
from tests.domain.strategies import make_job

RATES = Rates(prompt=150_000_000, cached=30_000_000, output=600_000_000, currency="USD")
LAST = Chunk(first=1, epoch=1, tokens=(Token(0, 5, "a"), Token(0, 6, "b")), terminal="completed", cached=1)


def test_a_prices_figures_are_what_was_written_to_the_nano() -> None:
    price = Price(id="p", model="small", prompt=0.15, cached=0.03, output=0.6, since=0.0)
    assert price.rates == RATES
    assert replace(price, prompt=0.1 + 0.2).rates.prompt == 300_000_000
    assert replace(price, prompt=1e9).rates.prompt == 10**18
    assert replace(price, prompt=1e-9).rates.prompt == 1


def test_cached_tokens_of_a_prompt_have_a_price_of_their_own() -> None:
    usage = Usage(prompt_tokens=1000, cached_tokens=400, output_tokens=10)
    assert amount_of(usage, RATES) == Amount.of(600 * 150 + 400 * 30 + 10 * 600, "USD")


def test_reasoning_is_paid_once_as_output() -> None:
    thought = Usage(prompt_tokens=1, output_tokens=10, reasoning_tokens=9)
    assert amount_of(thought, RATES) == amount_of(replace(thought, reasoning_tokens=0), RATES)


@pytest.mark.parametrize(("rate", "nanos"), [(499_999, 0), (500_000, 1), (1_499_999, 1), (1_500_000, 2)])
def test_an_amount_is_rounded_once_to_the_nearest_nano(rate: int, nanos: int) -> None:
    assert amount_of(Usage(output_tokens=1), Rates(output=rate, currency="USD")).total_nanos == nanos


def test_an_amount_fits_a_database() -> None:
    rates = Rates(output=10**18, currency="USD")
    assert amount_of(Usage(output_tokens=100_000_000), rates).total_nanos == 2**63 - 1


@given(st.integers(0, 10**6), st.integers(0, 2 * 10**6), st.integers(0, 10**6))
def test_an_amount_is_never_negative_and_never_more_than_without_the_cache(prompt: int, cached: int, out: int) -> None:
    usage = Usage(prompt_tokens=prompt, cached_tokens=cached, output_tokens=out)
    assert 0 <= amount_of(usage, RATES).total_nanos <= amount_of(replace(usage, cached_tokens=0), RATES).total_nanos


@pytest.mark.parametrize(
    ("nanos", "text"), [(0, "0"), (1, "0.000000001"), (10**9, "1"), (1_250_000_000, "1.25"), (10**12, "1000")]
)
def test_an_amount_is_shown_as_exact_decimals(nanos: int, text: str) -> None:
    assert Amount.of(nanos, "EUR").shown() == {"amount": text, "currency": "EUR"}


def test_a_turn_has_its_cost_when_it_ends_and_not_before() -> None:
    job = make_job(prompt_ids=(1, 2, 3), price="price_1", rates=RATES)
    cost = Cost(price="price_1", amount=Amount.of(2 * 150 + 1 * 30 + 2 * 600, "USD"))
    assert opened(job).cost is None
    assert so_far(job, replace(LAST, terminal="")).cost is None
    turn = ended(opened(job), (LAST,), at=9.0)
    assert turn.cost == cost
    assert without_words(turn).cost == cost


def test_a_turn_without_a_price_has_no_cost() -> None:
    assert ended(opened(make_job()), (LAST,), at=9.0).cost is None
