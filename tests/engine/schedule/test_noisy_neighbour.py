"""A neighbour that sends ten times its share changes little for a tenant that sends its own: in virtual time, on the
scheduler alone. A step takes so much, and more for each stream and each prompt token."""

import random
from dataclasses import dataclass, field

import pytest

from axon.engine.schedule.policy import Fair, FirstCome, Policy
from tests.engine.builders import make_add, make_drawn, make_scheduler

SLOTS = 16
STEP_S, STREAM_S, TOKEN_S = 0.006, 0.0017, 0.0004
"""About what the default model takes on two cores."""


@dataclass
class Seen:
    """Of one tenant."""

    first_steps: list[int] = field(default_factory=list)
    """Steps from a request to its first token."""
    first_s: list[float] = field(default_factory=list)
    gaps_s: list[float] = field(default_factory=list)
    num_tokens: int = 0


@dataclass
class Ask:
    tenant: str
    step: int
    asked_s: float
    last_s: float | None = None


def simulate(clients: dict[str, int], *, steps: int, policy: Policy | None = None, seed: int = 1) -> dict[str, Seen]:
    """Each client asks, reads the answer to its end, thinks for some steps, and asks again."""
    numbers = random.Random(seed)
    scheduler = make_scheduler(
        blocks=5000, block_size=16, max_sequences=SLOTS, max_batch_tokens=512, max_prefill_tokens=64, policy=policy
    )
    seen = {tenant: Seen() for tenant in clients}
    asks: dict[str, Ask] = {}
    due = [(numbers.randrange(60), tenant) for tenant, num in clients.items() for _ in range(num)]
    now_s, count = 0.0, 0
    for step in range(steps):
        for _, tenant in [each for each in due if each[0] <= step]:
            count += 1
            prompt = [count * 7 + place for place in range(numbers.randrange(20, 60 if tenant == "light" else 400))]
            scheduler.add(make_add(str(count), prompt=prompt, max_tokens=numbers.randrange(20, 120), tenant=tenant))
            asks[str(count)] = Ask(tenant, step, now_s)
        due = [each for each in due if each[0] > step]
        batch = scheduler.schedule()
        num_streams = sum(span.is_stream for span in batch.spans)
        now_s += STEP_S + STREAM_S * num_streams + TOKEN_S * (batch.num_tokens - num_streams)
        for emitted in scheduler.settle(batch, make_drawn(*[1] * len(batch.draws))):
            ask = asks[emitted.id]
            of_tenant = seen[ask.tenant]
            of_tenant.num_tokens += 1
            if ask.last_s is None:
                of_tenant.first_steps.append(step - ask.step + 1)
                of_tenant.first_s.append(now_s - ask.asked_s)
            else:
                of_tenant.gaps_s.append(now_s - ask.last_s)
            ask.last_s = now_s
            if emitted.finish:
                due.append((step + 1 + numbers.randrange(40), ask.tenant))
    scheduler.check()
    return seen


def p99(values: list[float]) -> float:
    return sorted(values)[int(0.99 * len(values))]


def ratios(light: int, policy: type[Fair | FirstCome]) -> tuple[float, float]:
    """The light tenant's p99 beside a neighbour at ten times its share, to that beside one at its share."""
    share = SLOTS - light
    alone = simulate({"light": light, "noisy": share}, steps=1500, policy=policy())["light"]
    noisy = simulate({"light": light, "noisy": 10 * share}, steps=1500, policy=policy())["light"]
    return p99(noisy.first_s) / p99(alone.first_s), p99(noisy.gaps_s) / p99(alone.gaps_s)


@pytest.mark.parametrize("light", [1, 2, 8])
def test_a_noisy_neighbour_delays_neither_first_tokens_nor_the_next_by_more_than_half(light: int) -> None:
    first, gaps = ratios(light, Fair)
    assert first <= 1.5
    assert gaps <= 1.5


def test_without_shares_it_would() -> None:
    first, _ = ratios(2, FirstCome)
    assert first > 5


@pytest.mark.parametrize(("weights", "share"), [((1.0, 1.0), 0.5), ((3.0, 1.0), 0.75)])
def test_who_always_wants_more_is_served_by_weight(weights: tuple[float, float], share: float) -> None:
    scheduler = make_scheduler(blocks=5000, block_size=16, max_sequences=SLOTS, max_batch_tokens=512)
    numbers, tokens, count = random.Random(2), {"a": 0, "b": 0}, 0
    alive = {"a": 0, "b": 0}
    for _ in range(1500):
        for tenant, weight in zip("ab", weights, strict=True):
            while alive[tenant] < 2 * SLOTS:
                count, alive[tenant] = count + 1, alive[tenant] + 1
                length = numbers.randrange(10, 60)
                scheduler.add(
                    make_add(f"{tenant} {count}", prompt=[count] * length, max_tokens=40, tenant=tenant, weight=weight)
                )
        batch = scheduler.schedule()
        for emitted in scheduler.settle(batch, make_drawn(*[1] * len(batch.draws))):
            tenant = emitted.id[0]
            tokens[tenant] += 1
            alive[tenant] -= emitted.finish is not None
    assert tokens["a"] / sum(tokens.values()) == pytest.approx(share, rel=0.1)


def test_a_light_tenants_first_token_takes_a_neighbour_or_not_as_many_steps() -> None:
    seen = simulate({"light": 1, "noisy": 150}, steps=1500)["light"]
    assert p99([float(steps) for steps in seen.first_steps]) <= 2
