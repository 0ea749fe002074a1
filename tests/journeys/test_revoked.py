"""What a revoked key still reads ends within a second; what a suspended tenant still reads does not."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.journeys.conftest import Fresh
from tests.journeys.server import Server, standing_still, wait_until
from tests.journeys.test_cancel import CHAT, NUM_LATER, RESPONSE, STEP_S, cancelled, running
from tests.journeys.test_tenants import axon, holding


class Reading:
    """A request in a thread of its own, and what came of it."""

    def __init__(self, http: httpx.Client, path: str, body: dict[str, Any]) -> None:
        self.status, self.text = 0, ""
        self._http, self._path, self._body = http, path, body
        self._thread = threading.Thread(target=self._read)

    def _read(self) -> None:
        with self._http.stream("POST", self._path, json=self._body) as reply:
            self.status = reply.status_code
            for part in reply.iter_text():
                self.text += part

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    @property
    def error(self) -> dict[str, Any]:
        """The last thing that was said."""
        last = [line.removeprefix("data: ") for line in self.text.splitlines() if "{" in line][-1]
        found: dict[str, Any] = json.loads(last)
        error: dict[str, Any] = found.get("error") or found
        return error

    @contextmanager
    def going_on(self) -> Iterator["Reading"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._thread.join()


@pytest.mark.parametrize("by", ["command line", "http"])
def test_a_revoked_keys_streams_and_waiting_requests_end_at_once(fresh: Fresh, by: str) -> None:
    server = fresh.start(engine_echo_step_s=STEP_S, sessions_reader_grace_s=300.0)
    made = axon(server, "keys", "create", "--tenant", "acme")
    other = axon(server, "keys", "create", "--tenant", "acme")
    root = axon(server, "keys", "create", "--tenant", "ops", "--scope", "admin")
    with (
        holding(server, made["key"]) as acme,
        holding(server, other["key"]) as colleague,
        holding(server, root["key"]) as admin,
    ):
        streamed = Reading(acme, "/v1/chat/completions", {**CHAT, "stream": True})
        whole = Reading(acme, "/v1/chat/completions", CHAT)
        untouched = Reading(colleague, "/v1/chat/completions", {**CHAT, "stream": True})
        with streamed.going_on(), whole.going_on(), untouched.going_on():
            wait_until(lambda: running(server) == 3, "they run")
            if by == "http":
                assert admin.post(f"/v1/admin/keys/{made['id']}/revoke").json()["revoked"]
            else:
                run(server, "keys", "revoke", made["id"])
            wait_until(lambda: streamed.has_ended and whole.has_ended, "they end")
            assert not untouched.has_ended
            wait_until(lambda: running(server) == 1, "their turns are cancelled")
            wait_until(lambda: cancelled(server, "key_revoked") == 2, "they are counted")
            run(server, "keys", "revoke", other["id"])
        assert streamed.error["code"] == "key_revoked"
        assert (whole.status, whole.error["code"]) == (401, "key_revoked")


def run(server: Server, *arguments: str) -> None:
    """A command beside a running server that answers nothing."""
    ran = server.axon(*arguments)
    assert ran.returncode == 0, ran.stderr


def test_a_stored_answer_goes_on_when_its_key_is_revoked(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.002, worker_step_timeout_s=120.0, sessions_reader_grace_s=300.0)
    made = axon(server, "keys", "create", "--tenant", "acme")
    other = axon(server, "keys", "create", "--tenant", "acme")
    with holding(server, made["key"]) as acme, holding(server, other["key"]) as colleague:
        streamed = Reading(acme, "/v1/responses", {**RESPONSE, "max_output_tokens": NUM_LATER, "stream": True})
        with streamed.going_on():
            wait_until(lambda: running(server) == 1, "it runs")
            with standing_still(server):
                run(server, "keys", "revoke", made["id"])
                wait_until(lambda: streamed.has_ended, "its reader is told")
        assert streamed.error["code"] == "key_revoked"
        response_id = json.loads(streamed.text.split("data: ")[1].splitlines()[0])["response"]["id"]

        def status() -> str:
            return str(colleague.get(f"/v1/responses/{response_id}").json()["status"])

        wait_until(lambda: status() == "incomplete", "it went on to its length", timeout_s=60)


def test_a_suspended_tenants_streams_run_on(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.002, worker_step_timeout_s=120.0)
    made = axon(server, "keys", "create", "--tenant", "acme")
    with holding(server, made["key"]) as acme:
        streamed = Reading(acme, "/v1/chat/completions", {**CHAT, "max_tokens": NUM_LATER, "stream": True})
        with streamed.going_on():
            wait_until(lambda: running(server) == 1, "it runs")
            with standing_still(server):
                run(server, "tenants", "suspend", "acme")
                wait_until(lambda: acme.get("/v1/models").status_code == 403, "the tenant is suspended")
                assert not streamed.has_ended
        assert streamed.text.endswith("data: [DONE]\n\n")
        assert '"finish_reason":"length"' in streamed.text
