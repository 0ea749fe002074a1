"""A real PostgreSQL, a standby of it and a pgbouncer before it. Knows no table: who uses it brings a migrated template.

Cheap enough for one each: a data folder is made once and copied, a database comes from a template in milliseconds.
"""

import atexit
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import psycopg

from tests.services.certificates import shared_authority
from tests.services.keeper import shared
from tests.services.process import ServerProcess, free_port, private_folder, unprivileged, wait_for
from tests.services.require import find

_USER = "axon"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",  # a test's folder can be too long a name for a socket
    "max_connections": "180",
    "shared_buffers": "32MB",
    "max_wal_senders": "4",
    "wal_keep_size": "256MB",
    "hot_standby_feedback": "on",
}


class PostgresServer:
    """One server; what was committed outlives ``kill`` and ``stop``. ``settings`` are its own, as in its file."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None, *, tls: bool = False) -> None:
        """With ``tls`` it takes TLS too; its certificate is for the name localhost alone."""
        self.folder = private_folder(folder)
        self.port = free_port()
        self._data = self.folder / "data"
        self._settings = {**_SETTINGS, **(self._tls() if tls else {}), **(settings or {})}
        self._process = ServerProcess(self._command(), self.folder)

    @property
    def url(self) -> str:
        return self.database_url("postgres")

    @property
    def alive(self) -> bool:
        return self._process.alive

    @property
    def pid(self) -> int:
        """Of its first process."""
        return self._process.pid

    @property
    def output(self) -> str:
        return self._process.output

    def database_url(self, name: str) -> str:
        return f"postgresql://{_USER}@127.0.0.1:{self.port}/{name}"

    def start(self) -> None:
        """Starts it on its data folder, which is made when there is none."""
        if not self._data.exists():
            _copy(_empty_data(), self._data)
            if self._settings.get("ssl") == "on":
                _copy(self._written_rules(), self._data / "pg_hba.conf")
        self._process.start(self._answers)

    def kill(self) -> None:
        """As a lost machine: no checkpoint, no word to the clients."""
        if self._process.alive:
            children = self._children()
            self._process.kill()
            for child in children:
                _signal(child, "KILL")
            wait_for(lambda: not any(map(_runs, children)), "every backend is gone")

    def stop(self) -> None:
        """A fast shutdown: clients are cut off, what is committed is written."""
        if self._process.alive:
            # SIGTERM would wait for every client to leave.
            _run("pg_ctl", "-D", str(self._data), "-m", "fast", "-w", "stop")
        self._process.stop()

    def pause(self) -> None:
        """It takes connections and answers none of them."""
        self._process.pause()
        for child in self._children():
            _signal(child, "STOP")

    def resume(self) -> None:
        for child in self._children():
            _signal(child, "CONT")
        self._process.resume()

    def create_database(self, template: str = "template1") -> str:
        """The URL of a new database like the template, which must have no connection."""
        name = f"test_{secrets.token_hex(6)}"
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self.database_url(name)

    def drop_database(self, url: str) -> None:
        """Whoever is connected is cut off."""
        self.execute(f'DROP DATABASE IF EXISTS "{url.rsplit("/", 1)[1]}" WITH (FORCE)')

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """One statement as the server's owner; its rows, where it has some."""
        with psycopg.connect(self.database_url(database), autocommit=True, connect_timeout=30) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def configure(self, **settings: str | None) -> None:
        """Changes settings that need no restart, for everyone and from the next statement on; None undoes it."""
        for name, value in settings.items():
            self.execute(f"ALTER SYSTEM RESET {name}" if value is None else f"ALTER SYSTEM SET {name} = '{value}'")
        loaded = self.execute("SELECT pg_conf_load_time()")
        self.execute("SELECT pg_reload_conf()")
        wait_for(lambda: self.execute("SELECT pg_conf_load_time()") > loaded, "the server has read its settings")

    def standby(self, folder: Path) -> "PostgresServer":
        """A started copy that every commit here waits for from now on."""
        copy = PostgresServer(folder, self._settings)
        source = f"host=127.0.0.1 port={self.port} user={_USER} application_name=standby"
        _run("pg_basebackup", "-D", str(copy._data), "-d", source, "-R", "--checkpoint=fast", "--no-sync")
        copy.start()
        self.configure(synchronous_standby_names="standby")
        wait_for(self._replicates, "the standby follows synchronously")
        return copy

    def promote(self) -> None:
        """A standby becomes a server of its own and takes writes."""
        _run("pg_ctl", "-D", str(self._data), "-w", "promote")

    def _replicates(self) -> bool:
        return self.execute("SELECT sync_state FROM pg_stat_replication") == [("sync",)]

    def _answers(self) -> bool:
        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def _children(self) -> list[str]:
        """Each backend leads a process group of its own, so a signal to the server's group misses it."""
        found = subprocess.run(["pgrep", "-P", str(self._process.pid)], capture_output=True, text=True, check=False)
        return found.stdout.split()

    def _tls(self) -> dict[str, str]:
        certificate, key = shared_authority().certificate(self.folder, "localhost")
        return {"ssl": "on", "ssl_cert_file": str(certificate), "ssl_key_file": str(key)}

    def _written_rules(self) -> Path:
        """Who may connect: the owner anyhow, others with a password over TLS alone."""
        rules = self.folder / "pg_hba.conf"
        rules.write_text(f"host all {_USER} 127.0.0.1/32 trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n")
        rules.chmod(0o644)
        return rules

    def _command(self) -> list[str]:
        settings = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        return [_binary("postgres"), "-D", str(self._data), "-p", str(self.port), *settings]


class PgBouncer:
    """A pooler before one server, in transaction mode: a session's next transaction may meet another connection."""

    def __init__(self, folder: Path, server: PostgresServer, *, pool_size: int = 4) -> None:
        self.folder = private_folder(folder)
        self.port = free_port()
        self._server = server
        self._pool_size = pool_size
        self._process = ServerProcess([_binary("pgbouncer"), str(self._config)], self.folder)

    @property
    def _config(self) -> Path:
        return self.folder / "pgbouncer.ini"

    def url(self, database: str) -> str:
        """The way to a database through the pooler; ``database`` is its name or its URL."""
        return f"postgresql://{_USER}@127.0.0.1:{self.port}/{database.rsplit('/', 1)[-1]}"

    def start(self) -> None:
        lines = (
            "[databases]",
            f"* = host=127.0.0.1 port={self._server.port} user={_USER}",
            "[pgbouncer]",
            "listen_addr = 127.0.0.1",
            f"listen_port = {self.port}",
            "unix_socket_dir =",
            "auth_type = any",
            "pool_mode = transaction",
            f"default_pool_size = {self._pool_size}",
            "server_login_retry = 0",
        )
        self._config.write_text("\n".join(lines))
        self._process.start(self._answers)

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> None:
        self._process.stop()

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True


@shared
def _empty_data() -> Path:
    """A data folder with nothing in it, made once a run: copying it is forty times faster than making another."""
    folder = private_folder(Path(tempfile.mkdtemp(prefix="axon-postgres-")))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _run("initdb", "-D", str(folder / "data"), "-U", _USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
    return folder / "data"


def _copy(source: Path, target: Path) -> None:
    _call(unprivileged(["cp", "-a", str(source), str(target)]))


def _run(command: str, *arguments: str) -> None:
    _call(unprivileged([_binary(command), *arguments]))


def _call(command: Sequence[str]) -> None:
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-1000:]}{done.stderr[-1000:]}")


def _signal(pid: str, name: str) -> None:
    subprocess.run(["kill", f"-{name}", pid], check=False, capture_output=True)


def _runs(pid: str) -> bool:
    try:
        state = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _binary(command: str) -> str:
    found = find(command)
    assert found is not None, f"{command} is not installed"
    return found
