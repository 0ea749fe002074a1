"""What a worker can run, what only a later release can, and what nobody can."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.job import Job
from axon.domain.job_body import FEATURES, VERSION, Beyond, read_job
from axon.domain.wire import decode, encode
from tests.contracts.builders import make_job
from tests.golden import write

FOLDER = Path(write.__file__).parent
_BODIES = sorted(FOLDER.glob("job-*.msgpack"))


@pytest.mark.parametrize("path", [path for path in _BODIES if path.stem != "job-later"], ids=lambda path: path.stem)
def test_every_job_of_a_release_before_is_run(path: Path) -> None:
    body = path.read_bytes()
    job = decode(Job, body)
    assert read_job(body, set(job.needs)) == job
    assert (read_job(body) == job) is (set(job.needs) <= FEATURES)


def test_a_job_of_a_later_format_is_left_alone_though_its_fields_can_be_read() -> None:
    body = (FOLDER / "job-later.msgpack").read_bytes()
    assert read_job(body) == Beyond(decode(Job, body).id, "written as v 2")


def test_a_job_of_a_later_format_is_left_alone_when_its_fields_cannot_be_read() -> None:
    assert read_job(msgspec.msgpack.encode({"v": 2, "id": "turn_1", "prompts": []})) == Beyond(
        "turn_1", "written as v 2"
    )
    assert read_job(msgspec.msgpack.encode({"v": 2, "id": "turn_1", "tenant": 5})) == Beyond("turn_1", "written as v 2")


def test_a_job_that_needs_what_is_not_here_is_left_alone() -> None:
    job = make_job(needs=("tools", "images"))
    assert read_job(encode(job), set()) == Beyond(job.id, "needs tools, images")
    assert read_job(encode(job), {"tools"}) == Beyond(job.id, "needs images")
    assert read_job(encode(job), {"tools", "images", "more"}) == job
    assert read_job(encode(replace(job, needs=()))) == replace(job, needs=())


def test_this_release_writes_the_format_that_it_runs() -> None:
    assert make_job().v == VERSION


@given(st.binary())
def test_bytes_that_are_no_job_are_nobodys(body: bytes) -> None:
    assert read_job(body) is None


@pytest.mark.parametrize(
    "raw", [{}, {"v": 1, "id": "turn_1"}, {"v": 2}, {"v": 2, "id": ""}, {"v": "2", "id": "x"}, [1]]
)
def test_a_map_that_no_release_writes_is_nobodys(raw: object) -> None:
    assert read_job(msgspec.msgpack.encode(raw)) is None
