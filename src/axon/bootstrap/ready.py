"""What is known of a server that has started, for whoever shows it."""

from dataclasses import dataclass
from pathlib import Path

from axon.domain.tenants.key import parse_key
from axon.errors import DependencyDown
from axon.ports.live import Cache
from axon.runtime.clock import Clock
from axon.runtime.loopback import is_loopback_host
from axon.settings import Settings
from axon.tenants.one_time_codes import OneTimeCodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Facts about a running server for the terminal."""

    url: str
    metrics_url: str
    key: str | None
    """The development key's text, on the start that created it."""
    key_file: Path
    models: tuple[str, ...]
    pid: int
    waits: bool = False
    """Whether it has seen no worker yet."""
    engine_pids: tuple[int, ...] = ()
    """Process ids of the engines, where this process has any."""
    num_fronts: int = 0
    """Number of processes that serve the port, where there are several."""
    code: str = ""
    """A one-time code, with which a browser on this machine signs in as the development key; empty if there is none."""
    path_prefix: str = ""
    """The path under which browsers find the pages, such as /axon; empty if there is none."""
    grpc: str = ""
    """Address of the gRPC server; empty if there is none."""

    @property
    def page(self) -> str:
        """Address of the chat. The code is behind the #: browsers send that part to nobody."""
        return self.pages + (f"/#code={self.code}" if self.code else "/")

    @property
    def pages(self) -> str:
        """Address that those of the pages begin with: browsers keep their cookie for the paths below it."""
        return self.url + self.path_prefix


async def start_code(settings: Settings, cache: Cache, clock: Clock) -> str:
    """Returns a one-time code for the development key; empty where there is no such key, or where the server does not
    listen on loopback, over which alone a code is good."""
    path = settings.data_dir / "dev-key"
    if not is_loopback_host(settings.gateway.host) or not path.exists():
        return ""
    key = parse_key(path.read_text("utf-8").strip())
    try:
        return "" if key is None else await OneTimeCodes(cache, clock).issue(key.id)
    except DependencyDown:
        return ""  # the page has a form too
