"""The mark of a restore: there while it changes things, and after it was cut off."""

from pathlib import Path

import pytest

from axon.errors import Misconfigured
from axon.runtime.restoring import marked, require_whole


def test_a_restore_that_ends_well_leaves_no_mark(tmp_path: Path) -> None:
    with marked(tmp_path / "data", "from a.backup"), pytest.raises(Misconfigured, match=r"from a\.backup"):
        require_whole(tmp_path / "data")
    require_whole(tmp_path / "data")
    require_whole(tmp_path / "nowhere")


def test_a_restore_that_fails_leaves_its_mark(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), marked(tmp_path, "from a.backup"):
        raise RuntimeError
    with pytest.raises(Misconfigured, match="axon backup restore"):
        require_whole(tmp_path)
