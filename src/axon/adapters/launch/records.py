"""Records of launched replicas: one file each in a folder, the highest term in another, all under one lock.

They are on disk so that replicas outlive the control that launched them. Starts and stops nothing.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import msgspec

from axon.adapters.launch.system import ProcessId
from axon.domain.fleet.replica import LaunchState, ReplicaName, ReplicaSpec, parse_replica
from axon.errors import DependencyDown, StaleTerm

_LOCK_S = 5.0
"""Seconds to wait for another control that holds the lock."""
_POLL_S = 0.02
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is known of a replica's present run. Times are Unix times."""

    name: str
    spec: ReplicaSpec
    state: LaunchState
    since: float
    incarnation: str
    process: ProcessId | None = None
    """None while it starts and its pid has not been written down, and while it waits."""
    restarts: int = 0
    failures: int = 0
    """Runs in a row that ended soon after their start."""
    due: float = 0.0
    """When it is started again if it waits, or killed if it drains."""
    is_told: bool = False
    """Whether it was sent the signal to drain."""
    problem: str = ""
    gpus: tuple[str, ...] = ()
    """GPUs that no other replica of this machine has, as ``CUDA_VISIBLE_DEVICES`` names them."""

    @property
    def replica(self) -> ReplicaName:
        name = parse_replica(self.name)
        assert name is not None, f"{self.name} names no replica"
        return name


_DECODER = msgspec.json.Decoder(Record)


class Records:
    """A folder of records. Every method but ``locked`` and ``log_of`` is for whoever holds the lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Mutual exclusion between the controls of this machine; raises ``DependencyDown`` after five seconds, and for
        whatever the disk refuses."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(self.folder / "lock", "a") as file:
                _lock(file.fileno())
                yield
        except (OSError, msgspec.DecodeError) as error:
            raise DependencyDown(f"The folder of replicas {self.folder} cannot be used: {error}.") from error

    def take_term(self, term: int) -> None:
        """Raises ``StaleTerm`` for a term below the highest one seen, and keeps a higher one."""
        path = self.folder / "term"
        seen = int(path.read_text()) if path.exists() else 0
        if term < seen:
            raise StaleTerm(f"Term {term} is over: an order of term {seen} came before.")
        if term > seen:
            _write(path, str(term).encode())

    def all(self) -> list[Record]:
        """Every record, by name; raises for one that cannot be read, as a part of them would be taken for all."""
        return [_DECODER.decode(path.read_bytes()) for path in sorted(self.folder.glob(f"*{_SUFFIX}"))]

    def get(self, name: ReplicaName) -> Record | None:
        try:
            return _DECODER.decode(self._path(name).read_bytes())
        except FileNotFoundError:
            return None

    def put(self, record: Record) -> None:
        _write(self._path(record.replica), msgspec.json.encode(record))

    def remove(self, name: ReplicaName) -> None:
        self._path(name).unlink(missing_ok=True)

    def log_of(self, name: ReplicaName) -> Path:
        """The file that the replica writes its log to; it stays when the replica is gone."""
        return self.folder / f"{_file(name)}.log"

    def _path(self, name: ReplicaName) -> Path:
        return self.folder / f"{_file(name)}{_SUFFIX}"


def _file(name: ReplicaName) -> str:
    return quote(str(name), safe="#~")


def _lock(descriptor: int) -> None:
    deadline = time.monotonic() + _LOCK_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError("another process holds its lock") from None
            time.sleep(_POLL_S)
        else:
            return


def _write(path: Path, data: bytes) -> None:
    """Replaces a file at once: a reader, and a disk after a crash, has the old or the new content."""
    draft = path.with_name(f".{path.name}.new")
    with open(draft, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
