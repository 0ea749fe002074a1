"""Which contract tests a short run does over TLS: the fewest that call every operation of the adapters.

TLS changes how a connection is made and not what is said over it, so not every test need pay for it each time. Of the
rest, a short run does a tenth, and ``make test-long`` all. The choice was made by recording which operations each test
calls, and taking the test that calls the most new ones until none was left.
"""

from collections.abc import Mapping

CHOSEN: Mapping[str, frozenset[str]] = {}
"""Names of tests by their file."""


def is_over_tls(nodeid: str) -> bool:
    """Whether a contract test runs over TLS, by its parameter."""
    return "/contracts/" in nodeid and "-tls" in nodeid.partition("[")[2]


def is_left(nodeid: str) -> bool:
    """Whether a test over TLS is none of those chosen."""
    file, _, test = nodeid.partition("[")[0].rpartition("/")[2].partition("::")
    return is_over_tls(nodeid) and test not in CHOSEN.get(file, frozenset())
