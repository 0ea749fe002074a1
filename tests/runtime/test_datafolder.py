"""Secrets in the data folder: one for all who share it, whole or not there."""

import os
import stat
from pathlib import Path
from unittest.mock import patch

import pytest

from axon.runtime.datafolder import read_or_make_secret, write_secret


def test_a_secret_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "data" / "pepper"
    assert read_or_make_secret(path) == read_or_make_secret(path) != ""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["pepper"]
    with pytest.raises(FileExistsError):
        write_secret(path, "another")


def test_who_comes_while_a_secret_is_written_never_reads_half_of_it(tmp_path: Path) -> None:
    path = tmp_path / "pepper"
    fdopen = os.fdopen

    def looked_at(descriptor: int, mode: str) -> object:
        assert not path.exists()
        return fdopen(descriptor, mode)

    with patch.object(os, "fdopen", looked_at):
        assert read_or_make_secret(path) == path.read_text().strip()
