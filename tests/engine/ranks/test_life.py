"""A group starts, fails and ends as one: nobody hangs, nobody is left behind."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from axon.engine.engine import Engine
from axon.engine.protocol.codec import Decoder, Failed, encode
from axon.engine.protocol.messages import Ready
from axon.engine.ranks.address import open_listener
from axon.engine.ranks.link import LOST_EXIT_CODE
from axon.engine.ranks.protocol import KINDS, VERSION, Join
from axon.errors import Misconfigured
from tests.engine.builders import make_add, make_tiny_llama, run_to_end, with_config
from tests.engine.ranks.group import CUTTABLE, Group, alive, children_of, kill, opened, wait_until_gone
from tests.journeys.server import wait_until
from tests.services.process import free_port

SHORT = make_add("short", prompt=5, max_tokens=8, ignore_eos=True)
ENDLESS = make_add("endless", prompt=5, max_tokens=400, ignore_eos=True)


@pytest.fixture(scope="module")
def cuttable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_llama(tmp_path_factory.mktemp("models") / "tiny", **CUTTABLE)


@pytest.fixture
def working(cuttable: Path) -> Iterator[Group]:
    """Two ranks in the middle of an answer."""
    with opened(cuttable, 2) as group:
        group.ready()
        group.send(ENDLESS)
        group.step()
        yield group


def test_a_rank_that_dies_takes_its_group_with_it(working: Group) -> None:
    [rank] = working.rank_pids()
    kill(rank)
    assert working.process.wait(timeout=60) != 0
    assert b"rank 1" in working.process.stderr.read()  # type: ignore[union-attr]


@pytest.mark.long("ranks")
def test_a_rank_that_stands_still_is_noticed_and_ended(working: Group) -> None:
    [rank] = working.rank_pids()
    kill(rank, signal.SIGSTOP)
    assert working.process.wait(timeout=60) == LOST_EXIT_CODE
    wait_until_gone([rank])


@pytest.mark.long("ranks")
def test_ranks_end_with_the_one_that_leads(working: Group) -> None:
    ranks = working.rank_pids()
    kill(working.process.pid)
    wait_until_gone(ranks)


@pytest.mark.long("ranks")
def test_ranks_end_when_the_worker_hangs_up(working: Group) -> None:
    ranks = working.rank_pids()
    code, errors = working.close()
    assert (code, errors) == (0, "")
    wait_until_gone(ranks)


@pytest.mark.long("ranks")
def test_a_rank_that_cannot_load_says_why(cuttable: Path, tmp_path: Path) -> None:
    port = free_port()
    other = make_tiny_llama(tmp_path / "other", **CUTTABLE | {"num_hidden_layers": 1})
    group = Group(cuttable, 2, rendezvous=f"tcp://127.0.0.1:{port}")
    rank = start_rank(port, "--model-dir", str(other), "--patience-s", "60")
    assert "is not the one that the leading rank has" in group.receive(Failed).message
    assert rank.wait(timeout=60) == 1
    group.close()


@pytest.mark.long("ranks")
def test_a_rank_that_comes_late_is_waited_for(cuttable: Path) -> None:
    port = free_port()
    group = Group(cuttable, 2, rendezvous=f"tcp://127.0.0.1:{port}", hosts=2)
    wait_until(lambda: can_connect(port), "it listens")
    rank = start_rank(port)
    group.ready()
    assert group.run([SHORT]) == run_to_end(Engine(with_config(), cuttable), [SHORT])
    group.end()
    assert rank.wait(timeout=30) == 0


@pytest.mark.long("ranks")
def test_hosts_that_cannot_share_the_ranks_are_refused(cuttable: Path) -> None:
    group = Group(cuttable, 4, rendezvous=f"tcp://127.0.0.1:{free_port()}", hosts=3)
    assert "cannot be spread equally over 3 hosts" in group.receive(Failed).message
    group.end()


def test_a_host_whose_name_is_not_known_yet_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([socket.gaierror(-2, "unknown"), socket.gaierror(-2, "unknown")])
    real = socket.create_server

    def create(address: tuple[str, int], **options: object) -> socket.socket:
        if (error := next(answers, None)) is not None:
            raise error
        return real(("127.0.0.1", 0))

    monkeypatch.setattr(socket, "create_server", create)
    open_listener("tcp://gpu-0.group:29500", patience_s=60.0).close()
    answers = iter([socket.gaierror(-2, "unknown")])
    with pytest.raises(Misconfigured, match="unknown"):
        open_listener("tcp://gpu-0.group:29500")


@pytest.mark.long("ranks")
def test_ranks_that_do_not_come_are_named(cuttable: Path) -> None:
    port = free_port()
    group = Group(cuttable, 4, rendezvous=f"tcp://127.0.0.1:{port}", join_timeout_s=5.0)
    wait_until(lambda: can_connect(port), "it listens")
    with socket.create_connection(("127.0.0.1", port), timeout=60) as first:
        first.sendall(encode(Join(version=VERSION)))
        message = group.receive(Failed).message
    assert "ranks [2, 3] have not joined" in message
    group.end()


@pytest.mark.long("ranks")
def test_the_leading_hosts_own_ranks_join_where_the_rendezvous_is(cuttable: Path) -> None:
    """It need not be on every address of the host."""
    group = Group(cuttable, 2, rendezvous=f"tcp://127.0.0.2:{free_port()}", local_ranks=2)
    group.ready()
    assert group.run([SHORT]) == run_to_end(Engine(with_config(), cuttable), [SHORT])
    group.end()


@pytest.mark.long("ranks")
def test_who_is_no_rank_is_turned_away(cuttable: Path) -> None:
    port = free_port()
    group = Group(cuttable, 2, rendezvous=f"tcp://127.0.0.1:{port}", join_timeout_s=60.0)
    wait_until(lambda: can_connect(port), "it listens")
    with socket.create_connection(("127.0.0.1", port), timeout=60) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" * 4)
        assert read_all(stranger) is not None
    with socket.create_connection(("127.0.0.1", port), timeout=60) as old:
        old.sendall(encode(Join(version=VERSION + 1)))
        words = [word for word in Decoder(KINDS).feed(read_all(old)) if isinstance(word, Failed)]
        assert "its version of Axon is another" in words[0].message
    rank = start_rank(port)
    assert group.receive(Ready).kernel == "torch-float32-tp2"
    group.end()
    assert rank.wait(timeout=60) == 0


@pytest.mark.long("ranks")
def test_a_process_tree_elsewhere_joins_and_comes_again_after_the_group_has_died(
    cuttable: Path, tmp_path: Path
) -> None:
    where = f"tcp://127.0.0.1:{free_port()}"
    with start_ranks(where, cuttable, tmp_path) as node:
        try:
            tokens = run_to_end(Engine(with_config(), cuttable), [SHORT])
            for _ in range(2):
                group = Group(cuttable, 2, rendezvous=where)
                group.ready()
                assert group.rank_pids() == [], "it lives in the other tree"
                [rank] = children_of(node.pid)
                assert group.run([SHORT]) == tokens
                kill(rank)
                assert group.process.wait(timeout=60) != 0
                group.close()
            wait_until(lambda: children_of(node.pid), "it joins again")
        finally:
            ranks = children_of(node.pid)
            node.terminate()
        assert node.wait(timeout=60) == 0
        wait_until_gone(ranks)


@pytest.mark.long("ranks")
def test_ranks_elsewhere_end_with_the_command_that_started_them(cuttable: Path, tmp_path: Path) -> None:
    with start_ranks(f"tcp://127.0.0.1:{free_port()}", cuttable, tmp_path, "--count", "2") as node:
        wait_until(lambda: len(children_of(node.pid)) == 2, "both are started")
        ranks = children_of(node.pid)
        assert all(map(alive, ranks))
        node.kill()
    wait_until_gone(ranks)


def start_ranks(where: str, model: Path, data_dir: Path, *options: str) -> "subprocess.Popen[bytes]":
    """Another host's command, with a data folder of its own; what it says stands in the test's output."""
    command = [sys.executable, "-m", "axon", "rank", where, "--model", str(model), "--data-dir", str(data_dir)]
    return subprocess.Popen([*command, *options])


def start_rank(port: int, *options: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "axon.engine.ranks.rank", "--join", f"tcp://127.0.0.1:{port}", *options]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


def can_connect(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def read_all(sock: socket.socket) -> bytes:
    """Until the other end hangs up."""
    received = b""
    try:
        while data := sock.recv(1 << 12):
            received += data
    except ConnectionResetError:
        pass
    return received
