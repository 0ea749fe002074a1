"""A tenant's things of every kind, and what another tenant hears when it asks for them."""

import contextlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from string import Formatter
from typing import Any

import httpx

from axon.domain.ids import new_id
from tests.journeys.server import Server, wait_until
from tests.security.keyring import Headers, Keyring, bearer

_VOLATILE = frozenset({"date", "x-request-id", "request-id", "openai-processing-ms"})
_LONG = {"ignore_eos": True, "model": "echo"}
_BATCH = {"endpoint": "/v1/completions", "completion_window": "24h"}


@dataclass(frozen=True, slots=True)
class Reply:
    """What an answer tells: everything but ids and times."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Ids of one tenant's things."""

    by_parameter: dict[str, dict[str, str]]
    """Parameter of a path → what it may name → the id."""

    def named(self, parameter: str) -> dict[str, str]:
        assert parameter in self.by_parameter, f"no thing of a tenant's is known for {{{parameter}}}: make one here"
        return self.by_parameter[parameter]


@contextlib.contextmanager
def furnished(server: Server, key: str) -> Iterator[Room]:
    """A tenant's room with something of every kind in it; what runs in it goes on until the end."""
    with contextlib.ExitStack() as stack:
        http = stack.enter_context(httpx.Client(base_url=server.url, headers=bearer(key), timeout=60))

        def post(path: str, **body: Any) -> dict[str, Any]:
            reply = http.post(path, json={"model": "echo", **body} if "items" not in body else body)
            assert reply.status_code == 200, reply.text
            answer: dict[str, Any] = reply.json()
            return answer

        def follow(path: str, **body: Any) -> str:
            """A stream that runs and is being read."""
            stream = stack.enter_context(http.stream("POST", path, json={**_LONG, "stream": True, **body}))
            assert stream.status_code == 200
            return str(stream.headers["x-axon-stream"])

        said = [{"role": "user", "content": "a secret"}]
        conversation = post("/v1/conversations", items=said)["id"]
        answered = post("/v1/responses", input="a secret", conversation=conversation, max_output_tokens=2)
        items = http.get(f"/v1/conversations/{conversation}/items").json()["data"]
        background = post("/v1/responses", input="a secret", background=True, ignore_eos=True)["id"]
        erased = post("/v1/responses", input="a secret", max_output_tokens=2)["id"]
        assert http.delete(f"/v1/responses/{erased}").status_code == 200
        forgotten = post("/v1/conversations", items=said)["id"]
        assert http.delete(f"/v1/conversations/{forgotten}").status_code == 200
        chat = post("/v1/chat/completions", messages=said, store=True, max_tokens=2)["id"]
        erased_chat = post("/v1/chat/completions", messages=said, store=True, max_tokens=2)["id"]
        assert http.delete(f"/v1/chat/completions/{erased_chat}").status_code == 200
        completion = post("/v1/completions", prompt="a secret", max_tokens=2)["id"]
        response = post("/v1/responses", input="a secret", max_output_tokens=2)["id"]
        uploaded = _uploaded(http)
        batch = http.post("/v1/batches", json=_BATCH | {"input_file_id": uploaded}).json()["id"]
        wait_until(lambda: http.get(f"/v1/batches/{batch}").json()["status"] == "completed", "the batch ends")
        busy = _uploaded(http, ignore_eos=True, max_tokens=90_000)
        running_batch = http.post("/v1/batches", json=_BATCH | {"input_file_id": busy}).json()["id"]
        wait_until(lambda: http.get(f"/v1/batches/{running_batch}").json()["status"] == "in_progress", "it runs")
        failing = http.post("/v1/batches", json=_BATCH | {"input_file_id": _uploaded(http, prompt="a " * 300_000)})
        failed_batch = failing.json()["id"]
        wait_until(lambda: http.get(f"/v1/batches/{failed_batch}").json()["error_file_id"], "its line has failed")
        deleted = _uploaded(http)
        assert http.delete(f"/v1/files/{deleted}").status_code == 200
        turns = {
            "a response": response,
            "a response in a conversation": answered["id"],
            "a background response": background,
            "a response that is not stored": follow("/v1/responses", input="a secret", store=False),
            "an erased response": erased,
            "a stored chat": chat,
            "an erased chat": erased_chat,
            "a stored chat that runs": follow("/v1/chat/completions", messages=said, store=True),
            "a running chat": follow("/v1/chat/completions", messages=said),
            "a running message": follow("/v1/messages", messages=said, max_tokens=90_000),
            "a completion": completion,
        }
        yield Room(
            by_parameter={
                "stream_id": turns,
                "response_id": turns,
                "turn_id": turns,
                "completion_id": turns,
                "conversation_id": {
                    "a conversation": conversation,
                    "an erased conversation": forgotten,
                    "a chain of responses": response,
                },
                "item_id": {"an input item": items[-1]["id"], "an answer": items[0]["id"]},
                "file_id": {
                    "a file": uploaded,
                    "a deleted file": deleted,
                    "a batch's output": http.get(f"/v1/batches/{batch}").json()["output_file_id"],
                    "a batch's errors": http.get(f"/v1/batches/{failed_batch}").json()["error_file_id"],
                    "the input of a batch that runs": busy,
                },
                "batch_id": {"a batch": batch, "a batch that runs": running_batch},
                "model": {"a model": "echo"},
                "tenant_id": {"a tenant": "tenant-a"},
                "plan_id": {"the plan of all": "default"},
                "key_id": {"a key": key[4:12]},
                "model_id": {"a registered model": "small"},
                "label": {"a version": "first"},
                "deployment_id": {"a deployment": "small"},
                "alias_id": {"an alias": "best"},
                "adapter_id": {"a name of an adapter": "small:sql"},
                "worker_id": {"a name of a worker": "worker-1"},
            }
        )
        http.post(f"/v1/responses/{background}/cancel")
        http.post(f"/v1/batches/{running_batch}/cancel")


def _uploaded(http: httpx.Client, **body: Any) -> str:
    line = {"custom_id": "a", "method": "POST", "url": "/v1/completions"}
    ask = {"model": "echo", "prompt": "a secret", "max_tokens": 2, **body}
    form = {"purpose": (None, "batch"), "file": ("a.jsonl", json.dumps({**line, "body": ask}))}
    reply = http.post("/v1/files", files=form)
    assert reply.status_code == 200, reply.text
    return str(reply.json()["id"])


def alike(known: str) -> str:
    """An id that nobody has and that looks like this one."""
    if len(known) < 26:
        return known[:-3] + "0z9"  # of a key, a tenant or a plan
    return new_id(known[: len(known) - 26], 1_700_000_000.0)


def parameters_of(path: str) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(path) if name]


def pairs(path: str, room: Room, own: Room) -> Iterator[tuple[str, str, str, list[tuple[str, str]]]]:
    """For every thing of the room that the path may name: what it is, the path to it, the path to one that nobody has,
    and the ids that the two differ in. Where a path names two things, the first may be the asker's own."""
    parameters = parameters_of(path)
    choices = [list(room.named(name).items()) for name in parameters]
    for chosen in itertools.product(*choices):
        ids = dict(zip(parameters, (each for _, each in chosen), strict=True))
        what = " / ".join(kind for kind, _ in chosen)
        unknown = {name: alike(each) for name, each in ids.items()}
        yield what, path.format(**ids), path.format(**unknown), [(ids[name], unknown[name]) for name in ids]
    if len(parameters) > 1:
        first, last = parameters[0], parameters[-1]
        mine = next(iter(own.named(first).values()))
        for kind, each in room.named(last).items():
            other = alike(each)
            yield (
                f"{kind}, asked of one's own",
                path.format(**{first: mine, last: each}),
                path.format(**{first: mine, last: other}),
                [(each, other)],
            )


def asked(http: httpx.Client, method: str, path: str, ids: list[str], **request: Any) -> Reply:
    """The answer, with ``ids`` taken out of it."""
    with http.stream(method, path, **request) as reply:
        body = "".join(itertools.islice(reply.iter_text(), 50))
    headers = sorted((name, value) for name, value in reply.headers.items() if name not in _VOLATILE)
    for each in ids:
        body = body.replace(each, "ID")
        headers = [(name, value.replace(each, "ID")) for name, value in headers]
    return Reply(reply.status_code, tuple(headers), body)


def seen_by_owner(server: Server, room: Room, headers: Headers) -> dict[str, Any]:
    """What the owner finds in its room; what runs is told by its id alone."""
    found: dict[str, Any] = {}
    with httpx.Client(base_url=server.url, headers=headers, timeout=60) as http:
        for name, route in (
            ("response_id", "/v1/responses/"),
            ("completion_id", "/v1/chat/completions/"),
            ("conversation_id", "/v1/conversations/"),
            ("file_id", "/v1/files/"),
            ("batch_id", "/v1/batches/"),
        ):
            for kind, each in room.named(name).items():
                reply = http.get(route + each)
                found[f"{route} {kind}"] = (reply.status_code, reply.json())
        for kind, each in room.named("conversation_id").items():
            found[f"items of {kind}"] = http.get(f"/v1/conversations/{each}/items").json()
    return found


def running(server: Server, keys: Keyring, response_id: str) -> bool:
    reply = httpx.get(f"{server.url}/v1/responses/{response_id}", headers=dict(bearer(keys.mine)), timeout=60)
    return str(json.loads(reply.text)["status"]) == "in_progress"


def wait_running(server: Server, keys: Keyring, response_id: str) -> None:
    wait_until(lambda: running(server, keys, response_id), "the response runs")
