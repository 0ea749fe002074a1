"""A conversation that lost its blocks gets them back from the shelf, and says the same as one that never had any."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from axon.engine.config import EngineConfig
from axon.engine.core import EngineCore
from axon.engine.echo import EchoEngine
from axon.engine.shelf.slab import BLOCKS, INDEX
from tests.engine.builders import open_engine, require_native, with_config
from tests.engine.shelf_engine import ask, ask_all, conversation, prefer_copies

FEW_BYTES = {"float32": 110_000, "int8": 65_000, "echo": 20 * 16 * 4096}
"""About 16 blocks of the tiny model: two conversations."""
LENGTH = 100
Open = Callable[..., EngineCore]


@pytest.fixture(params=["float32", "int8", "echo"])
def open_kind(request: pytest.FixtureRequest, tiny_llama: Path) -> Iterator[Open]:
    """Opens engines of one kind with room for two conversations; all are closed at the end."""
    kind = request.param
    if kind == "int8":
        require_native()
    opened: list[EngineCore] = []

    def open_one(**changes: Any) -> EngineCore:
        config = with_config(block_size=16, kv_memory_bytes=FEW_BYTES[kind], **changes)
        if kind == "echo":
            config = EngineConfig(kind="echo", kv_memory_bytes=FEW_BYTES[kind], **changes)
            opened.append(EchoEngine(config))
        else:
            opened.append(open_engine(tiny_llama, config, dtype=kind))
        prefer_copies(opened[-1])
        return opened[-1]

    yield open_one
    for engine in opened:
        engine.close()


def talk(number: int, **more: Any) -> Any:
    return conversation(number, LENGTH, max_tokens=6, ignore_eos=True, **more)


FOUND = (LENGTH - 1) // 16 * 16


def test_a_conversation_that_left_the_device_comes_back_from_files(open_kind: Open, tmp_path: Path) -> None:
    plain = open_kind()
    expected = {number: ask(plain, talk(number)).token_ids for number in range(8)}
    engine = open_kind(kv_folder=str(tmp_path))
    for number in range(8):
        first = ask(engine, talk(number))
        assert (first.token_ids, first.num_cached) == (expected[number], 0)
    for number in range(8):
        again = ask(engine, talk(number))
        assert (again.token_ids, again.num_cached) == (expected[number], FOUND)


def test_ten_times_as_many_sessions_as_the_device_holds(open_kind: Open, tmp_path: Path) -> None:
    """All at once and twice: none is refused, and the second time all are found."""
    engine = open_kind(kv_folder=str(tmp_path), max_sequences=4)
    several = [talk(number) for number in range(24)]
    first = ask_all(engine, several)
    second = ask_all(engine, several)
    assert {id: answer.token_ids for id, answer in first.items()} == {
        id: answer.token_ids for id, answer in second.items()
    }
    assert {answer.num_cached for answer in second.values()} == {FOUND}


def test_host_memory_alone_gives_them_back_too(open_kind: Open) -> None:
    engine = open_kind(kv_host_bytes=8 << 20)
    first = [ask(engine, talk(number)) for number in range(6)]
    again = [ask(engine, talk(number)) for number in range(6)]
    assert [answer.token_ids for answer in first] == [answer.token_ids for answer in again]
    assert [answer.num_cached for answer in again] == [FOUND] * 6


def test_an_engine_that_is_started_again_finds_them(open_kind: Open, tmp_path: Path) -> None:
    with closing(open_kind(kv_folder=str(tmp_path))) as before:
        expected = ask(before, talk(1)).token_ids
    after = ask(open_kind(kv_folder=str(tmp_path)), talk(1))
    assert (after.token_ids, after.num_cached) == (expected, FOUND)


def test_two_engines_have_folders_of_their_own(open_kind: Open, tmp_path: Path) -> None:
    first, second = open_kind(kv_folder=str(tmp_path)), open_kind(kv_folder=str(tmp_path))
    expected = ask(first, talk(1)).token_ids
    other = ask(second, talk(1))
    assert (other.token_ids, other.num_cached) == (expected, 0)
    assert len(list(tmp_path.glob("*/*"))) == 2


@pytest.mark.parametrize("spoilt", [INDEX, BLOCKS])
def test_damaged_files_are_computed_again(open_kind: Open, tmp_path: Path, spoilt: str) -> None:
    with closing(open_kind(kv_folder=str(tmp_path))) as before:
        expected = ask(before, talk(1)).token_ids
    [path] = tmp_path.glob(f"*/*/{spoilt}")
    content = bytearray(path.read_bytes())
    for index in range(0, len(content), 61):
        content[index] ^= 0x55
    path.write_bytes(content)
    after = ask(open_kind(kv_folder=str(tmp_path)), talk(1))
    assert (after.token_ids, after.num_cached) == (expected, 0)


def test_what_is_cut_short_is_computed_again(open_kind: Open, tmp_path: Path) -> None:
    with closing(open_kind(kv_folder=str(tmp_path))) as before:
        expected = ask(before, talk(1)).token_ids
    [path] = tmp_path.glob(f"*/*/{BLOCKS}")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    after = ask(open_kind(kv_folder=str(tmp_path)), talk(1))
    assert after.token_ids == expected
    assert after.num_cached < FOUND


def test_another_tenant_finds_nothing(open_kind: Open, tmp_path: Path) -> None:
    engine = open_kind(kv_folder=str(tmp_path))
    ask(engine, talk(1, tenant="x"))
    assert ask(engine, talk(1, tenant="y")).num_cached == 0
    assert ask(engine, talk(1, tenant="x")).num_cached == FOUND


def test_an_erased_session_is_in_no_tier(open_kind: Open, tmp_path: Path) -> None:
    engine = open_kind(kv_folder=str(tmp_path))
    ask(engine, talk(1, session="secret"))
    ask(engine, talk(2, session="other"))
    engine.erase(["secret"])
    assert ask(engine, talk(1)).num_cached == 0
    assert ask(engine, talk(2)).num_cached == FOUND
    engine.close()
    reopened = open_kind(kv_folder=str(tmp_path))
    reopened.erase(["other"])
    assert ask(reopened, talk(2)).num_cached == 0


def test_what_is_to_be_forgotten_is_never_copied(open_kind: Open, tmp_path: Path) -> None:
    with closing(open_kind(kv_folder=str(tmp_path))) as engine:
        add = talk(1)
        ask(engine, type(add)(**{name: getattr(add, name) for name in add.__slots__} | {"forget": True}))
    [blocks] = tmp_path.glob(f"*/*/{BLOCKS}")
    assert blocks.stat().st_size == 0


def test_only_the_owner_may_read_the_files(open_kind: Open, tmp_path: Path) -> None:
    folder = tmp_path / "kv"
    engine = open_kind(kv_folder=str(folder))
    ask(engine, talk(1))
    for path in [folder, *folder.rglob("*")]:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
