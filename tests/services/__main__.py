"""Redis, RabbitMQ and PostgreSQL on private ports and folders, until somebody stops it. Starts no Axon.

python -m tests.services              in a temporary folder, which is removed at the end
python -m tests.services --dir data   in a folder that is kept, with what Redis and PostgreSQL hold
"""

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.services.postgres import PostgresServer
from tests.services.rabbitmq import RabbitServer
from tests.services.redis import RedisServer
from tests.services.require import find

_COMMANDS = ("redis-server", "rabbitmq-server", "postgres")
_DATABASE = "axon"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.services", description="Starts the services Axon runs on.")
    parser.add_argument("--dir", type=Path, help="a folder to keep; without it, a temporary one")
    folder = parser.parse_args().dir
    if missing := [command for command in _COMMANDS if find(command) is None]:
        print(f"Not installed: {', '.join(missing)}. Run: make install-services", file=sys.stderr)
        return 1
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with in_folder(folder, "axon-services-") as place, ExitStack() as running:
        try:
            print(f"Starting Redis, RabbitMQ and PostgreSQL in {place}", flush=True)
            options = " ".join(f"--{name} {url}" for name, url in start(place, running).items())
            print(f"\n  axon serve {options}\n\nReady; ctrl-c stops them.", flush=True)
            signal.pause()
        except KeyboardInterrupt:
            print("Stopping", flush=True)
        finally:
            ignore_signals()  # an impatient second one would leave a server behind
    return 0


def start(folder: Path, running: ExitStack) -> dict[str, str]:
    """Starts the three at once, each to be stopped with ``running``; the URLs by which Axon finds them."""
    queue = RabbitServer(folder / "rabbitmq")
    live = RedisServer(folder / "redis")
    store = PostgresServer(folder / "postgres")
    stops: list[Callable[[], None]] = [queue.remove, live.stop, store.stop]
    for stop in stops:
        running.callback(stop)
    with ThreadPoolExecutor() as starting:
        for started in [starting.submit(start) for start in (queue.start, live.start, store.start)]:
            started.result()
    if not store.execute(f"SELECT FROM pg_database WHERE datname = '{_DATABASE}'"):
        store.execute(f"CREATE DATABASE {_DATABASE}")
    return {"queue": queue.url, "live": live.url, "store": store.database_url(_DATABASE)}


@contextmanager
def in_folder(folder: Path | None, prefix: str) -> Iterator[Path]:
    """The folder, which is kept, or a temporary one, which is removed."""
    if folder is not None:
        yield folder.resolve()
        return
    made = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def ignore_signals() -> None:
    """From here on the end is on its way."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
