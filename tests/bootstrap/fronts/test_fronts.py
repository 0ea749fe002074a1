"""Several processes on one port: how many, how soon they are restarted, and that the port is theirs alone."""

import socket

import pytest

from axon.bootstrap.fronts.fronts import restart_delay_s
from axon.bootstrap.fronts.sizing import num_processes
from axon.bootstrap.process import bound, bound_together
from axon.errors import Misconfigured
from axon.gateway.config import GatewayConfig
from axon.runtime.cores import quota_cores, usable_cores


@pytest.mark.parametrize(("num_cores", "num"), [(1, 1), (2, 1), (7, 1), (8, 2), (12, 3), (16, 4), (128, 4)])
def test_below_eight_cores_there_is_one_process_and_then_a_quarter_of_them(num_cores: int, num: int) -> None:
    assert num_processes(GatewayConfig(), num_cores) == num
    assert num_processes(GatewayConfig(processes=3), num_cores) == 3


def test_a_process_that_dies_young_again_and_again_is_restarted_ever_later() -> None:
    delays = [restart_delay_s(num) for num in range(12)]
    assert delays[0] == 0.0
    assert delays == sorted(delays)
    assert delays[1] <= 0.2
    assert delays[-1] == 10.0


def test_the_kernel_spreads_connections_over_the_sockets_of_one_port() -> None:
    with bound_together("127.0.0.1", 0, "--port", 4) as listeners:
        for each in listeners:
            each.listen(256)
            each.setblocking(False)
        address = listeners[0].getsockname()
        assert {each.getsockname() for each in listeners} == {address}
        clients = [socket.create_connection(address) for _ in range(200)]
        accepted = [_accept_all(each) for each in listeners]
        for client in clients:
            client.close()
    assert sum(accepted) == 200
    assert min(accepted) > 10, accepted


def test_another_server_cannot_take_the_port_nor_one_of_several_processes_anothers() -> None:
    with bound_together("127.0.0.1", 0, "--port", 2) as listeners:
        port = listeners[0].getsockname()[1]
        for each in listeners:
            each.listen()
        with pytest.raises(Misconfigured, match="Cannot listen"), bound("127.0.0.1", port, "--port"):
            pass
        with pytest.raises(Misconfigured, match="Cannot listen"), bound_together("127.0.0.1", port, "--port", 2):
            pass


def _accept_all(listener: socket.socket) -> int:
    num = 0
    while True:
        try:
            connection, _ = listener.accept()
        except BlockingIOError:
            return num
        connection.close()
        num += 1


@pytest.mark.parametrize(
    ("text", "num"), [("max 100000\n", None), ("200000 100000\n", 2), ("50000 100000", 1), ("", None)]
)
def test_a_containers_quota_of_processor_time_counts_as_cores(text: str, num: int | None) -> None:
    assert quota_cores(text) == num
    assert usable_cores() >= 1
