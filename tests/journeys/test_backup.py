"""Backups beside traffic, and restored stores beside services that remember more: nothing is answered twice."""

import contextlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axon.domain.failure import Failure
from tests.backup.places import Place
from tests.contracts import postgres_backend
from tests.journeys.conftest import PATIENT, Fresh, Settings, on_services
from tests.journeys.server import Server, running, wait_until
from tests.services import redis

QUICK = {"control_sweep_s": 0.2, "control_orphan_s": 0.5}
"""So that a restored turn is looked for at once."""
LONG = {"model": "echo", "input": "one two three " * 20, "background": True, "temperature": 0}
ASK = {"model": "echo", "messages": [{"role": "user", "content": "once"}], "max_tokens": 20, "temperature": 0}
ONCE = {"Idempotency-Key": "b"}


def said(made: dict[str, Any]) -> str:
    return str(made["output"][0]["content"][0]["text"])


def retrieved(server: Server, response: str) -> dict[str, Any]:
    with server.client() as http:
        found: dict[str, Any] = http.get(f"/v1/responses/{response}").json()
        return found


def back_up(server: Server, path: Path) -> dict[str, Any]:
    made = server.axon("backup", "create", str(path), "--json")
    assert made.returncode == 0, made.stderr
    facts: dict[str, Any] = json.loads(made.stdout)
    return facts


def restore(server: Server, path: Path, *flags: str) -> dict[str, Any]:
    done = server.axon("backup", "restore", str(path), "--force", "--json", *flags)
    assert done.returncode == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


class Traffic:
    """Clients that ask all the time, and the texts that they were answered by id."""

    def __init__(self, server: Server, num_clients: int = 4) -> None:
        self._server = server
        self.answered: dict[str, str] = {}
        self.failed: list[int] = []
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(num_clients)]

    def __enter__(self) -> "Traffic":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        with self._server.client() as http:
            while not self._over.is_set():
                reply = http.post("/v1/responses", json={"model": "echo", "input": "hello", "max_output_tokens": 8})
                if reply.status_code == 200:
                    self.answered[reply.json()["id"]] = said(reply.json())
                else:
                    self.failed.append(reply.status_code)


@pytest.mark.everywhere
def test_a_backup_beside_traffic_has_every_answer_that_was_given_before_it(
    fresh: Fresh, place: Callable[[], Settings], tmp_path: Path
) -> None:
    server = fresh.start()
    store = Place(url=str(server._settings.get("store", f"sqlite:///{server.data_dir}/axon.db")), data_dir=tmp_path)
    with Traffic(server) as traffic:
        wait_until(lambda: len(traffic.answered) > 20, "there is traffic")
        before = dict(traffic.answered)
        # A fleet's store is behind its journal for a moment.
        wait_until(lambda: {(turn, 1) for turn in before} <= set(store.rows("turns", "id", "rank")), "they are stored")
        facts = back_up(server, tmp_path / "one.backup")
        during = len(traffic.answered)
        wait_until(lambda: len(traffic.answered) > during, "traffic goes on")
    assert not traffic.failed
    with running(tmp_path / "moved", engine_kind="echo", **PATIENT, **place()) as other:  # of the same kind
        assert other.stop() == 0
        done = restore(other, tmp_path / "one.backup", "--unfinished", "run")
        assert done["rows"] == facts["rows"]
        with other.start_again().client() as http:
            http.headers["Authorization"] = f"Bearer {server.key}"  # of the first, by its pepper
            # The first read waits for the journal, for as long as a busy machine may take.
            wait_until(lambda: http.get(f"/v1/responses/{next(iter(before))}").status_code == 200, "it is read")
            for response, text in before.items():
                assert said(http.get(f"/v1/responses/{response}").json()) == text


def _begun(fresh: Fresh, tmp_path: Path) -> tuple[Server, str]:
    """A server with a backup from the middle of a response in the background, which has ended since."""
    server = fresh.start(engine_echo_step_s=0.005, **QUICK)
    with server.client() as http:
        running_id = http.post("/v1/responses", json=LONG).json()["id"]
        wait_until(lambda: _backs_up_unfinished(server, tmp_path), "it is accepted")
        wait_until(lambda: retrieved(server, running_id)["status"] == "completed", "it has ended")
    return server, running_id


def _backs_up_unfinished(server: Server, folder: Path) -> bool:
    return bool(back_up(server, folder / f"{_count(folder)}.backup")["unfinished"] == 1)


def _count(folder: Path) -> int:
    return len(list(folder.glob("*.backup")))


def _last(folder: Path) -> Path:
    return folder / f"{_count(folder) - 1}.backup"


def test_an_embedded_server_ends_what_the_backup_did_not_see_the_end_of(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        fresh = Fresh(tmp_path / "data", {}, stack)
        server, response = _begun(fresh, tmp_path)
        text = said(retrieved(server, response))
        server.stop()
        assert restore(server, _last(tmp_path))["ended"] == 1
        server.start_again()
        assert retrieved(server, response)["status"] == "cancelled"
        assert server.metric("axon_requests_running") == 0
        server.stop()
        # The same backup for a server that moved: nothing happened since, so what had not ended is run.
        assert restore(server, _last(tmp_path), "--unfinished", "run")["left"] == 1
        server.start_again()
        wait_until(lambda: retrieved(server, response)["status"] == "completed", "it is run")
        assert said(retrieved(server, response)) == text


@pytest.mark.services
def test_a_store_that_a_server_uses_is_not_replaced_from_another_data_folder(tmp_path: Path) -> None:
    with running(tmp_path / "data", engine_kind="echo") as server:
        back_up(server, tmp_path / "one.backup")
        elsewhere = ("--data-dir", str(tmp_path / "other"), "--store", f"sqlite:///{server.data_dir}/axon.db")
        refused = server.axon("backup", "restore", str(tmp_path / "one.backup"), "--force", *elsewhere)
        settled = server.axon("backup", "settle", *elsewhere)
        with server.client() as http:
            assert http.post("/v1/chat/completions", json=ASK).status_code == 200
    for each in (refused, settled):
        assert each.returncode != 0
        assert "A process uses the store" in each.stderr


def test_an_older_store_beside_live_services_answers_and_bills_nothing_twice(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        settings = on_services()
        fresh = Fresh(tmp_path / "data", settings, stack)
        server, response = _begun(fresh, tmp_path)
        text = said(retrieved(server, response))
        with server.client() as http:
            first = http.post("/v1/chat/completions", json=ASK, headers=ONCE).json()
        billed = _turn(settings, response)
        server.stop()
        assert restore(server, _last(tmp_path))["left"] == 1, "Redis knows how it ended"
        assert _turn(settings, response)[0] == "opened"
        server.start_again()
        wait_until(lambda: _turn(settings, response)[0] == "completed", "its end is found in Redis")
        assert _turn(settings, response) == billed, "the same tokens, once"
        assert said(retrieved(server, response)) == text
        with server.client() as http:
            again = http.post("/v1/chat/completions", json=ASK, headers=ONCE).json()
        assert (again["id"], again["choices"]) == (first["id"], first["choices"])
        assert server.metric("axon_tokens_total") == 0, "nothing was computed again"


@pytest.mark.services
def test_an_older_store_beside_a_queue_whose_redis_was_lost_too_runs_nothing_again(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        settings = on_services()
        fresh = Fresh(tmp_path / "data", settings, stack)
        server, response = _begun(fresh, tmp_path)
        server.stop()
        with redis.shared_server(cluster=False).admin() as admin:
            for key in admin.scan_iter(f"{settings['namespace']}:*"):
                admin.delete(key)
        assert restore(server, _last(tmp_path))["ended"] == 1
        server.start_again()
        assert retrieved(server, response)["status"] == "cancelled"
        assert _turn(settings, response)[:2] == ("cancelled", Failure.RESTORED)
        assert server.metric("axon_tokens_total") == 0


def _turn(settings: Settings, turn: str) -> tuple[Any, ...]:
    database = settings["store"].rsplit("/", 1)[1]
    query = f"SELECT state, code, prompt_tokens, output_tokens, cost_nanos FROM turns WHERE id = '{turn}'"
    [row] = postgres_backend.shared_server().execute(query, database)
    return row
