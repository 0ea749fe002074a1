"""What is evicted, as a decision; and errors of the disk as sentences."""

import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.errors import FetchFailed
from axon.weights.space import Kept, disk_errors, require_free, to_evict


@st.composite
def models(draw: st.DrawFn) -> Kept:
    return Kept(
        folder=Path(f"/{draw(st.uuids())}"),
        lock=Path("/lock"),
        num_bytes=draw(st.integers(0, 100)),
        used_at=draw(st.floats(0, 1e9)),
        in_use=draw(st.booleans()),
    )


@given(st.lists(models(), max_size=8), st.integers(0, 300), st.integers(1, 500))
def test_as_few_as_needed_go_the_least_recently_used_first_and_none_that_is_in_use(
    kept: list[Kept], needed: int, limit: int
) -> None:
    order = to_evict(kept, needed=needed, limit=limit)
    in_use = sum(each.num_bytes for each in kept if each.in_use)
    assert (order is None) == (in_use + needed > limit)
    if order is None:
        return
    left = [each for each in kept if each not in order]
    assert not any(each.in_use for each in order)
    assert sum(each.num_bytes for each in left) + needed <= limit
    if order:
        assert sum(each.num_bytes for each in [*left, order[-1]]) + needed > limit
        newest = max(each.used_at for each in order)
        assert all(each.in_use or each.used_at >= newest for each in left)


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "disk_full"),
        (errno.EDQUOT, "disk_full"),
        (errno.EACCES, "permission_denied"),
        (errno.EROFS, "permission_denied"),
    ],
)
def test_an_error_of_the_disk_says_what_to_do(number: int, code: str) -> None:
    with pytest.raises(FetchFailed) as failed, disk_errors(Path("/models")):
        raise OSError(number, "as the system says it")
    assert failed.value.code == code
    assert "/models" in failed.value.message


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(OSError, match="as the system says it"), disk_errors(Path("/models")):
        raise OSError(errno.EIO, "as the system says it")


def test_a_disk_without_room_is_refused_with_both_figures(tmp_path: Path) -> None:
    require_free(tmp_path, 0)
    with pytest.raises(FetchFailed, match=r"1,000,000\.0 GB more are needed there, and [\d,.]+ [GM]B are free"):
        require_free(tmp_path, 10**15 - (16 << 20))
