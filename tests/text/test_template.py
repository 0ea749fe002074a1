"""What a chat template says of its model."""

from axon.text.template import ChatTemplate


def test_a_template_that_knows_a_block_of_thinking_says_so() -> None:
    assert ChatTemplate("{{ messages[0].content.split('</think>')[-1] }}").reasons
    assert not ChatTemplate("{{ messages[0].content }}").reasons
