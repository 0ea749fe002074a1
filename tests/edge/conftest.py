"""nginx and Envoy, started for real with TLS: before a stand-in that writes down what comes, or before gateways."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.edge.envoy import EnvoyEdge, binary
from tests.edge.upstream import Upstream
from tests.fleet.edge import Edge
from tests.services.require import require

AnyEdge = Edge | EnvoyEdge
MakeEdge = Callable[..., AnyEdge]


@pytest.fixture(scope="session", params=["nginx", "envoy"])
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "nginx":
        require("nginx", "openssl")
    else:
        require("openssl")
        binary()
    return str(request.param)


@pytest.fixture(scope="module")
def make_edge(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeEdge]:
    """Starts an edge before the ports; ``short`` makes its deadlines short enough for a test to wait for."""
    with contextlib.ExitStack() as stack:

        def make(*ports: int, short: bool = False, **options: Any) -> AnyEdge:
            place = tmp_path_factory.mktemp(kind)
            place.chmod(0o755)  # nginx has a user of its own
            instead = _SHORT[kind] if short else {}
            edge: AnyEdge
            if kind == "nginx":
                edge = Edge(place, ports, tls=True, instead=instead, **options)
            else:
                edge = EnvoyEdge(place, ports, instead=instead, **options)
            stack.callback(edge.stop)
            edge.start()
            return edge

        yield make


_SHORT = {
    "nginx": {
        "client_header_timeout 10s": "client_header_timeout 1s",
        "client_body_timeout 10s": "client_body_timeout 1s",
    },
    "envoy": {
        "request_headers_timeout: 10s": "request_headers_timeout: 1s",
        "request_timeout: 60s": "request_timeout: 1s",
    },
}
"""Deadlines that a test can wait for."""


@pytest.fixture(scope="module")
def shared_upstream() -> Iterator[Upstream]:
    with Upstream() as upstream:
        yield upstream


@pytest.fixture(scope="module")
def shared_edge(make_edge: MakeEdge, shared_upstream: Upstream) -> AnyEdge:
    """One for a file's tests that leave it as it was."""
    return make_edge(shared_upstream.port)


@pytest.fixture(scope="module")
def hasty_edge(make_edge: MakeEdge, shared_upstream: Upstream) -> AnyEdge:
    """The same, with short deadlines."""
    return make_edge(shared_upstream.port, short=True)


@pytest.fixture
def upstream(shared_upstream: Upstream) -> Upstream:
    shared_upstream.forget()
    return shared_upstream
