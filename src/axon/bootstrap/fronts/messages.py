"""Messages between a front and its parent, over a socket pair. No I/O."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from axon.domain.model.served_version import ServedVersion
from axon.errors import AxonError, rebuilt
from axon.settings import Settings
from axon.telemetry.summing import Family


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The parent's first message: what to serve."""

    settings: bytes
    """See ``pack``."""
    hub: str = ""
    """Path of the Unix socket at which the parent serves its ports; empty for a front that opens the services of its
    settings."""
    served: tuple[ServedVersion, ...] = ()
    """The version of each model, where these are known without the workers' announcements."""
    refuses: bool = False
    """Whether a front that drains keeps its port and refuses new turns, until it is told to close. Otherwise it closes
    its port and ends with its last request."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The server is being stopped: the front is not ready any more, and still takes requests."""


@dataclass(frozen=True, slots=True)
class Drain:
    """Nobody else holds the front's port: it drains."""


@dataclass(frozen=True, slots=True)
class Close:
    """The turns have ended: the front ends what is still open, and exits."""


@dataclass(frozen=True, slots=True)
class Scrape:
    """Asks for the front's metrics."""

    id: int


@dataclass(frozen=True, slots=True)
class Scraped:
    """The front's metrics, as asked for by ``id``."""

    id: int
    families: tuple[Family, ...]


@dataclass(frozen=True, slots=True)
class Began:
    """The front serves."""

    key: str | None
    """Text of the development key, if this front created it."""
    waits: bool
    """Whether it has seen no worker yet."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The front's last message when it cannot start: an error of ours, by the name of its class."""

    kind: str
    message: str
    code: str

    def error(self) -> AxonError:
        """The error as the front raised it."""
        return rebuilt(self.kind, self.message, code=self.code)


@dataclass(frozen=True, slots=True)
class Alive:
    """Sent every second: the front's event loop runs."""

    is_serving: bool
    """Whether it accepts connections."""
    is_ready: bool
    """Whether its readiness probe would say so."""
    num_requests: int


TO_FRONT: tuple[type, ...] = (Start, Stop, Drain, Close, Scrape)
TO_PARENT: tuple[type, ...] = (Began, Failed, Alive, Scraped)


def pack(settings: Settings) -> bytes:
    """Settings for another process, secrets included: they travel over the socket pair alone."""
    return msgspec.msgpack.encode(settings, enc_hook=str)


def unpack(packed: bytes) -> Settings:
    """The settings that ``pack`` has packed."""
    return msgspec.msgpack.decode(packed, type=Settings, dec_hook=_path)


def _path(kind: type, text: str) -> Path:
    assert kind is Path
    return Path(text)
