"""Strings that must not come out anywhere are sent down every path; then every output is searched for them.

An error may repeat to its caller the names that the caller chose: a model's, an id's, a field's. It never repeats what
was said to a model, a key, or what goes along with them, not even to who sent it: errors end up in other people's logs.
"""

import json
import os
import re
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from axon.domain.tenants.key import new_key_text
from axon.telemetry.events import EVENTS
from tests.journeys.server import COLD, Server, running
from tests.security.canary_routes import Canaries, calls
from tests.security.keyring import make_keys
from tests.security.routes import WAYS
from tests.services import warm
from tests.services.otlp import Receiver, receiving
from tests.telemetry.index_mapping import problems, properties

pytestmark = pytest.mark.anywhere("seen")

SAID = "canary-said-7d1f"
"""To a model: prompts, instructions, items, stop strings."""
TOLD = "canary-told-52ce"
"""Beside it: metadata, user, idempotency key, trace."""
NAMED = "canary-named-90ab"
"""Names that an error may repeat to its caller, and that no log needs."""
PEPPER = "canary-pepper-0123456789abcdef0123456789"
PASSWORD = "canary-password-3e8a"
TRACE_ID = "0af7651916cd43dd8448eb211c80319c"

MESSAGES = [{"role": "system", "content": SAID}, {"role": "user", "content": SAID}]
CHAT = {"model": "echo", "messages": MESSAGES, "user": TOLD, "stop": [SAID + "!"], "max_tokens": 4}
ASK = {"model": "echo", "input": SAID, "instructions": SAID, "metadata": {"a": TOLD}, "user": TOLD}
POISON = [*SAID.encode(), 255, 255, 255]


@dataclass
class Story:
    """What was said to a server, and every answer."""

    server: Server
    good: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)
    admin: str = ""
    """A key with the scope ``admin``."""
    made: list[str] = field(default_factory=list)
    """Secrets of keys that were made on the way."""
    pages: list[str] = field(default_factory=list)
    """What is shown to administrators and to everybody: reports, documents, the last log lines."""

    def ask(self, path: str, body: Any = None, *, method: str = "POST", **headers: str) -> httpx.Response:
        told = {"Authorization": f"Bearer {self.server.key}", "Idempotency-Key": "", **headers}
        content = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        reply = httpx.request(method, self.server.url + path, content=content, headers=told, timeout=60)
        self.statuses.add(reply.status_code)
        failed = reply.status_code >= 400 or '"error":{' in reply.text or "response.failed" in reply.text
        (self.errors if failed else self.good).append(reply.text)
        return reply


def tell(story: Story) -> None:
    """Every path through the server."""
    _good(story)
    _administered(story)
    _refused(story)
    _wrong_keys(story)
    _broken_off(story)
    _engine_lost(story)
    _every_route(story)
    _store_lost(story)
    _every_route(story)
    _pages(story)


def _every_route(story: Story) -> None:
    """A good request and bad ones; after the loss of the store, ones that fail half way."""
    admin = f"Bearer {story.admin}"
    for call in calls(Canaries(said=SAID, told=TOLD, named=NAMED)):
        headers = {**call.headers, **({"Authorization": admin} if call.is_admin else {})}
        story.ask(call.path, call.body, method=call.method, **headers)


def _pages(story: Story) -> None:
    admin = {"Authorization": f"Bearer {story.admin}"}
    for way in WAYS:
        if way.method == "GET" and "{" not in way.path and (way.path.startswith("/v1/admin") or not way.needed):
            limit = "?limit=1000" if way.path == "/v1/admin/logs" else ""
            story.pages.append(story.ask(way.path + limit, method="GET", **admin).text)


def _good(story: Story) -> None:
    trace = {"traceparent": f"00-{TRACE_ID}-b7ad6b7169203331-01", "tracestate": TOLD}
    story.ask("/v1/chat/completions", CHAT, **trace)
    story.ask("/v1/chat/completions", {**CHAT, "stream": True, "logprobs": True})
    for _ in range(2):
        assert story.ask("/v1/chat/completions", CHAT, **{"Idempotency-Key": TOLD}).status_code == 200
    for prompt in (SAID, [SAID, SAID]):
        story.ask("/v1/completions", {"model": "echo", "prompt": prompt, "echo": True})
    story.ask("/v1/messages", {**CHAT, "max_tokens": 99, "system": SAID, "stop_sequences": [SAID]}, **trace)
    story.ask("/v1/messages/count_tokens", CHAT)
    made = story.ask("/v1/conversations", {"items": MESSAGES, "metadata": {"a": TOLD}}).json()
    story.ask("/v1/responses", {**ASK, "conversation": made["id"]})
    story.ask(f"/v1/conversations/{made['id']}/items", method="GET")
    story.ask("/v1/responses", {**ASK, "stream": True})
    story.ask("/v1/responses/input_tokens", ASK)
    story.ask(f"/v1/conversations/{made['id']}", method="DELETE")


def _administered(story: Story) -> None:
    story.admin = make_keys(story.server, PEPPER).admin
    admin = {"Authorization": f"Bearer {story.admin}"}
    story.ask("/v1/admin/keys", {"tenant": "default", "name": NAMED})
    made = story.ask("/v1/admin/keys", {"tenant": "tenant-a", "name": NAMED}, **admin).json()
    again = story.ask(f"/v1/admin/keys/{made['id']}/rotate", {}, **admin).json()
    story.made += [each["key"].split("_", 2)[2] for each in (made, again)]
    story.ask("/v1/models", method="GET", Authorization=f"Bearer {made['key']}")
    story.ask(f"/v1/admin/keys/{again['id']}/revoke", {}, **admin)
    story.ask(f"/v1/admin/keys/{again['id']}/rotate", {"overlap_s": SAID}, **admin)
    story.ask("/v1/admin/keys", {"tenant": NAMED, "scopes": [NAMED]}, **admin)
    story.ask("/v1/admin/tenants", {"id": "acme", "name": NAMED, "limits": {"weight": SAID}}, **admin)


def _refused(story: Story) -> None:
    story.ask("/v1/chat/completions", b'{"model": "echo", "messages": "' + SAID.encode())
    story.ask("/v1/chat/completions", b"\xff" + SAID.encode())
    story.ask("/v1/chat/completions", {**CHAT, "messages": SAID})
    story.ask("/v1/chat/completions", {**CHAT, "messages": [{"role": SAID, "content": SAID}]})
    story.ask("/v1/chat/completions", {**CHAT, "messages": [{"role": "user", "content": {"text": SAID}}]})
    story.ask("/v1/chat/completions", {**CHAT, "messages": [{"role": "user", "content": SAID + "\0"}]})
    for name in ("temperature", "max_tokens", "stream", "seed", "n", "logit_bias", "user", "stop"):
        story.ask("/v1/chat/completions", {**CHAT, name: {NAMED: SAID}})
        story.ask("/v1/chat/completions", {**CHAT, name: SAID * 1000})
    story.ask("/v1/chat/completions", {**CHAT, "tools": [{"type": "function", "function": {"name": SAID}}]})
    story.ask("/v1/chat/completions", {**CHAT, "response_format": {"type": "json_schema", "json_schema": SAID}})
    story.ask("/v1/chat/completions", {**CHAT, "messages": [{"role": "user", "content": SAID * 2000}]})
    story.ask("/v1/chat/completions", {**CHAT, "messages": [{"role": "user", "content": SAID * 400_000}]})
    story.ask("/v1/chat/completions", {**CHAT, "max_tokens": 5}, **{"Idempotency-Key": TOLD})
    story.ask("/v1/chat/completions", CHAT, **{"Idempotency-Key": TOLD * 100})
    story.ask("/v1/completions", {"model": "echo", "prompt": [SAID, SAID], "n": 65})
    story.ask("/v1/messages", {**CHAT, "max_tokens": SAID, "metadata": {"user_id": TOLD}})
    story.ask("/v1/messages", {**CHAT, "messages": [{"role": "user", "content": [{"type": NAMED, "text": SAID}]}]})
    story.ask("/v1/messages", CHAT, Authorization="", **{"X-API-Key": f"{story.server.key}x"})
    story.ask("/v1/responses", {**ASK, "metadata": {NAMED: {NAMED: TOLD}}})
    story.ask("/v1/responses", {**ASK, "metadata": {NAMED * 10: TOLD}})
    story.ask(
        "/v1/responses",
        {**ASK, "input": [{"type": "message", "role": "user", "content": [{"type": NAMED, "text": SAID}]}]},
    )
    story.ask("/v1/responses", {**ASK, "previous_response_id": NAMED})
    story.ask("/v1/responses", {**ASK, "conversation": NAMED})
    story.ask("/v1/chat/completions", {**CHAT, "model": NAMED})
    story.ask(f"/v1/nothing?{NAMED}={NAMED}", method="GET")
    story.ask(f"/v1/streams/{NAMED}?after={NAMED}", method="GET")
    story.ask(f"/v1/chat/completions?{NAMED}", method="PUT")


def _wrong_keys(story: Story) -> None:
    for header in (
        SAID,
        f"Bearer {SAID}",
        f"Basic {SAID}",
        f"Bearer {story.server.key}x",
        f"Bearer {new_key_text()[1]}",
    ):
        story.ask("/v1/models", method="GET", Authorization=header)


def _broken_off(story: Story) -> None:
    long = {**CHAT, "stream": True, "ignore_eos": True, "max_tokens": 4000}
    headers = {"Authorization": f"Bearer {story.server.key}"}
    with httpx.stream(
        "POST", f"{story.server.url}/v1/chat/completions", json=long, headers=headers, timeout=60
    ) as stream:
        next(stream.iter_lines())
    running = story.ask("/v1/responses", {**ASK, "background": True, "ignore_eos": True}).json()
    story.ask(f"/v1/responses/{running['id']}/cancel")


def _engine_lost(story: Story) -> None:
    story.ask("/v1/completions", {"model": "echo", "prompt": POISON, "max_tokens": 4})
    assert 500 in story.statuses, "the engine was not lost"
    story.ask("/v1/completions", {"model": "echo", "prompt": POISON, "max_tokens": 4, "stream": True})


def _store_lost(story: Story) -> None:
    """Drivers quote the statement and the row that they choke on."""
    with sqlite3.connect(story.server.data_dir / "axon.db") as database:
        for table in ("turns", "conversations"):
            database.execute(f"ALTER TABLE {table} RENAME TO {table}_gone")
    story.ask("/v1/responses", ASK)
    story.ask("/v1/chat/completions", CHAT, **{"Idempotency-Key": TOLD + "!"})
    story.ask("/v1/conversations", {"items": MESSAGES, "metadata": {"a": TOLD}})
    story.ask("/v1/responses/resp_01hf7yat00k3v5q8w2n4m6p0rt", method="GET")
    assert story.statuses & {500, 503}


@dataclass
class Seen:
    """What the story left behind."""

    log: str
    screen: str
    metrics: str
    commands: str
    pages: str
    traces: str
    story: Story
    secret: str


@pytest.fixture(scope="module", params=["json", "console"])
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    settings: dict[str, object] = {
        "engine_kind": "echo",
        "engine_echo_step_s": 0.002,
        "pepper": PEPPER,
        "log_level": "debug",
        "log_format": request.param,
        "admission_requests_per_minute": 0,
        "lifecycle_drain_s": 2,
    }
    with receiving() as receiver:
        return _seen(tmp_path_factory.mktemp("canaries") / "data", settings, receiver)


def _seen(folder: Path, settings: dict[str, object], receiver: Receiver) -> Seen:
    traced = {"traces_endpoint": receiver.url, "traces_sample_ratio": 1.0}
    with running(folder, COLD, **settings, **traced) as server:
        story = Story(server)
        tell(story)
        metrics = httpx.get(server.metrics_url, timeout=60).text
        pids = [server.pid, *server.engine_pids()]
        commands = "".join(Path(f"/proc/{pid}/{name}").read_text() for pid in pids for name in ("cmdline", "comm"))
        secret = server.key.split("_", 2)[2]
    assert "engine.died" in server.log
    return Seen(
        log=server.log,
        screen=server.screen.replace(server.key, ""),
        metrics=metrics,
        commands=commands,
        pages="".join(story.pages),
        traces="\n".join(map(repr, receiver.spans)),
        story=story,
        secret=secret,
    )


def test_the_story_went_down_every_path(seen: Seen) -> None:
    assert {200, 400, 401, 403, 404, 405, 409, 413, 500} <= seen.story.statuses
    assert any(SAID in text for text in seen.story.good), "an answer repeats its prompt here, so the canaries are alive"


def test_the_last_lines_are_among_the_pages(seen: Seen) -> None:
    [page] = [each for each in seen.story.pages if '"note":"These are lines of the process' in each]
    lines = json.loads(page)["data"]
    assert len(lines) > 200
    assert {line["event"] for line in lines if "event" in line} <= set(EVENTS)


def test_every_line_of_the_log_fits_the_shipped_index_template(seen: Seen) -> None:
    if not seen.log.startswith("{"):
        return  # the lines of the other server are for people
    lines = [json.loads(line) for line in seen.log.splitlines()]
    mapped = properties()
    assert [wrong for line in lines if (wrong := problems(line, mapped))] == []
    events = {line["event"] for line in lines if "event" in line}
    assert events <= set(EVENTS)
    assert {"request.answered", "engine.died", "engine.restarted", "process.ready"} <= events
    chats = [line for line in lines if (line.get("method"), line.get("route")) == ("POST", "/v1/chat/completions")]
    turns = [line for line in chats if line["status"] == 200]
    assert all(line["request_id"] and line["tenant_id"] and line["turn"] for line in turns)
    assert any(line.get("trace_id") == TRACE_ID for line in turns)


@pytest.mark.parametrize("canary", [SAID, TOLD, NAMED, PEPPER], ids=["said", "told", "named", "pepper"])
@pytest.mark.parametrize("output", ["log", "screen", "metrics", "commands", "pages", "traces"])
def test_no_output_of_the_server_has_a_canary_in_it(seen: Seen, output: str, canary: str) -> None:
    text: str = getattr(seen, output)
    assert text
    if output in ("pages", "traces") and canary == NAMED:
        return  # a list of keys has the names that their owners gave them, and a span the model that was asked for
    assert canary not in text, re.findall(f".{{0,200}}{canary}.{{0,100}}", text)[:3]


@pytest.mark.parametrize("output", ["log", "screen", "metrics", "commands", "pages", "traces"])
def test_no_output_of_the_server_has_a_keys_secret_in_it(seen: Seen, output: str) -> None:
    assert len(seen.story.made) == 2
    for secret in (seen.secret, *seen.story.made):
        assert secret not in getattr(seen, output)


def test_no_error_repeats_what_was_said_or_a_key(seen: Seen) -> None:
    for canary in (SAID, TOLD, PEPPER, seen.secret, seen.secret[:20]):
        assert not [text[:500] for text in seen.story.errors if canary in text]


def _axon(*arguments: str, folder: Path, **environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AXON_")}
    environ = {
        **clean,
        "AXON_DATA_DIR": str(folder / "data"),
        "AXON_ENGINE_KIND": "echo",
        "AXON_LIFECYCLE_START_WAIT_S": "0.3",
        **environment,
    }
    done = warm.run(arguments, environ=environ, folder=folder, timeout_s=120)
    return done.stdout + done.stderr


URLS = {
    "AXON_QUEUE": f"amqp://axon:{PASSWORD}@127.0.0.1:1/",
    "AXON_LIVE": f"redis://:{PASSWORD}@127.0.0.1:1/0",
    "AXON_STORE": f"postgresql://axon:{PASSWORD}@127.0.0.1:1/axon",
}
OTHER_URLS = {**URLS, "AXON_STORE": f"postgresql://127.0.0.1:1/axon?user=axon&password={PASSWORD}"}


@pytest.mark.parametrize("urls", [URLS, OTHER_URLS], ids=["in front", "behind"])
@pytest.mark.parametrize("command", ["config show", "config show --json", "keys list", "serve"])
def test_no_command_tells_a_password(tmp_path: Path, command: str, urls: dict[str, str]) -> None:
    told = _axon(*command.split(), folder=tmp_path, AXON_PEPPER=PEPPER, AXON_LOG_LEVEL="debug", **urls)
    assert told
    assert PASSWORD not in told
    assert PEPPER not in told


def test_no_message_about_a_bad_setting_repeats_it(tmp_path: Path) -> None:
    for name in URLS:
        told = _axon("serve", folder=tmp_path, **{**URLS, name: f"nothing://axon:{PASSWORD}@host:port:port/x"})
        assert told
        assert PASSWORD not in told


def test_secrets_on_the_disk_are_their_owners_alone(seen: Seen) -> None:
    folder = seen.story.server.data_dir
    for name in ("dev-key", "axon.db"):
        assert (folder / name).stat().st_mode & 0o077 == 0 or folder.stat().st_mode & 0o077 == 0, name
