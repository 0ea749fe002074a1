"""Prompts: templates render, and nobody but the template writes a control token."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.errors import InvalidInput, Misconfigured, Unsupported
from axon.text.chat import ChatEncoder
from axon.text.template import DEFAULT_TEMPLATE, ChatTemplate, load_template, require_template
from axon.text.tokenizer import ByteTokenizer
from tests.text.builders import CHATML, CONTROL, make_tokenizer

TOKENIZER = make_tokenizer()
CHAT = ChatEncoder(TOKENIZER, ChatTemplate(CHATML))

fragments = st.lists(
    st.one_of(st.text(max_size=5), st.sampled_from([*CONTROL, "<|im_", "end|>", "\U000f0000", "\U000f0001"])),
    max_size=8,
).map("".join)


def user(content: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": content}]


@given(st.text())
def test_ordinary_text_gets_the_usual_ids(content: str) -> None:
    usual = TOKENIZER.encode(ChatTemplate(CHATML).render(user(content)), parse_special=True)
    assert CHAT.encode(user(content)) == usual


@given(fragments, fragments)
def test_what_somebody_wrote_never_becomes_a_control_token(role: str, content: str) -> None:
    ids = CHAT.encode([{"role": role, "content": content}])
    assert [id for id in ids if id < len(CONTROL)] == [1, 2, 1]
    assert TOKENIZER.decode(ids) == f"{role}\n{content}\nassistant\n"


def test_parts_and_tools_are_guarded_too() -> None:
    source = "{% for part in messages[0].content %}{{ part.text }}{% endfor %}{{ tools | tojson }}"
    chat = ChatEncoder(TOKENIZER, ChatTemplate(source))
    ids = chat.encode(
        [{"role": "user", "content": [{"type": "text", "text": "<|im_end|>"}]}], tools=[{"name": "<|im_start|>"}]
    )
    assert not set(ids) & {0, 1, 2}
    assert TOKENIZER.decode(ids) == '<|im_end|>[{"name": "<|im_start|>"}]'


def test_the_byte_tokenizer_has_a_template_of_its_own() -> None:
    chat = ChatEncoder(ByteTokenizer(), ChatTemplate(DEFAULT_TEMPLATE))
    assert bytes(chat.encode(user("hi"))) == b"user: hi\nassistant:"


def test_a_template_that_raises_makes_the_input_invalid() -> None:
    template = ChatTemplate("{{ raise_exception('roles must alternate') }}")
    with pytest.raises(InvalidInput, match="roles must alternate"):
        template.render(user("hi"))


@pytest.mark.parametrize("source", ["{{ messages[5].content + 1 }}", "{{ messages[0].content + 1 }}", "{{ 1 / 0 }}"])
def test_a_template_that_breaks_makes_the_input_invalid(source: str) -> None:
    with pytest.raises(InvalidInput):
        ChatTemplate(source).render(user("hi"))


@pytest.mark.parametrize("source", ["{{ ''.__class__.__mro__[1].__subclasses__() }}", "{{ messages.append(1) }}"])
def test_a_template_cannot_leave_its_sandbox(source: str) -> None:
    with pytest.raises(InvalidInput):
        ChatTemplate(source).render(user("hi"))


def test_a_template_that_cannot_be_parsed_is_a_misconfiguration() -> None:
    with pytest.raises(Misconfigured):
        ChatTemplate("{% for %}")


def test_blocks_leave_no_blank_lines_and_loops_can_break() -> None:
    source = "{% for m in messages %}\n  {% if loop.index > 1 %}{% break %}{% endif %}\n{{ m.content }}\n{% endfor %}\n"
    assert ChatTemplate(source).render([*user("one"), *user("two")]) == "one\n"


def test_a_folder_may_keep_its_template_in_a_file_or_in_its_tokenizer_config(tmp_path: Path) -> None:
    assert load_template(tmp_path) is None
    with pytest.raises(Unsupported):
        require_template(load_template(tmp_path))
    config = {"chat_template": "{{ bos_token }}old", "bos_token": {"content": "<s>"}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert require_template(load_template(tmp_path)).render([]) == "<s>old"
    named = [{"name": "tool_use", "template": "no"}, {"name": "default", "template": "named"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": named}))
    assert require_template(load_template(tmp_path)).render([]) == "named"
    (tmp_path / "chat_template.jinja").write_text("file{{ bos_token }}")
    assert require_template(load_template(tmp_path)).render([]) == "file"
