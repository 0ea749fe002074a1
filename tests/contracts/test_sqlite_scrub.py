"""Text that was erased is in none of the store's files a moment later, whoever reads them meanwhile."""

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from axon.adapters.store.sqlite import SqliteStore
from axon.adapters.store.sqlite_scrub import Scrubber
from axon.domain.content.item import Item
from axon.domain.session.conversation import Conversation, Entry
from tests.contracts.test_sqlite_store import opened_store
from tests.journeys.server import wait_until

WORD = "quincunx"
_is_cut_off = Scrubber._is_cut_off


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "axon.db"


def holding(folder: Path, word: str = WORD) -> list[str]:
    """The names of the files that have the word."""
    return [each.name for each in sorted(folder.iterdir()) if word.encode() in each.read_bytes()]


async def is_gone(folder: Path) -> None:
    await asyncio.to_thread(wait_until, lambda: not holding(folder), "no file has the word")


async def talked(store: SqliteStore, conversation_id: str = "conv_1") -> None:
    """Stores a conversation with the word in its title and its items."""
    talk = Conversation(id=conversation_id, tenant="acme", created_at=1.0, metadata={"title": WORD})
    said = Item(id="msg_1", role="user", texts=(f"{WORD} " * 3_000,))
    await store.conversations.put(talk, at=1.0, first=Entry(ordinal=0, at=1.0, id="e1", items=(said,)))


async def test_an_erased_conversation_leaves_the_files_at_once(path: Path) -> None:
    async with opened_store(path) as store:
        await talked(store)
        assert holding(path.parent)
        await store.conversations.erase(["conv_1"])
        await is_gone(path.parent)


async def test_what_a_killed_process_left_in_the_log_goes_with_the_next_start(path: Path) -> None:
    async with opened_store(path) as store:
        await talked(store)
    with closing(sqlite3.connect(path, isolation_level=None)) as left:  # its log stays as a killed process leaves it
        left.execute("PRAGMA secure_delete=ON")
        left.execute("INSERT INTO entries SELECT 'conv_2', id, ordinal, added_at, items FROM entries")
        for table in ("entries", "conversations"):
            left.execute(f"DELETE FROM {table}")
        left.execute("PRAGMA wal_checkpoint(PASSIVE)")
        assert holding(path.parent) == ["axon.db-wal"]
        async with opened_store(path):
            await is_gone(path.parent)


async def test_a_reader_in_the_way_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[bool] = []

    def is_cut_off(scrubber: Scrubber) -> bool:
        tried.append(_is_cut_off(scrubber))
        return tried[-1]

    monkeypatch.setattr(Scrubber, "_is_cut_off", is_cut_off)
    async with opened_store(path) as store:
        await talked(store)
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            assert reader.execute("SELECT count(*) FROM conversations").fetchone() == (1,)
            await store.conversations.erase(["conv_1"])
            await asyncio.to_thread(wait_until, lambda: tried, "it has tried")
            assert not any(tried)
            assert holding(path.parent)  # the reader may still look at it
            await talked(store, "conv_2")  # nobody who writes is stopped
            await store.conversations.erase(["conv_2"])
            reader.execute("COMMIT")
        await is_gone(path.parent)


def test_a_scrubber_that_gives_up_says_so_and_ends(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("PRAGMA journal_mode=WAL")
        reader.execute("CREATE TABLE t (x)")
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM t").fetchall()
        with closing(sqlite3.connect(path, isolation_level=None)) as writer:
            writer.execute("INSERT INTO t VALUES (1)")
        scrubber = Scrubber(path, pause_s=0.01, attempts=2)
        with capture_logs() as logged:
            scrubber.note_erased()
            wait_until(lambda: logged, "it gives up")
            scrubber.close()
        reader.execute("COMMIT")
    assert [each["event"] for each in logged] == ["erasure.incomplete"]
    assert not [each for each in threading.enumerate() if each.name.startswith("store-scrub")]


def test_an_erasure_that_ends_while_the_scrubber_is_closed_raises_nothing(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as made:
        made.execute("PRAGMA journal_mode=WAL")
    scrubber = Scrubber(path, pause_s=0.01, attempts=2)

    class ClosingLock:
        """Lets somebody close the scrubber as soon as the lock is free."""

        def __init__(self) -> None:
            self._lock, self._num_uses = threading.Lock(), 0

        def __enter__(self) -> None:
            self._lock.acquire()
            self._num_uses += 1

        def __exit__(self, *_: object) -> None:
            is_first = self._num_uses == 1
            self._lock.release()
            if is_first:
                scrubber.close()

    scrubber._lock = ClosingLock()  # type: ignore[assignment]
    scrubber.note_erased()
    scrubber.note_erased()
    assert not [each for each in threading.enumerate() if each.name.startswith("store-scrub")]
