"""Fixtures of the fault tests: a seed, the stages that faults share, and servers of the echo engine for the rest."""

import os
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from axon.engine.native import library
from axon.engine.native.build import NotBuilt
from tests.contracts import postgres_backend
from tests.faults.fleet import Fleet
from tests.faults.place import Place
from tests.faults.stage import Stages
from tests.services import rabbitmq
from tests.services import redis as redis_service
from tests.services.require import require
from tests.vllm_environment import VARIABLE

if TYPE_CHECKING:
    from tests.fleet.member import Role

_STEP_S = 0.02
_NUM_ASKS = 10
"""Different requests; every fifth has a prompt that takes a while to read."""


@pytest.fixture(scope="module")
def seed() -> int:
    """Fixed by AXON_FAULT_SEED; printed when a test fails."""
    return int(os.environ.get("AXON_FAULT_SEED") or random.randrange(1 << 32))


@pytest.fixture(scope="module")
def stages(seed: int) -> Iterator[Stages]:
    """The stage of one fault is that of the next of its kind. Where int8 runs, its model has a draft head."""
    opened = Stages(seed=seed, step_s=_STEP_S, num_asks=_NUM_ASKS, has_head=_runs_heads())
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def shelved(seed: int) -> Iterator[Stages]:
    """Stages whose engines keep copies of KV blocks in files, and have few blocks beside."""
    opened = Stages(seed=seed, step_s=_STEP_S, num_asks=_NUM_ASKS, has_shelf=True, has_head=_runs_heads())
    yield opened
    opened.close()


def _runs_heads() -> bool:
    """vLLM runs no head of ours, and without a compiler there is no int8."""
    try:
        library.load()
    except NotBuilt:
        return False
    return not os.environ.get(VARIABLE)


@pytest.fixture
def victims() -> Iterator[Path]:
    """For the data of servers that the test breaks. Not below pytest's own folder: another run shuts that to all but
    its user, and as root our servers are somebody else."""
    with tempfile.TemporaryDirectory(prefix="axon-faults-") as folder:
        yield Path(folder)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Callable[..., Fleet]]:
    """Starts the test's fleet, of echo engines on the services that all tests share, but for what is given."""
    with ExitStack() as stack:

        def make(*, num_gateways: int = 2, own: Mapping[str, Any] = MappingProxyType({}), **settings: object) -> Fleet:
            echo = {"engine_kind": "echo", "engine_echo_step_s": 0.01}
            made = Fleet(_shared_place(tmp_path, **own), {**echo, **settings})
            stack.callback(made.close)
            roles: list[Role] = ["worker", "control"]
            roles += ["gateway"] * num_gateways
            made.start(*map(made.make, roles))
            return made

        yield make


def _shared_place(
    folder: Path, *, live_port: int = 0, store_url: str = "", rabbit: rabbitmq.RabbitServer | None = None
) -> Place:
    require("redis-server", "rabbitmq-server", "postgres")
    live_port = live_port or redis_service.shared_server(cluster=False).port
    store_url = store_url or postgres_backend.shared_server().create_database(postgres_backend.TEMPLATE)
    rabbit = rabbit or rabbitmq.shared_server()
    urls = {"queue": rabbit.url, "live": f"redis://127.0.0.1:{live_port}", "store": store_url}
    return Place(folder=folder, rabbit=rabbit, live_port=live_port, store_url=store_url, urls=urls)
