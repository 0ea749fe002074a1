"""Copies of blocks are kept for as long as the settings say, and never for longer than erasures are remembered."""

from pathlib import Path

import pytest

from axon.control.retention import TOMBSTONES_S
from axon.engine.config import MOST_COPY_AGE_S, EngineConfig
from axon.engine.echo import EchoEngine

DAY_S = 86400.0


@pytest.mark.parametrize(("asked", "kept"), [(DAY_S, DAY_S), (0.0, MOST_COPY_AGE_S), (365 * DAY_S, MOST_COPY_AGE_S)])
def test_no_copy_outlives_the_tombstone_of_its_session(tmp_path: Path, asked: float, kept: float) -> None:
    engine = EchoEngine(EngineConfig(kind="echo", kv_folder=str(tmp_path), kv_folder_max_age_s=asked))
    try:
        shelf = engine._scheduler.shelf
        assert shelf is not None
        key = b"k" * 32
        shelf.take_news(now=0.0)
        shelf.offer(0, key)
        shelf.take_news(now=kept - 1)
        assert shelf.has_saves
        shelf.take_news(now=kept + 1)
        assert not shelf.has_saves
    finally:
        engine.close()


def test_tombstones_are_kept_for_longer_than_any_copy() -> None:
    assert MOST_COPY_AGE_S < TOMBSTONES_S
