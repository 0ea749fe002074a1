"""Ids: sortable by time, not guessable."""

import pytest

from axon.domain.batch import errors_id, output_id
from axon.domain.ids import is_made_id, new_id, new_seed


def test_ids_sort_by_the_time_they_were_made() -> None:
    ids = [new_id("turn_", now) for now in (1.0, 2.0, 1_700_000_000.0, 1_700_000_000.001, 4_000_000_000.0)]
    assert ids == sorted(ids)


def test_ids_of_one_instant_differ_and_have_one_length() -> None:
    ids = {new_id("turn_", 1_700_000_000.0) for _ in range(1_000)}
    assert len(ids) == 1_000
    assert {len(text) for text in ids} == {len("turn_") + 26}


def test_an_id_is_known_by_its_form() -> None:
    file_id, batch_id = new_id("file-", 1_700_000_000.0), new_id("batch_", 1_700_000_000.0)
    assert is_made_id(file_id, "file-")
    assert is_made_id(output_id(batch_id, "a1"), "file-")
    assert is_made_id(errors_id(batch_id, "a1"), "file-")


@pytest.mark.parametrize("text", ["", "file-", "nope", "file-abc", f"batch_{'0' * 26}", f"file-{'U' * 26}", "0" * 31])
def test_what_nobody_made_is_no_id(text: str) -> None:
    assert not is_made_id(text, "file-")


def test_seeds_fit_into_a_signed_word_and_differ() -> None:
    seeds = {new_seed() for _ in range(100)}
    assert len(seeds) == 100
    assert all(0 <= seed < 2**63 for seed in seeds)
