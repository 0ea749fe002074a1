"""Whose address counts: nothing that a client writes into ``X-Forwarded-For`` itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.gateway.http.address import client_address

PEER = "10.0.0.9"
hops = st.lists(st.integers(1, 250).map(lambda number: f"192.0.2.{number}"), max_size=4)


@given(forged=hops)
def test_without_a_proxy_of_our_own_only_the_connection_counts(forged: list[str]) -> None:
    assert client_address(PEER, [", ".join(forged).encode()], 0) == PEER


@given(forged=hops, ours=st.integers(1, 3), is_split=st.booleans())
def test_what_a_client_writes_itself_changes_nothing_behind_our_proxies(
    forged: list[str], ours: int, is_split: bool
) -> None:
    """The outermost proxy adds the client, each further one the proxy before it."""
    added = ["198.51.100.7", *(f"10.0.0.{number}" for number in range(1, ours))]
    told = [*forged, *added]
    headers = [each.encode() for each in told] if is_split else [", ".join(told).encode()]
    assert client_address(PEER, headers, ours) == "198.51.100.7"


@pytest.mark.parametrize("forwarded", [[], [b""], [b" , ,"], [b"192.0.2.1"]])
def test_a_request_that_came_past_the_proxies_counts_as_its_connection(forwarded: list[bytes]) -> None:
    assert client_address(PEER, forwarded, 2) == PEER


def test_bytes_that_are_no_text_do_not_fail() -> None:
    assert client_address(PEER, [b"\xff\xfe"], 1) == "\xff\xfe"
