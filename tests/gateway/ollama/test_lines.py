"""Lines of an answer: text as it comes, calls whole, times in nanoseconds, errors as Ollama has them."""

import json
from typing import Any

from axon.domain.billing.ledger import Ledger
from axon.domain.content.tool_call import CallPiece
from axon.domain.log.chunk import Chunk, Details, End, Token
from axon.domain.reply import ChatReply
from axon.errors import Overloaded
from axon.gateway.ollama.lines import Writer, time_text, whole_body
from tests.contracts.builders import make_job

JOB = make_job("chatcmpl-1", reply=ChatReply(model="m"))
LEDGER = Ledger(queue_s=0.5, prefill_s=0.25, decode_s=1.0, attempts=1)
CALLS = Details(calls=(CallPiece(index=0, name="f", arguments='{"x":'), CallPiece(index=0, arguments="1}")))
CHUNKS = [
    Chunk(first=1, epoch=1, tokens=(Token(0, 1, "", Details(reasoning="hm")), Token(0, 2, "hé"))),
    Chunk(first=3, epoch=1, tokens=(Token(0, 3, "", CALLS),)),
    Chunk(
        first=4, epoch=1, tokens=(Token(0, 4, "!"),), ends=(End(0, "length", 4),), terminal="completed", ledger=LEDGER
    ),
]


def written(generates: bool = False, chunks: list[Chunk] = CHUNKS) -> list[dict[str, Any]]:
    writer = Writer(JOB, generates=generates, with_logprobs=False)
    data = writer.opening() + b"".join(writer.frames(chunk) for chunk in chunks)
    return [json.loads(line) for line in data.splitlines()]


def test_a_chat_is_text_then_calls_then_the_end() -> None:
    first, second, calls, last = written()
    assert first["message"] == {"role": "assistant", "content": "hé", "thinking": "hm"}
    assert second["message"]["content"] == "!"
    assert calls["message"]["tool_calls"] == [{"function": {"name": "f", "arguments": {"x": 1}}}]
    assert [line["done"] for line in (first, second, calls, last)] == [False, False, False, True]
    assert (last["done_reason"], last["eval_count"]) == ("length", 4)
    assert (last["total_duration"], last["load_duration"]) == (1_750_000_000, 500_000_000)
    assert (last["prompt_eval_duration"], last["eval_duration"]) == (250_000_000, 1_000_000_000)


def test_the_whole_answer_is_its_lines_put_together() -> None:
    whole = whole_body(JOB, CHUNKS, generates=False, with_logprobs=False)
    *_, calls, last = written()
    assert whole == {**last, "message": {"role": "assistant", "content": "hé!", "thinking": "hm", **_calls(calls)}}
    assert written(generates=True)[0]["response"] == "hé"


def _calls(line: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": line["message"]["tool_calls"]}


def test_an_error_is_a_line_of_its_own() -> None:
    failed = Chunk(first=1, epoch=1, terminal="failed", code="engine_died", message="It died.")
    assert written(chunks=[failed]) == [{"error": "It died."}]
    assert json.loads(Writer(JOB, generates=True, with_logprobs=False).error(Overloaded()))["error"]


def test_times_are_utc() -> None:
    assert time_text(0.5) == "1970-01-01T00:00:00.500000Z"
