"""Prices in a fleet: a turn's ledger and its tenant's usage tell what it cost, at the price that held."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.fleet.fleet import Fleet
from tests.fleet.versions import MODEL, Registry, sent
from tests.journeys.server import wait_until

ASK = {"model": MODEL, "prompt": "what does it cost?", "max_tokens": 8}
OWN = "echo"
"""A deployment that is not registered."""
LEDGER = {"x-axon-ledger": "true"}


def priced(registry: Registry, **figures: float) -> str:
    """The id of a new price."""
    body = {"model": MODEL, "currency": "EUR", **figures}
    return str(sent(registry.http.post("/v1/admin/prices", json=body))["id"])


def expected(usage: dict[str, Any], *, prompt: str, cached: str, output: str) -> Decimal:
    """The cost of an answer's usage, by hand."""
    num_cached, num_output = int(usage["prompt_tokens_details"]["cached_tokens"]), int(usage["completion_tokens"])
    num_computed = int(usage["prompt_tokens"]) - num_cached
    return (num_computed * Decimal(prompt) + num_cached * Decimal(cached) + num_output * Decimal(output)) / 1_000_000


def ledger_of(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = answer["axon"]["ledger"]
    return found


def cost_of(answer: dict[str, Any]) -> Decimal:
    """The amount in an answer's ledger; 0 without a price."""
    return Decimal(ledger_of(answer).get("cost", {"amount": "0"})["amount"])


def last_frame(stream: httpx.Response) -> dict[str, Any]:
    lines = [line[6:] for line in stream.text.splitlines() if line.startswith("data: {")]
    found: dict[str, Any] = json.loads(lines[-1])
    return found


@pytest.mark.services
def test_a_turn_costs_what_held_when_it_was_accepted_whatever_comes_later(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh().start(gateways=1, workers=1)
    with Registry(fleet) as registry, fleet.client() as http:
        registry.add("v1")
        registry.worker("v1")
        bill: list[Decimal] = []

        def ask(http: httpx.Client) -> dict[str, Any]:
            answer = sent(http.post("/v1/completions", json=ASK, headers=LEDGER))
            bill.append(cost_of(answer))
            return answer

        free = ask(http)
        assert not {"price", "cost"} & ledger_of(free).keys()

        first = priced(registry, prompt=0.15, cached=0.03, output=0.6)
        wait_until(lambda: ledger_of(ask(http)).get("price") == first, "the gateway has heard of the price")
        stored = sent(
            http.post("/v1/responses", json={"model": MODEL, "input": "hi", "max_output_tokens": 4}, headers=LEDGER)
        )
        whole = ask(http)
        cost = expected(whole["usage"], prompt="0.15", cached="0.03", output="0.6")
        assert ledger_of(whole)["cost"] == {"amount": f"{cost.normalize():f}", "currency": "EUR"}
        streamed = http.post("/v1/completions", json={**ASK, "stream": True}, headers=LEDGER)
        again = http.get(f"/v1/streams/{streamed.headers['x-axon-stream']}?after=3", headers=LEDGER)
        assert ledger_of(last_frame(streamed))["cost"] == ledger_of(last_frame(again))["cost"]

        second = priced(registry, prompt=15, cached=3, output=60)
        wait_until(lambda: ledger_of(ask(http)).get("price") == second, "the gateway has heard of the later price")
        kept = sent(http.get(f"/v1/responses/{stored['id']}", headers=LEDGER))
        assert ledger_of(kept) == ledger_of(stored)
        assert (ledger_of(kept)["price"], ledger_of(kept)["cost"]["currency"]) == (first, "EUR")
        other = sent(http.post("/v1/completions", json={**ASK, "model": OWN}))
        assert "axon" not in other

        def spent(by: str) -> dict[str, Any]:
            lines = json.loads(fleet.axon("usage", "--by", by, "--json"))
            return {line["model"] or line["tenant"]: line for line in lines}

        bill += [cost_of(stored), cost_of(last_frame(streamed))]
        told = {"amount": f"{sum(bill, Decimal()).normalize():f}", "currency": "EUR"}
        wait_until(
            lambda: {OWN, MODEL} <= spent("model").keys() and spent("model")[MODEL]["costs"] == [told],
            "the spend is the sum of the ledgers",
        )
        by_model = spent("model")
        assert by_model[OWN]["costs"] == []
        [summed] = by_model[MODEL]["costs"]
        [everything] = spent("tenant").values()
        assert everything["costs"] == [summed]
        [day] = sent(http.get("/v1/usage"))["data"]
        assert day["costs"] == [summed]
        assert f"{summed['amount']} EUR" in fleet.axon("usage")
