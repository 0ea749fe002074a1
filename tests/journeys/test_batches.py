"""Files and batches as a tenant's program uses them: the unmodified openai package, embedded and on services."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from openai import BadRequestError, NotFoundError, OpenAI

from tests.journeys.conftest import Fresh
from tests.journeys.server import Server, wait_until

ENDED = ("completed", "failed", "expired", "cancelled")
ENDLESS = {"ignore_eos": True, "max_tokens": None}
"""Goes on until the context is full: half a minute at a slow server."""


def client_of(server: Server) -> OpenAI:
    return OpenAI(base_url=f"{server.url}/v1", api_key=server.key, max_retries=0)


def chat_line(number: int, **body: Any) -> dict[str, Any]:
    said = [{"role": "user", "content": f"word{number}"}]
    return {
        "custom_id": f"line-{number}",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"model": "echo", "messages": said, "max_tokens": 16, **body},
    }


def jsonl(lines: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def submit(client: OpenAI, lines: Sequence[dict[str, Any]], endpoint: Any = "/v1/chat/completions") -> str:
    file = client.files.create(file=("input.jsonl", jsonl(lines)), purpose="batch")
    return client.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window="24h").id


def wait_ended(client: OpenAI, batch_id: str, timeout_s: float = 60.0) -> Any:
    wait_until(lambda: client.batches.retrieve(batch_id).status in ENDED, "the batch ends", timeout_s)
    return client.batches.retrieve(batch_id)


def num_completed(client: OpenAI, batch_id: str) -> int:
    counts = client.batches.retrieve(batch_id).request_counts
    return counts.completed if counts else 0


def content(client: OpenAI, file_id: str | None) -> list[dict[str, Any]]:
    return [json.loads(line) for line in client.files.content(file_id).text.splitlines()] if file_id else []


@pytest.mark.everywhere
def test_a_batch_answers_every_line(echo: Server) -> None:
    with client_of(echo) as client:
        batch = wait_ended(client, submit(client, [chat_line(number) for number in range(20)]))
        assert batch.status == "completed", batch
        assert (batch.request_counts.total, batch.request_counts.completed, batch.request_counts.failed) == (20, 20, 0)
        found = content(client, batch.output_file_id)
        assert [line["custom_id"] for line in found] == [f"line-{number}" for number in range(20)]
        assert all(line["response"]["status_code"] == 200 and line["error"] is None for line in found)
        assert "word7" in found[7]["response"]["body"]["choices"][0]["message"]["content"]
        assert found[0]["response"]["body"]["service_tier"] == "flex"
        assert batch.error_file_id is None


def test_every_kind_of_endpoint_answers_a_batch(echo: Server) -> None:
    with client_of(echo) as client:
        bodies = {
            "/v1/completions": {"model": "echo", "prompt": "hello", "max_tokens": 3},
            "/v1/responses": {"model": "echo", "input": "hello", "max_output_tokens": 3},
        }
        for endpoint, body in bodies.items():
            line = {"custom_id": "only", "method": "POST", "url": endpoint, "body": body}
            batch = wait_ended(client, submit(client, [line], endpoint))
            [found] = content(client, batch.output_file_id)
            assert found["response"]["body"]["object"] in ("text_completion", "response")


def test_lines_that_fail_are_in_the_error_file_and_the_others_in_the_output(echo: Server) -> None:
    with client_of(echo) as client:
        too_long = chat_line(1, messages=[{"role": "user", "content": "word " * 200_000}])
        batch = wait_ended(client, submit(client, [chat_line(0), too_long, chat_line(2)]))
        assert batch.status == "completed"
        assert (batch.request_counts.completed, batch.request_counts.failed) == (2, 1)
        assert [line["custom_id"] for line in content(client, batch.output_file_id)] == ["line-0", "line-2"]
        [failed] = content(client, batch.error_file_id)
        assert (failed["custom_id"], failed["response"]["status_code"]) == ("line-1", 400)
        assert failed["response"]["body"]["error"]["code"] == "context_length_exceeded"


def test_a_bad_input_fails_the_batch_before_anything_is_run(echo: Server) -> None:
    with client_of(echo) as client:
        good = chat_line(1)
        lines = [
            json.dumps(good).encode(),
            b"{not json",
            json.dumps({**good, "custom_id": "two", "url": "/v1/completions"}).encode(),
            json.dumps(good).encode(),
            b'{"custom_id": "\xff"}',
            json.dumps(chat_line(6, temperature=7)).encode(),
            json.dumps(chat_line(7, model="nobody")).encode(),
            json.dumps(chat_line(8, stream=True)).encode(),
            json.dumps({**good, "custom_id": "nine", "method": "GET"}).encode(),
            json.dumps({"custom_id": "ten"}).encode(),
        ]
        file = client.files.create(file=("bad.jsonl", b"\n".join(lines)), purpose="batch")
        made = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
        batch = wait_ended(client, made.id)
        assert batch.status == "failed"
        assert (batch.request_counts.total, batch.output_file_id, batch.error_file_id) == (0, None, None)
        problems = {each.line: each.code for each in batch.errors.data}
        assert problems == {
            2: "invalid_json_line",
            3: "invalid_url",
            4: "duplicate_custom_id",
            5: "invalid_json_line",
            6: "invalid_value",
            7: "model_not_found",
            8: "invalid_value",
            9: "invalid_method",
            10: "invalid_request",
        }


def test_a_cancelled_batch_keeps_what_is_done(slow: Server) -> None:
    with client_of(slow) as client:
        quick, endless = [chat_line(number, max_tokens=1) for number in range(3)], chat_line(3, **ENDLESS)
        lines = [*quick, endless]
        batch_id = submit(client, lines)
        wait_until(lambda: num_completed(client, batch_id) == 3, "three lines are done")
        assert client.batches.cancel(batch_id).status == "cancelling"
        batch = wait_ended(client, batch_id)
        assert batch.status == "cancelled"
        assert [line["custom_id"] for line in content(client, batch.output_file_id)] == ["line-0", "line-1", "line-2"]
        [left] = content(client, batch.error_file_id)
        assert (left["custom_id"], left["error"]["code"], left["response"]) == ("line-3", "batch_cancelled", None)
        assert client.batches.cancel(batch_id).status == "cancelled"


def test_files_are_listed_read_and_deleted(echo: Server) -> None:
    with client_of(echo) as client:
        data = jsonl([chat_line(number) for number in range(5)])
        made = [client.files.create(file=(f"{number}.jsonl", data), purpose="batch") for number in range(3)]
        assert (made[0].bytes, made[0].filename, made[0].purpose, made[0].object) == (
            len(data),
            "0.jsonl",
            "batch",
            "file",
        )
        pages = client.files.list(limit=2, purpose="batch")
        ids = [file.id for file in pages]  # the client asks for every page
        assert ids[:3] == [file.id for file in reversed(made)]
        assert client.files.retrieve(made[1].id) == made[1]
        assert client.files.content(made[1].id).content == data
        assert client.files.delete(made[1].id).deleted
        with pytest.raises(NotFoundError):
            client.files.retrieve(made[1].id)
        with pytest.raises(NotFoundError):
            client.files.content(made[1].id)
        assert made[1].id not in [file.id for file in client.files.list()]
        assert client.files.list(after=made[1].id).data[0].id == made[0].id  # whoever deletes what they list goes on
        for listing in (client.files.list, client.batches.list):
            with pytest.raises(BadRequestError) as refused:
                listing(after="nope")
            assert refused.value.param == "after"


def test_a_batch_that_ends_too_late_has_its_unfinished_lines_in_the_error_file(fresh: Fresh) -> None:
    server = fresh.start(batches_window_s=8.0, batches_poll_s=0.1, engine_echo_step_s=0.003)
    with client_of(server) as client:
        batch = wait_ended(client, submit(client, [chat_line(0), chat_line(1, **ENDLESS)]))
        assert batch.status == "expired"
        assert None not in (batch.expired_at, batch.finalizing_at)
        assert [line["custom_id"] for line in content(client, batch.output_file_id)] == ["line-0"]
        [left] = content(client, batch.error_file_id)
        assert (left["custom_id"], left["error"]["code"]) == ("line-1", "batch_expired")


def test_the_command_line_submits_watches_fetches_and_cancels(echo: Server) -> None:
    folder = echo.data_dir.parent
    (folder / "good.jsonl").write_bytes(jsonl([chat_line(number) for number in range(3)]))
    (folder / "bad.jsonl").write_bytes(jsonl([chat_line(1), chat_line(1)]))
    done = echo.axon("batch", "submit", "good.jsonl", "--wait")
    assert done.returncode == 0, done.stderr
    assert "completed, 3 of 3 answered, 0 failed" in done.stdout
    batch_id = done.stderr.split()[0]
    fetched = echo.axon("batch", "fetch", batch_id, "-o", "answers.jsonl")
    assert fetched.stdout == "answers.jsonl: 3 lines\n"
    ids = [json.loads(line)["custom_id"] for line in (folder / "answers.jsonl").read_text().splitlines()]
    assert ids == ["line-0", "line-1", "line-2"]
    assert json.loads(echo.axon("batch", "status", batch_id, "--json").stdout)["status"] == "completed"
    refused = echo.axon("batch", "cancel", batch_id)
    assert (refused.returncode, "Cannot cancel" in refused.stderr) == (1, True)
    failed = echo.axon("batch", "submit", "bad.jsonl", "--wait")
    assert failed.returncode == 1
    assert "line 2: The custom_id of line 1 comes again" in failed.stderr
    missing = echo.axon("batch", "submit", "nothing.jsonl")
    assert (missing.returncode, "There is no file nothing.jsonl" in missing.stderr) == (2, True)
    folder_given = echo.axon("batch", "submit", str(folder))
    assert (folder_given.returncode, f"{folder} is no file" in folder_given.stderr) == (2, True)
    odd = echo.axon("batch", "status", "x?y")
    assert (odd.returncode, "x?y" in odd.stderr) == (1, True)
