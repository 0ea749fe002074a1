"""A real Redis on a private port and folder: alone, a replica of another one, or a cluster of one. Knows no key."""

import atexit
import shutil
import tempfile
from pathlib import Path

import redis

from tests.services.certificates import shared_authority
from tests.services.keeper import shared
from tests.services.process import ServerProcess, free_port, private_folder, wait_for
from tests.services.require import find

_SLOTS = (0, 16383)


class RedisServer:
    """One server, in whose file every write is soon. ``options`` are its own, as on its command line.

    With ``tls`` it has a second port, for TLS, and a cluster's nodes name that one; its certificate is for the name
    localhost alone. That of a cluster is for 127.0.0.1 too, which the driver makes of that name, and it listens at
    127.0.0.2 besides.
    """

    def __init__(
        self,
        folder: Path,
        *options: str,
        cluster: bool = False,
        slots: tuple[int, int] = _SLOTS,
        tls: bool = False,
    ) -> None:
        self.folder = private_folder(folder)
        self.port = free_port()
        self.tls_port = free_port() if tls else 0
        self.cluster_port = free_port()  # left to itself it would be 10,000 higher, which may be no port at all
        self._is_cluster, self._slots = cluster, slots
        self._process = ServerProcess([*self._command(), *options], self.folder)

    @property
    def url(self) -> str:
        scheme = "redis+cluster" if self._is_cluster else "redis"
        return f"{scheme}://127.0.0.1:{self.port}"

    @property
    def tls_url(self) -> str:
        scheme = "rediss+cluster" if self._is_cluster else "rediss"
        return f"{scheme}://localhost:{self.tls_port}"

    @property
    def alive(self) -> bool:
        return self._process.alive

    @property
    def pid(self) -> int:
        """Of its first process."""
        return self._process.pid

    def start(self) -> None:
        """Returns when it takes commands; what its folder holds is there again."""
        self._process.start(self._answers)
        if self._is_cluster:
            with self.admin() as admin:
                if admin.cluster("INFO")["cluster_slots_assigned"] == "0":
                    admin.execute_command("CLUSTER ADDSLOTSRANGE", *self._slots)
            if self._slots == _SLOTS:
                self.wait_for_cluster()

    def meet(self, other: "RedisServer") -> None:
        """Two parts of a cluster become one."""
        with self.admin() as admin:
            admin.execute_command("CLUSTER MEET", "127.0.0.1", other.port, other.cluster_port)
        for server in (self, other):
            server.wait_for_cluster()

    def wait_for_cluster(self) -> None:
        with self.admin() as admin:
            wait_for(lambda: admin.cluster("INFO")["cluster_state"] == "ok", "the cluster serves every slot")

    def kill(self) -> None:
        """As a lost machine."""
        self._process.kill()

    def stop(self) -> None:
        self._process.stop()

    def pause(self) -> None:
        """It takes connections and answers none of them."""
        self._process.pause()

    def resume(self) -> None:
        self._process.resume()

    def flush(self) -> None:
        """Loses everything it holds."""
        with self.admin() as admin:
            admin.flushall()

    def admin(self) -> redis.Redis:
        """For what no port offers; close it."""
        return redis.Redis(port=self.port, protocol=2, socket_timeout=30.0)

    def replica(self, folder: Path) -> "RedisServer":
        """A started copy that follows this one."""
        with self.admin() as admin:
            admin.config_set("repl-diskless-sync-delay", "0")
        copy = RedisServer(folder, "--replicaof", "127.0.0.1", str(self.port))
        copy.start()
        with copy.admin() as admin:
            wait_for(lambda: admin.info("replication")["master_link_status"] == "up", "the replica follows")
        return copy

    def replicate(self) -> None:
        """Returns when a replica has everything taken so far."""
        with self.admin() as admin:
            admin.set("replicated", 1, ex=60)  # it waits for this connection's own writes only
            assert admin.wait(1, 10_000) == 1

    def write(self) -> None:
        """Returns when everything taken so far is in its file: within a second is a promise with delays."""
        with self.admin() as admin:
            wait_for(lambda: admin.info("persistence")["aof_buffer_length"] == 0, "the file is written")

    def cut_off(self) -> None:
        """A replica hears no more of what its primary takes, as behind a broken link."""
        with self.admin() as admin:
            admin.replicaof("127.0.0.1", free_port())
            wait_for(lambda: admin.info("replication")["master_link_status"] == "down", "the link is cut")

    def promote(self) -> None:
        """A replica becomes a server of its own and takes writes."""
        with self.admin() as admin:
            admin.replicaof("NO", "ONE")
            wait_for(lambda: admin.info("replication")["role"] == "master", "the replica is a primary")

    def _answers(self) -> bool:
        try:
            with self.admin() as admin:
                return bool(admin.ping())
        except redis.ConnectionError:  # refused, or still reading its folder
            return False

    def _command(self) -> list[str]:
        binary = find("redis-server")
        assert binary is not None, "redis-server is not installed"
        cluster = ["--cluster-enabled", "yes", "--cluster-port", str(self.cluster_port)] if self._is_cluster else []
        addresses = ["127.0.0.1", "127.0.0.2"] if self._is_cluster and self.tls_port else ["127.0.0.1"]
        listen = ["--port", str(self.port), "--bind", *addresses, "--dir", str(self.folder)]
        secure = self._tls_options() if self.tls_port else []
        return [binary, *listen, "--appendonly", "yes", "--appendfsync", "everysec", "--save", "", *cluster, *secure]

    def _tls_options(self) -> list[str]:
        names = ("localhost", "127.0.0.1") if self._is_cluster else ("localhost",)
        certificate, key = shared_authority().certificate(self.folder, *names)
        files = ["--tls-cert-file", str(certificate), "--tls-key-file", str(key), "--tls-auth-clients", "no"]
        files += ["--tls-ca-cert-file", str(shared_authority().file)]  # for the other nodes of a cluster
        named = ["--cluster-announce-hostname", "localhost", "--cluster-preferred-endpoint-type", "hostname"]
        return [
            "--tls-port",
            str(self.tls_port),
            *files,
            *(["--tls-cluster", "yes", *named] if self._is_cluster else []),
        ]


@shared
def shared_server(*, cluster: bool, tls: bool = False) -> RedisServer:
    """One for the whole run, for tests that do it no harm and keep to a prefix of their own."""
    folder = Path(tempfile.mkdtemp(prefix="axon-redis-"))
    server = RedisServer(folder, cluster=cluster, tls=tls)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.kill)
    server.start()
    return server
