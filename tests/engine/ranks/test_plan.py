"""A step as a message: what the ranks read is what was planned, and it stays small."""

from dataclasses import replace

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from axon.engine.batch import Batch
from axon.engine.copies import Copies, Load, Save
from axon.engine.ranks.plan import PlanReader, PlanWriter, copies_of, moves_of
from axon.engine.ranks.protocol import Moves, Plan
from tests.engine.builders import make_add, make_drawn, make_scheduler


def over_the_wire(plan: Plan) -> Plan:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(plan), type=Plan)


def stripped(batch: Batch) -> Batch:
    """Without what only the leading rank needs."""
    return Batch(tuple(replace(span, id="", draw=None, scores=()) for span in batch.spans))


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 60)), min_size=1, max_size=6), st.integers(8, 40))
def test_what_is_read_is_what_was_planned_whatever_is_parked_or_ends(
    lengths: list[tuple[int, int]], blocks: int
) -> None:
    scheduler = make_scheduler(blocks=max(blocks, 30), max_batch_tokens=24)
    writer, reader = PlanWriter(), PlanReader()
    for index, (prompt, output) in enumerate(lengths):
        is_scored = index % 2 == 1
        add = make_add(
            str(index), prompt=[index] * prompt, max_tokens=output, prompt_logprobs=is_scored, ignore_eos=True
        )
        scheduler.add(add)
    while scheduler.has_work:
        batch = scheduler.schedule()
        read = reader.read(over_the_wire(writer.write(batch)))
        assert stripped(read) == stripped(batch)
        assert [span.draw is None for span in read.spans] == [span.draw is None for span in batch.spans]
        assert read.output_rows == batch.output_rows
        scheduler.settle(batch, make_drawn(*[7] * len(batch.draws)))


def test_copies_are_read_as_they_were_planned() -> None:
    loads = (
        Load(id="a", arrival=1, admission=2, first=0, end=8, slots=(3, 4), block_ids=(7, 8)),
        Load(id="b", arrival=2, admission=1, first=4, end=8, slots=(9,), block_ids=(1,)),
    )
    planned = Copies(loads, (Save(5, 6), Save(2, 0)))
    read = copies_of(msgspec.msgpack.decode(msgspec.msgpack.encode(moves_of(planned)), type=Moves))
    assert [(load.slots, load.block_ids) for load in read.loads] == [((3, 4, 9), (7, 8, 1))]
    assert read.saves == planned.saves
    assert copies_of(moves_of(Copies())) == Copies()


def test_blocks_that_were_told_are_not_told_again() -> None:
    scheduler = make_scheduler(blocks=400, max_batch_tokens=1100)
    writer = PlanWriter()
    scheduler.add(make_add(prompt=800, max_tokens=190, ignore_eos=True))
    sizes = []
    for _ in range(150):
        batch = scheduler.schedule()
        sizes.append(len(msgspec.msgpack.encode(writer.write(batch))))
        scheduler.settle(batch, make_drawn(7))
    assert sizes[0] > 900
    assert max(sizes[1:]) < 40, "a decode is a few numbers, however long its past"
