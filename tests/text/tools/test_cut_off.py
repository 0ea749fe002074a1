"""Answers that end within a call, at every place: no part of a call's marks is ever text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.text.tools.formats import CallFormat, CallSplitter
from tests.text.tools.test_parsers import CODER_CALL, WORDS, Found, cut, joined

HERMES, LLAMA, PYTHONIC = CallFormat.HERMES, CallFormat.LLAMA_JSON, CallFormat.PYTHONIC
MISTRAL, CODER = CallFormat.MISTRAL, CallFormat.QWEN3_CODER

ARGUMENTS = '{"city": "Pa<r", "days": [1, {"a": "}]\\""}]}'
BEFORE = "I look < here.\n"
JSON_CALL = f'{{"name": "f", "arguments": {ARGUMENTS}}}'
CALLS: list[tuple[CallFormat, str, str]] = [
    (HERMES, BEFORE, f"<tool_call>\n{JSON_CALL}\n</tool_call>\n<tool_call>{JSON_CALL}</tool_call>\n"),
    (HERMES, BEFORE, '<tool_call>{"arguments": {"a": 1}, "name": "f"}\n</tool_call>'),
    (HERMES, "", f'<tool_call>{JSON_CALL[:-1]}, "id": "x"}}</tool_call>'),
    (LLAMA, "", f'{JSON_CALL} ; {{"type": "function", "name": "g", "parameters": {{}}}}'),
    (PYTHONIC, "", '[f(city="Pa<r", days=[1, {"a": ")]"}]), g(), h(a = 1)]'),
    (MISTRAL, BEFORE, f'[TOOL_CALLS] [{JSON_CALL}, {{"arguments": {{}}, "name": "g"}}, {JSON_CALL} ]'),
    (MISTRAL, BEFORE, f"[TOOL_CALLS]f{ARGUMENTS}[TOOL_CALLS]g{{}}"),
    (CODER, BEFORE, f"{CODER_CALL}\n{CODER_CALL}\n"),
    (CODER, BEFORE, CODER_CALL.removeprefix("<tool_call>\n")),
]


def found_in(format: CallFormat, pieces: list[str], *, cut_off: bool) -> Found:
    splitter = CallSplitter(format, {}, text_parameters=("f/city",))
    return joined([*map(splitter.push, pieces), splitter.flush(cut_off=cut_off)])


@pytest.mark.parametrize(("format", "before", "calls"), CALLS)
def test_calls_that_are_cut_off_anywhere_leave_no_mark_in_the_text(format: CallFormat, before: str, calls: str) -> None:
    _, whole = found_in(format, [before + calls], cut_off=False)
    for end in range(len(calls) + 1):
        text, found = found_in(format, [before + calls[:end]], cut_off=True)
        assert text.rstrip() == before.rstrip(), calls[:end]
        for (name, arguments), (of_name, of_arguments) in zip(found, whole, strict=False):
            assert name == of_name
            assert of_arguments.startswith(arguments), calls[:end]
        assert found_in(format, [*(before + calls[:end])], cut_off=True) == (text, found)


@pytest.mark.parametrize(("format", "before", "calls"), CALLS)
def test_a_part_of_a_mark_behind_a_call_is_no_text_wherever_the_model_ends(
    format: CallFormat, before: str, calls: str
) -> None:
    _, whole = found_in(format, [before + calls], cut_off=False)
    for end in range(len(calls) + 1):
        text, found = found_in(format, [before + calls[:end]], cut_off=False)
        if len(found) == len(whole):
            assert text == before.rstrip(), calls[:end]


@given(st.sampled_from(list(CallFormat)), st.lists(st.sampled_from(WORDS), max_size=20), st.data())
def test_what_is_left_of_nonsense_does_not_depend_on_the_cuts(
    format: CallFormat, words: list[str], data: st.DataObject
) -> None:
    text = "".join(words)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    assert found_in(format, cut(text, cuts), cut_off=True) == found_in(format, [text], cut_off=True)


@given(st.sampled_from([HERMES, MISTRAL, CODER]), st.text(alphabet='abc >]{}"\n', max_size=40))
def test_text_that_begins_no_call_is_kept_when_it_is_cut_off(format: CallFormat, text: str) -> None:
    assert found_in(format, [*text], cut_off=True) == (text, [])


@pytest.mark.parametrize(
    ("format", "text", "answer"),
    [
        (HERMES, "a < b <tool", "a < b "),
        (HERMES, "the tag <tool_call> is", "the tag <tool_call> is"),
        (LLAMA, '{"answer": 4', '{"answer": 4'),
        (PYTHONIC, "[see](the docs", "[see](the docs"),
        (PYTHONIC, "[see(the docs", "[see(the docs"),
        (MISTRAL, '[TOOL_CALLS][{"x": 1}] res', '[TOOL_CALLS][{"x": 1}] res'),
        (CODER, "<tool_call> in wo", "<tool_call> in wo"),
    ],
)
def test_only_what_may_begin_a_call_is_left_out(format: CallFormat, text: str, answer: str) -> None:
    assert found_in(format, [text], cut_off=True) == (answer, [])
    assert found_in(format, [text], cut_off=False) == (text, [])


def test_a_form_beside_tools_is_told_as_far_as_it_is_none_of_a_call() -> None:
    for text, answer in (('{"n', ""), ('{"number":4', '{"number":4')):
        splitter = CallSplitter(LLAMA, {}, formed=True)
        assert joined([splitter.push(text), splitter.flush(cut_off=True)]) == (answer, [])
