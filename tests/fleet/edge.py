"""nginx before the gateways, from the same template that a fleet is run with. Knows addresses and no Axon."""

import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

from tests.journeys.server import REPOSITORY
from tests.services.certificates import shared_authority
from tests.services.process import ServerProcess, free_port, listening, private_folder
from tests.services.require import find

EDGE = REPOSITORY / "deploy" / "edge"
MANY = 10_000
"""Requests that one address may have open where all clients are on this machine."""


class Edge:
    """One address for all gateways; ``start``, ``kill``, ``stop``, and again.

    With ``tls`` it speaks TLS and HTTP/2, under the name localhost. ``instead`` has other words for what stands in the
    template, such as a shorter deadline; each must be there.
    """

    def __init__(
        self,
        folder: Path,
        gateway_ports: Sequence[int],
        port: int = 0,
        *,
        tls: bool = False,
        requests_per_address: int = MANY,
        instead: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = private_folder(folder)
        self.port = port or free_port()
        self._scheme = "https" if tls else "http"
        servers = (f"server 127.0.0.1:{each} max_fails=0;" for each in gateway_ports)
        config = folder / "nginx.conf"
        config.write_text(
            filled(
                EDGE / "nginx" / "nginx.conf.template",
                instead or {},
                folder=folder,
                processes=1,
                listen=f"127.0.0.1:{self.port} ssl http2" if tls else f"127.0.0.1:{self.port}",
                gateways="\n        ".join(servers),
                requests_per_address=requests_per_address,
                drain_s=75,
            )
        )
        private_folder(folder / "server")
        if tls:
            (folder / "server" / "tls.conf").write_text((EDGE / "nginx" / "tls.conf").read_text())
            shared_authority().certificate(private_folder(folder / "tls"), "localhost")
        binary = find("nginx")
        assert binary is not None, "nginx is not installed"
        self._process = ServerProcess([binary, "-c", str(config), "-p", str(folder)], folder)

    @property
    def url(self) -> str:
        return f"{self._scheme}://{'localhost' if self._scheme == 'https' else '127.0.0.1'}:{self.port}"

    @property
    def alive(self) -> bool:
        return self._process.alive

    def start(self) -> None:
        """Returns when it answers, and not somebody else who has its port: nginx names its process when it has it."""
        (named := self.folder / "nginx.pid").unlink(missing_ok=True)
        self._process.start(lambda: named.exists() and listening(self.port))

    def drain(self) -> None:
        """Takes nothing new; what runs goes on, and then it ends."""
        self._process.send(signal.SIGQUIT)

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> None:
        self._process.stop()


def filled(template: Path, instead: Mapping[str, str], **values: object) -> str:
    """The template's text with these values for its names (``AXON_EDGE_FOLDER`` and so on), of which none is left."""
    text = Template(template.read_text()).safe_substitute(
        {f"AXON_EDGE_{name.upper()}": str(value) for name, value in values.items()}
    )
    assert "AXON_EDGE_" not in text.partition("\n\n")[2], f"{template.name} has a name that nobody fills in"
    for old, new in instead.items():
        assert old in text, f"{template.name} does not say {old!r}"
        text = text.replace(old, new)
    return text
