"""The wait for the first token of each turn of a conversation, with its blocks found again and without."""

from axon.engine.core import EngineCore
from benchmarks.measures.drive import Driver, make_prompt_ids
from benchmarks.measures.svg import Point


def turns(
    engine: EngineCore,
    *,
    num_turns: int,
    ask_tokens: int,
    answer_tokens: int,
    vocab_size: int,
    reuse: bool,
    round_number: int,
) -> list[Point]:
    """Milliseconds to the first token by turn; without reuse each turn comes as another tenant's."""
    driver = Driver(engine)
    context: list[int] = []
    points: list[Point] = []
    name = f"{'reuse' if reuse else 'recompute'}-{round_number}"
    for turn in range(1, num_turns + 1):
        id = f"{name}-{turn}"
        # What is said is the same both ways; only whose it is differs.
        context += make_prompt_ids(f"ask-{round_number}-{turn}", ask_tokens, vocab_size)
        driver.add(id, list(context), answer_tokens, tenant=name if reuse else id)
        driver.finish()
        context += driver.tokens[id]
        points.append((float(turn), 1000 * driver.ttft_s(id)))
    return points
