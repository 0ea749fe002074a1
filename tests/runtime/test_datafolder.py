"""Secrets in the data folder: one for all who share it, whole or not there; and names, each one process's own."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pytest

from axon.runtime.datafolder import holder_of_name, own_name, read_or_make_secret, replace_secret, write_secret


def test_a_secret_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "data" / "pepper"
    assert read_or_make_secret(path) == read_or_make_secret(path) != ""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["pepper"]
    with pytest.raises(FileExistsError):
        write_secret(path, "another")


def test_a_secret_is_replaced_as_a_whole_and_stays_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "pepper"
    path.write_text("old\n")
    replace_secret(path, b"new")
    assert path.read_text() == "new\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with patch.object(os, "replace", side_effect=OSError("full")), pytest.raises(OSError, match="full"):
        replace_secret(path, b"newer")
    assert (path.read_text(), os.listdir(tmp_path)) == ("new\n", ["pepper"])


def test_who_comes_while_a_secret_is_written_never_reads_half_of_it(tmp_path: Path) -> None:
    path = tmp_path / "pepper"
    fdopen = os.fdopen

    def looked_at(descriptor: int, mode: str) -> object:
        assert not path.exists()
        return fdopen(descriptor, mode)

    with patch.object(os, "fdopen", looked_at):
        assert read_or_make_secret(path) == path.read_text().strip()


def test_a_name_is_one_holders_own_until_it_ends(tmp_path: Path) -> None:
    assert holder_of_name(tmp_path, "small/small#-0") is None
    with own_name(tmp_path, "small/small#-0", wait_s=0.0) as first:
        assert first
        assert holder_of_name(tmp_path, "small/small#-0") == os.getpid()
        with own_name(tmp_path, "small/small#-0", wait_s=0.1) as second:
            assert not second
        with own_name(tmp_path, "other/small#-0", wait_s=0.0) as other:
            assert other
    assert holder_of_name(tmp_path, "small/small#-0") is None
    with own_name(tmp_path, "small/small#-0", wait_s=0.0) as third:
        assert third


def test_a_name_is_waited_for_while_its_last_holder_ends(tmp_path: Path) -> None:
    with ExitStack() as first:
        assert first.enter_context(own_name(tmp_path, "small", wait_s=0.0))
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(lambda: own_name(tmp_path, "small", wait_s=30.0).__enter__())
            first.close()
            assert waiting.result(timeout=30)
