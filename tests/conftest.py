"""What every test folder shares: a clock, profiles, the order of tests, servers that are forked. Knows no adapter."""

import gc
import os
import tempfile
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, is_hypothesis_test, settings

from axon.runtime.clock import FakeClock
from tests import durations, long, processes, stolen
from tests.order import chosen_seed, ordered
from tests.services import keeper, replayed_migrations, shared_routes, tls, warm

# A test that is slow because the machine is busy is right all the same.
settings.register_profile(
    "axon",
    deadline=None,
    max_examples=long.examples(100),
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("axon")

tls.share_context()
shared_routes.share_routes()
replayed_migrations.replay_migrations()
warm.enable()

_SEED = pytest.StashKey[int | None]()
_PROCESSES = pytest.StashKey[int]()
_AHEAD = (
    ("tests.services.rabbitmq", "shared_server"),
    ("tests.contracts.postgres_backend", "shared_server"),
    ("tests.contracts.postgres_backend", "shared_bouncer"),
    ("tests.services.s3", "shared_server"),
)
"""Shared servers that a whole run needs in any order, and that take their time to start."""


def pytest_configure(config: pytest.Config) -> None:
    seed = config.stash[_SEED] = chosen_seed(os.environ)
    if seed is not None:
        os.environ["TEST_SEED"] = str(seed)  # the processes that this one starts need the same order
    config.stash[_PROCESSES] = processes.asked(os.environ)
    processes.forget(os.environ)
    if config.stash[_PROCESSES] and not config.option.collectonly:
        # They start while tests are imported, which takes one core.
        warm.share()
        keeper.open_keeper(_AHEAD if config.args_source is config.ArgsSource.TESTPATHS else ())


def pytest_report_header(config: pytest.Config) -> str:
    return _order(config)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    terminalreporter.write_line(_order(config))
    reports = [each for found in terminalreporter.stats.values() for each in found]
    of_tests = [each for each in reports if isinstance(each, pytest.TestReport)]
    for line in stolen.told(of_tests):
        terminalreporter.write_line(line)
    if durations.is_saved():
        durations.save((each.nodeid, each.duration) for each in of_tests)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in stolen.run(item, nextitem):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    if session.testsfailed or session.config.option.collectonly:
        return None
    if not keeper.is_open():
        keeper.open_keeper()
    num_processes = session.config.stash[_PROCESSES]
    if not num_processes:
        return None
    processes.run(session, num_processes)
    return True


def _order(config: pytest.Config) -> str:
    seed = config.stash[_SEED]
    return "order: as written" if seed is None else f"order: shuffled; TEST_SEED={seed} repeats it"


@pytest.hookimpl(tryfirst=True)  # before marks are chosen from, and tests that share a fixture's parameter put together
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.stash[_SEED]
    for item in items:
        if "place" in _params(item) and not item.get_closest_marker("everywhere"):
            item.add_marker("anywhere")
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("property")
    if not long.whole():
        _leave_out(config, items, seed)
    items[:] = ordered([(_file(item), item) for item in items], seed)


def pytest_collectstart() -> None:
    """What is imported for tests stays: nobody need look for garbage in it."""
    gc.disable()


def pytest_collection_finish() -> None:
    """From here on only what tests make is looked through for garbage."""
    gc.collect()
    gc.freeze()
    gc.enable()


def _leave_out(config: pytest.Config, items: list[pytest.Item], seed: int | None) -> None:
    """What a short run does not do."""
    out = long.out_of([_case(item) for item in items], seed)
    config.hook.pytest_deselected(items=[item for number, item in enumerate(items) if number in out])
    items[:] = [item for number, item in enumerate(items) if number not in out]


def _case(item: pytest.Item) -> long.Case:
    test, mark = item.nodeid.partition("[")[0], item.get_closest_marker("long")
    corpus = "" if mark is None else str(mark.args[0] if mark.args else test)
    return long.Case(file=_file(item), corpus=corpus, anywhere=_anywhere(item, test))


def _anywhere(item: pytest.Item, test: str) -> str:
    """What the test is but for the parameter that names its place, unless it is to run at all places."""
    mark = item.get_closest_marker("anywhere")
    if mark is None:
        return ""
    (place,) = mark.args or ("place",)
    return repr((test, {**_params(item), place: ""}))


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _params(item: pytest.Item) -> dict[str, object]:
    callspec = getattr(item, "callspec", None)
    return {} if callspec is None else dict(callspec.params)


@pytest.fixture(scope="session", autouse=True)
def runs_within_have_folders_of_their_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A pytest that a test starts closes the folder above its own to all but its user: not the one that servers of
    this run, which have another user, must pass."""
    tmp_path_factory.getbasetemp()  # this run's own is there by now
    with tempfile.TemporaryDirectory(prefix="axon-runs-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DEBUG_TEMPROOT", folder)
        yield


@pytest.fixture(autouse=True)
def logs_are_as_they_were() -> Iterator[None]:
    """Whatever a test has set for logs, the next one finds nothing filtered."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
