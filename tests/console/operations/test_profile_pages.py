"""Where profiles are written: a file that cannot be is refused before anything is recorded."""

from pathlib import Path

import pytest

from axon.console.operations.profile_pages import check_folder, cpu_suffix
from axon.errors import InvalidInput


def test_a_file_needs_a_folder_that_is_there(tmp_path: Path) -> None:
    check_folder(tmp_path / "x.svg")
    check_folder(Path("x.svg"))
    with pytest.raises(InvalidInput, match="there is no folder"):
        check_folder(tmp_path / "missing" / "x.svg")


def test_the_ending_is_the_format() -> None:
    assert cpu_suffix(Path("x.txt")) == ".txt"
    with pytest.raises(InvalidInput, match="must end in"):
        cpu_suffix(Path("x.png"))
