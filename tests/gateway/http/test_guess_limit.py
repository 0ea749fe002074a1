"""Guesses per address: forgiven with time, bounded in memory, and told from whom they really come."""

import pytest

from axon.errors import LimitReached
from axon.gateway.http.address import client_address
from axon.gateway.http.guess_limit import _MAX_ADDRESSES, GuessLimit
from axon.runtime.clock import FakeClock


def test_failures_are_forgiven_at_their_rate() -> None:
    clock = FakeClock()
    failures = GuessLimit(60, clock)
    for _ in range(60):
        failures.check("192.0.2.1")
        failures.note("192.0.2.1")
    with pytest.raises(LimitReached) as refusal:
        failures.check("192.0.2.1")
    assert refusal.value.retry_after_s == pytest.approx(1.0)
    clock.advance(1.0)
    failures.check("192.0.2.1")
    failures.note("192.0.2.1")
    with pytest.raises(LimitReached):
        failures.check("192.0.2.1")


def test_without_a_limit_nobody_is_refused() -> None:
    failures = GuessLimit(0, FakeClock())
    for _ in range(1_000):
        failures.note("192.0.2.1")
        failures.check("192.0.2.1")


def test_a_network_of_ipv6_addresses_is_one_and_a_mapped_address_is_what_it_maps() -> None:
    failures = GuessLimit(1, FakeClock())
    failures.note("2001:db8:0:1::1")
    failures.note("::ffff:192.0.2.1")
    for address in ("2001:db8:0:1:ffff::2", "192.0.2.1"):
        with pytest.raises(LimitReached):
            failures.check(address)
    for address in ("2001:db8:0:2::1", "192.0.2.2", "", "unix"):
        failures.check(address)


def test_of_many_addresses_the_oldest_are_forgotten() -> None:
    failures = GuessLimit(1, FakeClock())
    for number in range(_MAX_ADDRESSES + 1):
        failures.note(f"host{number}")
    assert len(failures._failed) == _MAX_ADDRESSES
    failures.check("host0")


@pytest.mark.parametrize(
    ("forwarded", "num_proxies", "address"),
    [
        ([], 0, "peer"),
        ([b"1.1.1.1"], 0, "peer"),
        ([b"1.1.1.1"], 1, "1.1.1.1"),
        ([b"6.6.6.6, 1.1.1.1"], 1, "1.1.1.1"),
        ([b"6.6.6.6", b"1.1.1.1, 2.2.2.2"], 2, "1.1.1.1"),
        ([b""], 1, "peer"),
        ([b"1.1.1.1"], 2, "peer"),
    ],
)
def test_only_what_our_own_proxies_have_seen_is_believed(
    forwarded: list[bytes], num_proxies: int, address: str
) -> None:
    assert client_address("peer", forwarded, num_proxies) == address
