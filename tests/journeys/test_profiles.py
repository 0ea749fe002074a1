"""Profiles of a real server: its own process and its engine, over HTTP and by the command line."""

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.journeys.server import Server, wait_until

URL = "/v1/admin/profiles"
SECRET = "canary-mZq81-in-the-prompt"
BODY = {"model": "echo", "prompt": f"{SECRET} " * 20, "max_tokens": 100, "ignore_eos": True}


@pytest.fixture(scope="module")
def admin_key(echo: Server) -> str:
    made = echo.axon("keys", "create", "--scope", "admin", "--json")
    assert made.returncode == 0, made.stderr
    key: str = json.loads(made.stdout)["key"]
    return key


@pytest.fixture
def admin(echo: Server, admin_key: str) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {admin_key}"}
    with httpx.Client(base_url=echo.url, headers=headers, timeout=120) as client:
        yield client


def profiled(admin: httpx.Client, **body: Any) -> httpx.Response:
    reply = admin.post(URL, json=body)
    assert reply.status_code == 200, reply.text
    return reply


def test_the_server_and_its_engine_are_listed(echo: Server, admin: httpx.Client) -> None:
    listed = {each["role"]: each for each in admin.get("/v1/admin/processes").json()["data"] if each["pid"]}
    assert listed["server"]["pid"] == echo.pid
    assert [listed["engine"]["pid"]] == echo.engine_pids()


def traced(echo: Server, admin: httpx.Client, seconds: float) -> tuple[float, httpx.Response] | None:
    """The steps that the engine counted and a trace of them, of an answer; None if it took longer than the trace."""
    before, num_begun = echo.metric("axon_step_seconds_count"), echo.log.count("profile.began")
    with ThreadPoolExecutor(1) as threads, echo.client() as client:
        recording = threads.submit(profiled, admin, kind="steps", seconds=seconds)
        wait_until(lambda: echo.log.count("profile.began") > num_begun, "the recording has begun")
        assert client.post("/v1/completions", json=BODY).status_code == 200
        if recording.done():
            return None
        trace = recording.result()
    return echo.metric("axon_step_seconds_count") - before, trace


def test_the_steps_of_a_trace_are_those_that_the_engine_counted(echo: Server, admin: httpx.Client) -> None:
    made = next(filter(None, (traced(echo, admin, seconds) for seconds in (1.0, 5.0, 30.0))))
    counted, trace = made
    events = trace.json()["traceEvents"]
    names = Counter(each["name"] for each in events if each["ph"] == "X")
    assert names["step"] == counted > 0
    assert names["schedule"] == names["settle"] == names["emit"] == counted
    tokens = sum(each["args"]["tokens"] for each in events if each["ph"] == "X" and each["name"] == "step")
    assert tokens >= 100
    assert SECRET not in trace.text


def test_profiles_of_work_have_places_in_the_code_and_no_word_of_a_prompt(echo: Server, admin: httpx.Client) -> None:
    with ThreadPoolExecutor(1) as threads, echo.client() as client:
        for process, kind in (("engine", "cpu"), ("server", "cpu"), ("server", "memory")):
            shape = "folded" if kind == "cpu" else "json"
            recording = threads.submit(profiled, admin, kind=kind, process=process, seconds=0.5, format=shape)
            while not recording.done():
                assert client.post("/v1/completions", json=BODY).status_code == 200
            text = recording.result().text
            assert "axon/" in text
            assert SECRET not in text
            assert echo.key not in text
            assert str(echo.data_dir) not in text


def second_of_two(echo: Server, admin: httpx.Client, seconds: float) -> httpx.Response | None:
    """What the second of two profiles is answered; None if the first one, which took so many seconds, was over."""
    num_begun = echo.log.count("profile.began")
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(profiled, admin, kind="cpu", process="engine", seconds=seconds)
        wait_until(lambda: echo.log.count("profile.began") > num_begun, "the first one has begun")
        second = admin.post(URL, json={"kind": "steps", "seconds": 0.1})
        is_late = first.done()
    return None if is_late else second


def test_one_profile_of_a_process_at_a_time(echo: Server, admin: httpx.Client) -> None:
    second = next(filter(None, (second_of_two(echo, admin, seconds) for seconds in (2.0, 10.0, 40.0))))
    assert (second.status_code, second.json()["error"]["code"]) == (409, "profile_running")


def test_only_administrators_may_profile(echo: Server) -> None:
    with echo.client() as holder:
        refused = holder.post(URL, json={"kind": "cpu"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "insufficient_permissions")


def test_the_command_line_writes_files_and_shows_what_is_in_them(echo: Server, admin_key: str, tmp_path: Path) -> None:
    asked = ("--key", admin_key, "--seconds", "0.3")
    flames, steps = tmp_path / "cpu.svg", tmp_path / "steps.json"
    shown = echo.axon("profile", "cpu", "--process", "engine", "--out", str(flames), *asked)
    assert shown.returncode == 0, shown.stderr
    assert "of processor time" in shown.stdout
    assert flames.read_text().startswith("<svg")
    shown = echo.axon("profile", "steps", "--out", str(steps), *asked)
    assert "steps of" in shown.stdout
    assert json.loads(steps.read_text())["displayTimeUnit"] == "ms"
    shown = echo.axon("profile", "memory", *asked)
    assert "still held" in shown.stdout
    listed = echo.axon("profile", "processes", "--key", admin_key)
    assert "engine" in listed.stdout


def test_the_command_line_says_what_to_do(echo: Server, admin_key: str) -> None:
    refused = echo.axon("profile", "cpu", "--seconds", "0.1", "--out", "/dev/null.svg")
    assert refused.returncode == 1
    assert "axon keys create --scope admin" in refused.stderr
    ending = echo.axon("profile", "cpu", "--out", "x.png")
    assert ending.returncode == 2
    assert ".svg (a flame graph)" in ending.stderr
    unknown = echo.axon("profile", "cpu", "--process", "nobody", "--key", admin_key)
    assert "No process 'nobody' answers. There are:" in unknown.stderr


@pytest.mark.parametrize("process", ["server", "engine"])
def test_a_client_that_leaves_ends_its_profile(echo: Server, admin: httpx.Client, process: str) -> None:
    num_begun = echo.log.count("profile.began")
    with pytest.raises(httpx.ReadTimeout):
        admin.post(URL, json={"kind": "memory", "process": process, "seconds": 60}, timeout=1.0)
    wait_until(lambda: echo.log.count("profile.began") > num_begun, "the recording has begun")
    again = {"kind": "cpu", "process": process, "seconds": 0.1}
    wait_until(lambda: admin.post(URL, json=again).status_code == 200, "another one is taken", timeout_s=20.0)
