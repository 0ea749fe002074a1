"""The other ranks, from the leading rank's side: it starts or awaits them, sends them steps, and ends them.

The ranks of this host are child processes of this one. Those of other hosts connect to the rendezvous (``axon rank``).
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from axon.engine.batch import Batch
from axon.engine.config import EngineConfig
from axon.engine.copies import Copies
from axon.engine.protocol.codec import Failed
from axon.engine.ranks.address import LOCAL, open_listener, parse
from axon.engine.ranks.link import Link, Lost, end_process
from axon.engine.ranks.plan import PlanWriter, moves_of
from axon.engine.ranks.protocol import VERSION, Begin, Go, Join, Loaded, Plan
from axon.errors import Misconfigured

if TYPE_CHECKING:
    from axon.engine.parallel.group import Store

_JOIN_S = 5.0
_ACCEPT_S = 0.2


class Crew:
    """Every rank of the group but the leading one."""

    def __init__(self, config: EngineConfig) -> None:
        self._config = config
        self._size = config.tensor_parallel
        self._links: dict[int, Link] = {}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._plans = PlanWriter()

    def open(self, model_dir: Path, fingerprint: str, *, nccl: bool) -> None:
        """Starts or awaits every rank and has it load its part; raises ``Misconfigured`` if one does not come."""
        try:
            with open_listener(self._config.rendezvous, patience_s=self._config.join_timeout_s) as listener:
                self._start_local(listener.getsockname()[1])
                self._await(listener)
            for rank, link in self._links.items():
                link.say(
                    Begin(
                        rank=rank,
                        config=self._config,
                        model_dir=str(model_dir),
                        fingerprint=fingerprint,
                        nccl=nccl,
                    )
                )
        except BaseException:
            self.close()
            raise

    def meet(self) -> "Store":
        """Waits until all ranks have loaded and releases them; from then on the loss of one ends this process."""
        from axon.engine.parallel.group import make_store

        for link in self._links.values():
            self._hear_loaded(link)
        for link in self._links.values():
            link.end_with_peer(self._end)
        store = make_store(parse(self._config.rendezvous)[0] if self._config.rendezvous else LOCAL)
        for link in self._links.values():
            link.say(Go(store_port=store.port))
        return store

    def be_strict(self) -> None:
        """From now on a rank is lost after ``rank_timeout_s`` of silence: all have started."""
        for link in self._links.values():
            link.be_strict(self._config.rank_timeout_s)

    def tell(self, batch: Batch) -> None:
        """Sends a step to every rank."""
        plan: Plan = self._plans.write(batch)
        for link in self._links.values():
            link.say(plan)

    def tell_copies(self, copies: Copies) -> None:
        """Sends the copies beside the next step to every rank."""
        moves = moves_of(copies)
        for link in self._links.values():
            link.say(moves)

    def close(self) -> None:
        """Closes the connections, which ends the ranks, and waits for those of this host; kills them if need be."""
        for link in self._links.values():
            link.close()
        for process in self._processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_JOIN_S if self._links else 0)
        self._kill()
        for process in self._processes.values():
            process.wait()

    def _start_local(self, port: int) -> None:
        where = self._config.rendezvous or f"tcp://{LOCAL}:{port}"  # a rendezvous need not be reachable on loopback
        for rank in range(1, self._config.num_local_ranks):
            command = [sys.executable, "-P", "-m", "axon.engine.ranks.rank"]
            self._processes[rank] = subprocess.Popen(
                [*command, "--join", where, "--rank", str(rank), "--gpu", str(rank)],
                stdin=subprocess.DEVNULL,
            )

    def _await(self, listener: socket.socket) -> None:
        deadline = time.monotonic() + self._config.join_timeout_s
        listener.settimeout(_ACCEPT_S)
        while len(self._links) < self._size - 1:
            with contextlib.suppress(TimeoutError):
                self._welcome(listener.accept()[0])
            for rank, process in self._processes.items():
                if rank not in self._links and process.poll() is not None:
                    raise Misconfigured(f"rank {rank} ended with {process.returncode} before it joined its group")
            if time.monotonic() > deadline:
                missing = sorted(set(range(1, self._size)) - set(self._links))
                raise Misconfigured(
                    f"ranks {missing} have not joined at {self._config.rendezvous or 'this host'} within "
                    f"{self._config.join_timeout_s:g} s (engine.join_timeout_s)"
                )

    def _welcome(self, sock: socket.socket) -> None:
        """Accepts a rank; a peer that is no rank, or one too many, is refused."""
        link = Link(sock, name="a stranger")
        link.beat_for(self._config.rank_timeout_s)
        link.watch()
        try:
            join = link.hear(Join, timeout_s=_JOIN_S)
        except Exception:
            link.close()
            return
        wanted = [join.rank] if join.rank else range(self._config.num_local_ranks, self._size)
        rank = next((each for each in wanted if each not in self._links and each < self._size), None)
        if rank is None or join.version != VERSION:
            reason = "no place is left in the group" if join.version == VERSION else "its version of Axon is another"
            link.say(Failed(f"This rank was turned away: {reason}."))
            link.close()
            return
        link.name = f"rank {rank}"
        self._links[rank] = link

    def _hear_loaded(self, link: Link) -> None:
        try:
            word: object = link.hear(Loaded, Failed)
        except Lost as error:
            raise Misconfigured(f"the group cannot start: {error}") from None
        if isinstance(word, Failed):
            raise Misconfigured(f"{link.name} cannot start: {word.message}")

    def _kill(self) -> None:
        for process in self._processes.values():
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)

    def _end(self, reason: str) -> None:
        """Kills the ranks of this host, since one that hangs would outlive this process, and ends this process."""
        self._kill()
        end_process(reason)
