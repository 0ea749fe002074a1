"""What the tests of the HTTP server share."""

from collections.abc import Iterator

import pytest

from tests.gateway.http.serving import Served, serving


@pytest.fixture(scope="module")
def patient() -> Iterator[Served]:
    """A server for tests that are about no time-out."""
    with serving() as served:
        yield served
