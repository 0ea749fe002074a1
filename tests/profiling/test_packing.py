"""Profiles travel between processes as they are, and nothing else is taken for one."""

import zlib

import pytest

from axon.errors import AxonError
from axon.profiling import packing
from axon.profiling.packing import pack, unpack
from axon.profiling.profile import Kind
from tests.profiling.builders import cpu_profile, memory_profile, steps_profile


def test_a_profile_is_read_as_it_was_packed() -> None:
    for kind, made in ((Kind.CPU, cpu_profile()), (Kind.MEMORY, memory_profile()), (Kind.STEPS, steps_profile())):
        assert unpack(kind, pack(made)) == made


@pytest.mark.parametrize("packed", [b"", b"nonsense", zlib.compress(b"nonsense"), pack(cpu_profile())[:-9]])
def test_what_is_no_profile_is_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match="profile"):
        unpack(Kind.CPU, packed)


def test_a_profile_beyond_the_bound_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MAX_PACKED_BYTES", 10)
    with pytest.raises(AxonError) as refused:
        pack(cpu_profile())
    assert refused.value.code == "profile_too_large"
