"""Three RabbitMQ nodes that are one broker: a queue is on all of them, and outlives any one."""

import secrets
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.services.process import free_port, private_folder, wait_for
from tests.services.rabbitmq import RabbitServer


class RabbitCluster:
    """``start`` joins the nodes; each can then be killed and started by itself."""

    def __init__(self, folder: Path, *, num_nodes: int = 3) -> None:
        epmd_port, cookie = free_port(), secrets.token_hex(16)
        self.nodes = []
        for number in range(num_nodes):
            place = private_folder(folder / str(number))
            _write_cookie(place / ".erlang.cookie", cookie)
            self.nodes.append(RabbitServer(place, epmd_port=epmd_port))

    def start(self) -> None:
        first, *others = self.nodes
        first.start()
        with ThreadPoolExecutor() as starting:
            list(starting.map(RabbitServer.start, others))
        for node in others:
            for words in (["stop_app"], ["reset"], ["join_cluster", first.name], ["start_app"]):
                node.ctl(*words)
        wait_for(lambda: all(node.name in self.running(first) for node in self.nodes), "the nodes are one broker")

    def running(self, seen_by: RabbitServer) -> str:
        """The nodes that one of them sees."""
        return seen_by.evaluate("rabbit_mnesia:cluster_nodes(running).")

    def remove(self) -> None:
        for node in self.nodes:
            node.kill()
        self.nodes[0].remove()


def _write_cookie(path: Path, cookie: str) -> None:
    """Whoever knows it may join."""
    path.write_text(cookie)
    path.chmod(0o400)
    if path.parent.stat().st_uid != path.stat().st_uid:
        shutil.chown(path, path.parent.stat().st_uid, path.parent.stat().st_gid)
