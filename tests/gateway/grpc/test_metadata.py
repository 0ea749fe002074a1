"""Metadata are headers, as far as they mean the same; a peer is an address."""

import pytest

from axon.gateway.grpc.metadata import address_of, headers_of


def test_what_is_honoured_becomes_a_header_and_nothing_else_does() -> None:
    given = (
        ("authorization", "Bearer a"),
        ("user-agent", "grpc"),
        ("last-event-id", "9"),
        ("idempotency-key", b"k"),
        ("x-axon-session", "größer"),
        ("authorization", "Bearer b"),
        ("trace-bin", b"\x00"),
    )
    assert headers_of(given) == [
        (b"authorization", b"Bearer a"),
        (b"idempotency-key", b"k"),
        (b"x-axon-session", "größer".encode()),
        (b"authorization", b"Bearer b"),
    ]


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:127.0.0.1:4711", "127.0.0.1"),
        ("ipv6:%5B::1%5D:4711", "::1"),
        ("ipv6:[2001:db8::7]:1", "2001:db8::7"),
        ("unix:/tmp/a.sock", "unix:/tmp/a.sock"),
        ("", ""),
    ],
)
def test_a_peers_address(peer: str, address: str) -> None:
    assert address_of(peer) == address
