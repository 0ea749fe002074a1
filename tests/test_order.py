"""Tests run in the order they are asked to."""

import random

from tests import durations
from tests.order import chosen_seed, ordered

WRITTEN = [(file, f"{file}::{number}") for file in ("a.py", "b.py", "c.py", "d.py") for number in range(6)]
ALL = [test for _, test in WRITTEN]


def test_without_a_seed_tests_stand_as_they_are_written() -> None:
    assert chosen_seed({}) is None
    assert ordered(WRITTEN, None) == ALL


def test_a_seed_gives_one_order_of_all_tests() -> None:
    assert ordered(WRITTEN, 7) == ordered(WRITTEN, 7)
    assert ordered(WRITTEN, 7) != ordered(WRITTEN, 8)
    assert sorted(ordered(WRITTEN, 7)) == ALL
    assert ordered(WRITTEN, 7) != ALL


def test_a_files_tests_stay_together_and_run_alone_as_they_ran_among_others() -> None:
    whole = ordered(WRITTEN, 7)
    of_b = [test for test in whole if test.startswith("b.py")]
    first = whole.index(of_b[0])
    assert whole[first : first + 6] == of_b
    assert ordered([each for each in WRITTEN if each[0] == "b.py"], 7) == of_b


def test_the_longest_files_come_first_and_are_shuffled_within() -> None:
    longest = next(iter(durations.known()))
    tests = [*WRITTEN, *((f"tests/{longest}", str(number)) for number in range(9))]
    assert sorted(ordered(tests, 7)[:9]) == [str(number) for number in range(9)]
    assert ordered(tests, 7)[:9] != [str(number) for number in range(9)]


def test_of_two_long_files_the_longer_one_comes_first() -> None:
    seconds = {f"tests/{name}": taken for name, taken in durations.known().items()}
    taken = [seconds[name] for name in ordered([(name, name) for name in sorted(seconds)], 7)]
    assert taken == sorted(taken, reverse=True)


def test_a_random_seed_is_another_each_time() -> None:
    seeds = {chosen_seed({"TEST_SEED": "random"}) for _ in range(8)}
    assert len(seeds) > 1
    assert chosen_seed({"TEST_SEED": "7"}) == 7


def test_the_seed_of_a_commit_is_the_same_each_time() -> None:
    seeds = {chosen_seed({"TEST_SEED": "commit"}) for _ in range(2)}
    assert len(seeds) == 1
    assert seeds != {None}


def test_the_order_leaves_the_global_generator_alone() -> None:
    random.seed(1)
    expected = random.random()
    random.seed(1)
    ordered(WRITTEN, 7)
    assert random.random() == expected
