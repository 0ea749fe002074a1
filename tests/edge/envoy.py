"""Envoy before the gateways, from the template that is shipped. Knows addresses and no Axon."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
import pytest

from tests.fleet.edge import EDGE, MANY, filled
from tests.journeys.server import REPOSITORY
from tests.services.certificates import shared_authority
from tests.services.process import ServerProcess, free_port, listening, private_folder

_TOOLS = REPOSITORY / ".cache" / "deploy-tools"


def binary() -> Path:
    """Envoy's file; the test is skipped where nobody has fetched it."""
    found = sorted(_TOOLS.glob("**/envoy/_bin/envoy"))
    if not found:
        pytest.skip("not installed: envoy; run `make install-edge`")
    return found[-1]


class EnvoyEdge:
    """One address for all gateways, by TLS and under the name localhost; the same words as those of nginx."""

    def __init__(
        self,
        folder: Path,
        gateway_ports: Sequence[int],
        *,
        requests_per_address: int = MANY,
        memory_bytes: int = 1 << 30,
        instead: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = private_folder(folder)
        self.port, self._admin_port = free_port(), free_port()
        tls = private_folder(folder / "tls")
        _, key = shared_authority().certificate(tls, "localhost")
        if os.geteuid() == 0:
            os.chown(key, 0, 0)  # it runs as whoever runs the tests, whose cache folder has its program
        endpoint = "{{ endpoint: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {} }} }} }} }}"
        self.config = folder / "envoy.yaml"
        self.config.write_text(
            filled(
                EDGE / "envoy" / "envoy.yaml.template",
                instead or {},
                admin_port=self._admin_port,
                address="127.0.0.1",
                port=self.port,
                tls=tls,
                balancers=0,
                requests_per_address=requests_per_address,
                memory_bytes=memory_bytes,
                gateways=", ".join(endpoint.format(each) for each in gateway_ports),
            )
        )
        command = [str(binary()), "-c", str(self.config), "--concurrency", "1", "--use-dynamic-base-id"]
        self._process = ServerProcess([*command, "--log-level", "warning"], folder, as_owner=True)

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    @property
    def alive(self) -> bool:
        return self._process.alive

    def start(self) -> None:
        self._process.start(lambda: listening(self.port) and self._admin("GET", "/ready") == 200)

    def drain(self) -> None:
        """Takes nothing new; what runs goes on until somebody stops it."""
        assert self._admin("POST", "/drain_listeners") == 200

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> None:
        self._process.stop()

    def _admin(self, method: str, path: str) -> int:
        try:
            return httpx.request(method, f"http://127.0.0.1:{self._admin_port}{path}", timeout=60).status_code
        except httpx.TransportError:
            return 0
