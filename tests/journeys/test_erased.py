"""Texts that were erased, or never stored, are found nowhere."""

import sqlite3
from pathlib import Path

import openai
import pytest

from tests.journeys.conftest import Fresh
from tests.journeys.events import start
from tests.journeys.server import Server, wait_until
from tests.journeys.test_responses import GREEDY, client


def test_what_is_erased_is_unknown(fresh: Fresh) -> None:
    server = fresh.start()
    with client(server) as api:
        made = api.responses.create(**GREEDY, input="secret words")
        api.responses.delete(made.id)
        with pytest.raises(openai.NotFoundError):
            api.responses.retrieve(made.id)
        with pytest.raises(openai.BadRequestError) as gone:
            api.responses.create(**GREEDY, input="go on", previous_response_id=made.id)
        assert gone.value.code == "previous_response_not_found"


def test_a_chain_outlives_its_first_response(fresh: Fresh) -> None:
    server = fresh.start()
    with client(server) as api:
        first = api.responses.create(**GREEDY, input="one")
        second = api.responses.create(**GREEDY, input="two", previous_response_id=first.id)
        api.responses.delete(first.id)
        with pytest.raises(openai.NotFoundError):
            api.responses.retrieve(first.id)
        assert api.responses.retrieve(second.id) == second
        third = api.responses.create(**GREEDY, input="three", previous_response_id=second.id)
    assert third.output_text == f"user: two\nassistant: {second.output_text}\nuser: three\nassistant:"


def test_what_is_not_stored_is_nowhere_once_it_was_read(fresh: Fresh) -> None:
    server = fresh.start(sessions_reader_grace_s=1.0)
    body = {**GREEDY, "input": "a canary", "store": False}
    response_id, got = start(server, body)
    assert "a canary" in got[-1].data
    with client(server) as api, server.client() as http:
        with pytest.raises(openai.NotFoundError):
            api.responses.retrieve(response_id)
        with pytest.raises(openai.BadRequestError) as unknown:
            api.responses.create(**GREEDY, input="go on", previous_response_id=response_id)
        assert unknown.value.code == "previous_response_not_found"
        path = f"/v1/responses/{response_id}?stream=true"
        wait_until(lambda: http.get(path).status_code == 404, "its stream is forgotten")
    database = server.data_dir / "axon.db"
    if database.exists():
        with sqlite3.connect(database) as connection:
            rows = connection.execute("SELECT * FROM turns").fetchall()
        connection.close()
        assert len(rows) == 1
        assert "canary" not in repr(rows)


@pytest.mark.everywhere
def test_what_was_erased_does_not_come_back_after_a_restart(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.005)
    with client(server) as api:
        talk = api.conversations.create(items=[{"role": "user", "content": "a canary"}])
        first = api.responses.create(**GREEDY, input="one", conversation=talk.id)
        running = api.responses.create(
            **GREEDY, input="two", conversation=talk.id, background=True, extra_body={"ignore_eos": True}
        )
        assert api.conversations.delete(talk.id).deleted
    server.kill()
    server = fresh.start()
    with client(server) as api:
        for response_id in (first.id, running.id):
            with pytest.raises(openai.NotFoundError):
                api.responses.retrieve(response_id)
        with pytest.raises(openai.NotFoundError):
            api.conversations.retrieve(talk.id)
        with pytest.raises(openai.NotFoundError):
            api.responses.create(**GREEDY, input="three", conversation=talk.id)


def test_a_repeated_request_whose_answer_was_erased_is_told_so(echo: Server) -> None:
    with client(echo) as api:
        headers = {"Idempotency-Key": "erased-since"}
        made = api.responses.create(**GREEDY, input="one", extra_headers=headers)
        api.responses.delete(made.id)
        with pytest.raises(openai.APIStatusError) as gone:
            api.responses.create(**GREEDY, input="one", extra_headers=headers)
    assert gone.value.status_code == 410


@pytest.mark.everywhere
def test_an_erased_text_is_in_no_file_of_the_server(fresh: Fresh) -> None:
    """The word is asked, echoed, titled, edited in a branch, and asked once more by an answer that still runs."""
    server = fresh.start(engine_echo_step_s=0.002)
    word = "quincunxial"
    with client(server) as api, server.client() as http:
        talk = api.conversations.create(metadata={"title": f"About {word}"})
        first = api.responses.create(**GREEDY, input=f"{word} " * 200, conversation=talk.id)
        api.responses.create(**GREEDY, input=f"{word} beside it", previous_response_id=first.id)
        api.responses.create(
            **GREEDY, input=f"{word} again", conversation=talk.id, background=True, extra_body={"ignore_eos": True}
        )
        assert http.delete(f"/v1/conversations/{talk.id}?branches=true").status_code == 200
    wait_until(lambda: not _holding(server.data_dir, word), "no file has the word")
    server.kill()
    assert _holding(server.data_dir, word) == []


def _holding(folder: Path, word: str) -> list[str]:
    """The files below the folder that have the word."""
    return [str(each) for each in folder.rglob("*") if each.is_file() and word.encode() in _bytes_of(each)]


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:  # it went away while we looked
        return b""
