"""A server for pages: embedded, with the echo engine, and keys that tests know. Knows no browser."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.journeys.conftest import PATIENT
from tests.journeys.server import Server, running


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running server and its keys. ``server`` can be killed and started again on the same port and data."""

    server: Server
    key: str
    """Of the tenant ``default``, with the scopes ``inference`` and ``read``."""
    admin_key: str
    """Of the tenant ``default``, with every scope."""

    @property
    def url(self) -> str:
        """The server's address, without a slash at its end."""
        return self.server.url

    def kill(self) -> None:
        """Ends the server's processes as a power cut would."""
        self.server.kill()

    def start_again(self) -> None:
        """On the same port and data."""
        self.server.start_again()


@contextmanager
def serving(data_dir: Path, **settings: object) -> Iterator[Served]:
    """A server for the length of a block."""
    with running(data_dir, **{"engine_kind": "echo", **PATIENT, **settings}) as server:
        yield Served(server=server, key=server.key, admin_key=_admin_key(server))


def _admin_key(server: Server) -> str:
    scopes = [word for scope in ("inference", "read", "versions", "admin") for word in ("--scope", scope)]
    made = server.axon("keys", "create", "--name", "operator", *scopes, "--json")
    assert made.returncode == 0, made.stderr
    return str(json.loads(made.stdout)["key"])
