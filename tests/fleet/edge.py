"""nginx before the gateways, from the same template that a fleet is run with. Knows addresses and no Axon."""

from collections.abc import Sequence
from pathlib import Path
from string import Template

from tests.journeys.server import REPOSITORY
from tests.services.process import ServerProcess, free_port, listening, private_folder
from tests.services.require import find

_TEMPLATE = REPOSITORY / "deploy" / "edge" / "nginx.conf.template"


class Edge:
    """One address for all gateways; ``start``, ``kill``, ``stop``, and again."""

    def __init__(self, folder: Path, gateway_ports: Sequence[int], port: int = 0) -> None:
        self.folder = private_folder(folder)
        self.port = port or free_port()
        self._config = folder / "nginx.conf"
        servers = (f"server 127.0.0.1:{each} max_fails=0;" for each in gateway_ports)
        self._config.write_text(
            Template(_TEMPLATE.read_text()).substitute(
                folder=folder, processes=1, listen=f"127.0.0.1:{self.port}", gateways="\n        ".join(servers)
            )
        )
        binary = find("nginx")
        assert binary is not None, "nginx is not installed"
        self._process = ServerProcess([binary, "-c", str(self._config), "-p", str(folder)], folder)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns when it answers, and not somebody else who has its port: nginx names its process when it has it."""
        (named := self.folder / "nginx.pid").unlink(missing_ok=True)
        self._process.start(lambda: named.exists() and listening(self.port))

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> None:
        self._process.stop()
