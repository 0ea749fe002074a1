"""Who is let in next, where vLLM serves what it has as it likes."""

from axon.engine.schedule.policy import Fair, FirstCome
from axon.engine.vllm.door import Door
from tests.engine.builders import make_add


def let_in_all(door: Door) -> list[str]:
    """Those let in while slots are free."""
    ids = []
    while (add := door.let_in()) is not None:
        ids.append(add.id)
    return ids


def test_no_more_are_let_in_than_there_are_slots() -> None:
    door = Door(2, Fair())
    for number in range(5):
        door.arrive(make_add(str(number)))
    assert let_in_all(door) == ["0", "1"]
    assert door.leave(["1"]) == ["1"]
    assert let_in_all(door) == ["2"]


def test_slots_are_shared_out_by_tenant_not_by_how_much_it_asks() -> None:
    door = Door(4, Fair())
    for number in range(10):
        door.arrive(make_add(f"a{number}", tenant="a"))
    door.arrive(make_add("b0", tenant="b"))
    door.arrive(make_add("b1", tenant="b"))
    assert sorted(id[0] for id in let_in_all(door)) == ["a", "a", "b", "b"]


def test_a_free_slot_goes_to_the_tenant_that_was_served_least() -> None:
    door = Door(1, Fair())
    door.arrive(make_add("a0", tenant="a"))
    assert let_in_all(door) == ["a0"]
    door.arrive(make_add("a1", tenant="a"))
    door.arrive(make_add("b0", tenant="b"))
    door.charge("a0", prefilled=10, cached=0, emitted=50)
    door.leave(["a0"])
    assert let_in_all(door) == ["b0"]


def test_a_weight_counts_and_a_reserve_goes_first() -> None:
    door = Door(4, Fair())
    for number in range(8):
        door.arrive(make_add(f"a{number}", tenant="a"))
        door.arrive(make_add(f"b{number}", tenant="b", weight=3.0))
    assert sorted(id[0] for id in let_in_all(door)) == ["a", "b", "b", "b"]
    reserved = Door(4, Fair())
    for number in range(8):
        reserved.arrive(make_add(f"a{number}", tenant="a", weight=100.0))
    reserved.arrive(make_add("b", tenant="b", reserved=0.25))
    assert "b" in let_in_all(reserved)


def test_a_higher_priority_goes_before_every_share_and_an_interrupted_stream_before_its_own_priority() -> None:
    door = Door(1, Fair())
    door.arrive(make_add("a", tenant="a"))
    door.arrive(make_add("again", tenant="b", interrupted=True))
    door.arrive(make_add("urgent", tenant="c", priority=1))
    order = []
    while door.waiting:
        (id,) = let_in_all(door)
        order.append(id)
        door.leave([id])
    assert order == ["urgent", "again", "a"]


def test_first_come_is_first_served_where_the_policy_says_so() -> None:
    door = Door(2, FirstCome())
    for id, tenant in (("a0", "a"), ("a1", "a"), ("b0", "b")):
        door.arrive(make_add(id, tenant=tenant))
    assert let_in_all(door) == ["a0", "a1"]


def test_who_left_while_waiting_is_forgotten_and_strangers_are_ignored() -> None:
    door = Door(1, Fair())
    door.arrive(make_add("a"))
    assert door.leave(["a", "nobody"]) == []
    assert let_in_all(door) == []
