"""RabbitMQ in a node of its own: private name, ports, epmd and folder. Knows no queue."""

import atexit
import os
import secrets
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tests.services.certificates import shared_authority
from tests.services.keeper import shared
from tests.services.process import ServerProcess, free_port, listening, private_folder, unprivileged, wait_for
from tests.services.require import find, require

_WRAPPED = Path("/usr/lib/rabbitmq/bin")
"""Debian's commands on the path demand root or the rabbitmq user; these are what they wrap."""

_PREFIX = "test-"
_CONFIG = """\
listeners.tcp.1 = 127.0.0.1:{port}
disk_free_limit.absolute = 50MB
vm_memory_high_watermark.absolute = 1GB
log.console = true
"""
_ERL_ARGUMENTS = (
    "+S 1:1 +sbwt none -kernel inet_dist_use_interface {127,0,0,1} "
    "-rabbit dead_letter_worker_publisher_confirm_timeout 10000"
)
"""A job that is moved while its lane's leader dies is moved again after 10 s, as the chart and decision 9 advise."""
_TLS_CONFIG = """\
listeners.ssl.1 = 127.0.0.1:{port}
ssl_options.cacertfile = {ca}
ssl_options.certfile = {certificate}
ssl_options.keyfile = {key}
ssl_options.verify = verify_none
"""


class RabbitServer:
    """One node; ``kill`` and ``start`` again as often as a test needs: its folder and name stay."""

    def __init__(self, folder: Path, *, epmd_port: int = 0, tls: bool = False) -> None:
        """With ``tls`` it has a second port, for TLS; its certificate is for the name localhost alone."""
        self.folder = private_folder(folder)
        self.port, self._epmd_port = free_port(), epmd_port or free_port()
        self.tls_port = free_port() if tls else 0
        self._write_config()
        self._process = ServerProcess([_command("rabbitmq-server")], self.folder, self._environ())

    @property
    def name(self) -> str:
        return f"axon-{self.port}@localhost"

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    @property
    def tls_url(self) -> str:
        return f"amqps://guest:guest@localhost:{self.tls_port}/"

    @property
    def alive(self) -> bool:
        return self._process.alive

    @property
    def pid(self) -> int:
        """Of its first process."""
        return self._process.pid

    def start(self) -> None:
        self._process.start(lambda: listening(self.port), timeout_s=120.0)

    def sync(self) -> None:
        """Writes down which queues there are. A node does so within half a second of a declaration; killed before,
        it starts with the queue empty and, alone, without a leader (3.10.8)."""
        self.evaluate("[dets:sync(Table) || Table <- dets:all()].")

    def kill(self) -> None:
        """SIGKILL, as a lost machine; returns when the port is closed."""
        self._process.kill()
        wait_for(lambda: not listening(self.port), "the killed node's port is closed")

    def pause(self) -> None:
        self._process.pause()

    def resume(self) -> None:
        self._process.resume()

    def remove(self) -> None:
        """Ends the node, and its epmd, which would outlive it."""
        self._process.kill()
        wait_for(self._end_epmd, "epmd has seen its node go and ends", timeout_s=60.0)

    def ctl(self, *words: str) -> str:
        """Runs ``rabbitmqctl`` on this node."""
        command = unprivileged([_command("rabbitmqctl"), *words])
        done = subprocess.run(command, env=self._environ(whole=True), capture_output=True, text=True, timeout=60.0)
        assert done.returncode == 0, done.stderr or done.stdout
        return done.stdout

    def evaluate(self, expression: str) -> str:
        """The value of an Erlang expression on this node. ``rabbitmqctl`` would take seconds to start, and Erlang's
        own ``erl_call`` takes milliseconds."""
        program = find("erl_call")
        if program is None:
            return self.ctl("eval", expression)
        cookie = (self.folder / ".erlang.cookie").read_text()
        command, environ = [program, "-sname", self.name, "-c", cookie, "-e"], self._environ(whole=True)
        done = subprocess.run(
            command, input=f"{expression.strip()}\n", env=environ, capture_output=True, text=True, timeout=60.0
        )
        assert done.stdout.startswith("{ok,"), done.stderr or done.stdout
        return done.stdout

    def _end_epmd(self) -> bool:
        command = ["epmd", "-port", str(self._epmd_port), "-kill"]
        subprocess.run(command, capture_output=True, check=False, timeout=60.0)
        return not listening(self._epmd_port)

    def _write_config(self) -> None:
        config = _CONFIG.format(port=self.port)
        if self.tls_port:
            certificate, key = shared_authority().certificate(self.folder, "localhost")
            ca = shared_authority().file
            config += _TLS_CONFIG.format(port=self.tls_port, certificate=certificate, key=key, ca=ca)
        files = {"rabbitmq.conf": config, "enabled_plugins": "[]."}
        for name, text in files.items():
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o644)

    def _environ(self, *, whole: bool = False) -> dict[str, str]:
        own = {
            "HOME": str(self.folder),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_NODENAME": self.name,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_DIST_PORT": str(free_port()),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(self.folder / "gen"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": _ERL_ARGUMENTS,
        }
        return {**os.environ, **own} if whole else own


def _command(name: str) -> str:
    wrapped = _WRAPPED / name
    return str(wrapped) if wrapped.exists() else find(name) or name


@shared
def shared_server() -> RabbitServer:
    """The node of this test run, started by the first test that needs one: it takes seconds. Tests keep apart by the
    prefix of their queues."""
    server = _new_server(tls=True)
    server.start()
    server.ctl("set_policy", "tidy", f"^{_PREFIX}", '{"expires": 120000}', "--apply-to", "queues")
    return server


def started_victim() -> RabbitServer:
    """The node for tests that kill, pause or starve one; each leaves it well, or dead."""
    server = _victim()
    if not server.alive:
        server.start()
    return server


@cache
def _victim() -> RabbitServer:
    return _new_server()


def _new_server(*, tls: bool = False) -> RabbitServer:
    require("rabbitmq-server", "epmd")
    folder = tempfile.TemporaryDirectory(prefix="axon-rabbitmq-")
    server = RabbitServer(Path(folder.name), tls=tls)
    atexit.register(folder.cleanup)
    atexit.register(server.remove)
    return server


def new_prefix() -> str:
    """For one test's queues; on the shared node they go when nobody has taken from them for two minutes."""
    return f"{_PREFIX}{secrets.token_hex(4)}"


def new_namespace() -> str:
    """For a server or a fleet, which may be idle for longer: its queues stay. (To look at one or to declare it again
    does not keep a quorum queue from its end, seen on 3.10.8.)"""
    return f"served-{secrets.token_hex(4)}"
