"""A whole message: Anthropic's fields, and tokens as Anthropic counts them."""

from axon.domain.log.chunk import Chunk, End, Token
from axon.domain.reply import MessagesReply
from axon.gateway.anthropic.message import message_body
from tests.contracts.builders import make_job

JOB = make_job("msg_1", reply=MessagesReply(model="small"))


def test_a_message_has_what_anthropics_has() -> None:
    tokens = (Token(0, 1, "Hi"), Token(0, 2, "!"))
    chunk = Chunk(first=1, epoch=1, tokens=tokens, ends=(End(0, "length"),), terminal="completed", cached=2)
    assert message_body(JOB, [chunk]) == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "small",
        "content": [{"type": "text", "text": "Hi!"}],
        "stop_reason": "max_tokens",
        "stop_sequence": None,
        "usage": {
            "input_tokens": JOB.num_prompt_tokens - 2,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 2,
            "output_tokens": 2,
            "service_tier": "standard",
        },
    }


def test_an_answer_that_the_budget_cut_off_says_so() -> None:
    last = Chunk(first=1, epoch=1, ends=(End(0, "length"),), terminal="completed", code="insufficient_quota")
    assert message_body(JOB, [last])["axon"] == {"stopped": "budget"}
