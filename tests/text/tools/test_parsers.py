"""The parsers of tool calls: the same findings wherever the text is cut, and nothing lost."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.text.tools.formats import CallFormat, CallSplitter
from axon.text.tools.tape import Said

Found = tuple[str, list[tuple[str, str]]]
HERMES, LLAMA, PYTHONIC = CallFormat.HERMES, CallFormat.LLAMA_JSON, CallFormat.PYTHONIC
MISTRAL, CODER = CallFormat.MISTRAL, CallFormat.QWEN3_CODER

WEATHER = '{"city": "Paris", "days": [1, {"a": "}]\\""}]}'
CODER_CALL = """<tool_call>
<function=f>
<parameter=city>
Paris "x"
</parameter>
<parameter=days>
3
</parameter>
</function>
</tool_call>"""
CASES: list[tuple[CallFormat, str, str, list[tuple[str, str]]]] = [
    (HERMES, "Hello <b> there\n", "Hello <b> there\n", []),
    (HERMES, f'<tool_call>\n{{"name": "f", "arguments": {WEATHER}}}\n</tool_call>', "", [("f", WEATHER)]),
    (
        HERMES,
        'Look:\n\n<tool_call>{"name":"f","arguments":{}}</tool_call>\n<tool_call>\n'
        '{"name": "g", "parameters": {"a": 1}}\n</tool_call>\n',
        "Look:",
        [("f", "{}"), ("g", '{"a": 1}')],
    ),
    (HERMES, '<tool_call>{"arguments": {"a": 1}, "name": "f"}</tool_call>', "", [("f", '{"a": 1}')]),
    (HERMES, '<tool_call>{"name": "f"}</tool_call> and', " and", [("f", "{}")]),
    (HERMES, '<tool_call>{"name": "f", "arguments": {"a": 1}, "id": "}"}</tool_call>', "", [("f", '{"a": 1}')]),
    (HERMES, '<tool_call>{"name": "f", "arguments": {"a": "half', "", [("f", '{"a": "half')]),
    (HERMES, '<tool_call>{"name": "f", "argu', '<tool_call>{"name": "f", "argu', []),
    (HERMES, "the tag <tool_call> is\nmeant", "the tag <tool_call> is\nmeant", []),
    (HERMES, '<tool_call>{"nam": 1}</tool_call>!', '<tool_call>{"nam": 1}</tool_call>!', []),
    (HERMES, "a < b <tool", "a < b <tool", []),
    (LLAMA, f'{{"name": "f", "parameters": {WEATHER}}}', "", [("f", WEATHER)]),
    (LLAMA, '{"type": "function", "name": "f", "parameters": {}}', "", [("f", "{}")]),
    (LLAMA, '{"name": "f", "parameters": {}}; {"name": "g", "arguments": {}}', "", [("f", "{}"), ("g", "{}")]),
    (LLAMA, '{"answer": 42}', '{"answer": 42}', []),
    (LLAMA, 'Text {"name": "f", "parameters": {}}', 'Text {"name": "f", "parameters": {}}', []),
    (LLAMA, '{"name": "f", "parameters": {"a": ', "", [("f", '{"a": ')]),
    (PYTHONIC, "[f(city='Pa\\'ris', n=-1), g()]", "", [("f", '{"city": "Pa\'ris", "n": -1}'), ("g", "{}")]),
    (PYTHONIC, '[f-x(a=[1, {"k": None}], b=true)]\n', "", [("f-x", '{"a": [1, {"k": null}], "b": true}')]),
    (PYTHONIC, "[f(a=1, b='ha", "", [("f", '{"a": 1')]),
    (PYTHONIC, "[f(a='ha", "", [("f", "{")]),
    (PYTHONIC, "[see(the docs, please)] ok", "[see(the docs, please)] ok", []),
    (PYTHONIC, "[link](there)", "[link](there)", []),
    (PYTHONIC, "No list", "No list", []),
    (
        MISTRAL,
        '[TOOL_CALLS][{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}]',
        "",
        [("f", '{"a": 1}'), ("g", "{}")],
    ),
    (MISTRAL, f"Well. [TOOL_CALLS]f{WEATHER}[TOOL_CALLS]g{{}}", "Well.", [("f", WEATHER), ("g", "{}")]),
    (MISTRAL, '[TOOL_CALLS] [{"arguments": {"a": 1}, "name": "f"}]', "", [("f", '{"a": 1}')]),
    (MISTRAL, "[TOOL_CALLS] but no call", "[TOOL_CALLS] but no call", []),
    (MISTRAL, '[TOOL_CALLS][{"x": 1}] rest', '[TOOL_CALLS][{"x": 1}] rest', []),
    (CODER, CODER_CALL, "", [("f", '{"city": "Paris \\"x\\"", "days": 3}')]),
    (
        CODER,
        "I look.\n" + CODER_CALL.replace("<tool_call>\n", ""),
        "I look.",
        [("f", '{"city": "Paris \\"x\\"", "days": 3}')],
    ),
    (CODER, "<tool_call>\n<function=f>\n</function>\n</tool_call>", "", [("f", "{}")]),
    (CODER, "<tool_call>\n<function=f>\n<parameter=city>\nPa\nri", "", [("f", '{"city": "Pa\\nri')]),
    (CODER, "<tool_call> in words", "<tool_call> in words", []),
    (CODER, "<function= in words", "<function= in words", []),
]


def joined(said: list[Said]) -> Found:
    calls: list[tuple[str, str]] = []
    for each in said:
        for piece in each.calls:
            assert bool(piece.name) == (piece.index == len(calls)), "a call's name is on its first piece alone"
            if piece.name:
                calls.append((piece.name, ""))
            name, arguments = calls[piece.index]
            calls[piece.index] = name, arguments + piece.arguments
    return "".join(each.text for each in said), calls


def split(format: CallFormat, pieces: list[str], *, max_calls: int = 0) -> Found:
    splitter = CallSplitter(format, {}, max_calls=max_calls, text_parameters=("f/city",))
    return joined([*map(splitter.push, pieces), splitter.flush()])


def cut(text: str, cuts: list[int]) -> list[str]:
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@pytest.mark.parametrize(("format", "text", "answer", "calls"), CASES)
def test_calls_are_told_from_text(format: CallFormat, text: str, answer: str, calls: list[tuple[str, str]]) -> None:
    assert split(format, [text]) == (answer, calls)
    assert split(format, list(text)) == (answer, calls)


@given(st.sampled_from(CASES), st.data())
def test_the_findings_do_not_depend_on_the_cuts(
    case: tuple[CallFormat, str, str, list[tuple[str, str]]], data: st.DataObject
) -> None:
    format, text, answer, calls = case
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    assert split(format, cut(text, cuts)) == (answer, calls)


WORDS = [
    "<tool_call>",
    "</tool_call>",
    '{"name": "f", "arguments": ',
    '{"name": "f", "parameters": {',
    "[TOOL_CALLS]",
    "[",
    "]",
    "{",
    "}",
    '"',
    "\\",
    "f(",
    "a=1",
    ",",
    ")",
    "<function=f>",
    "</function>",
    "<parameter=city>",
    "<parameter=n>",
    "</parameter>",
    "é",
    " ",
    "\n",
    ";",
    "x",
]


@given(st.sampled_from(list(CallFormat)), st.lists(st.sampled_from(WORDS), max_size=20), st.data())
def test_nonsense_gives_the_same_findings_wherever_it_is_cut(
    format: CallFormat, words: list[str], data: st.DataObject
) -> None:
    text = "".join(words)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    assert split(format, cut(text, cuts)) == split(format, [text])
    assert split(format, list(text)) == split(format, [text])


@given(st.sampled_from([HERMES, MISTRAL, CODER]), st.text(alphabet='abc <>[]{}"\n', max_size=40))
def test_text_without_a_call_stays_as_it_is(format: CallFormat, text: str) -> None:
    assert split(format, list(text)) == (text, [])


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from([HERMES, LLAMA, MISTRAL]), st.dictionaries(st.text(max_size=6), values, max_size=4), st.data())
def test_every_object_of_arguments_comes_out_as_it_was_written(
    format: CallFormat, arguments: dict[str, object], data: st.DataObject
) -> None:
    written = json.dumps(arguments, ensure_ascii=data.draw(st.booleans()))
    text = {
        HERMES: f'<tool_call>\n{{"name": "f", "arguments": {written}}}\n</tool_call>',
        LLAMA: f'{{"name": "f", "parameters": {written}}}',
        MISTRAL: f"[TOOL_CALLS]f{written}",
    }[format]
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    assert split(format, cut(text, cuts)) == ("", [("f", written)])


def test_arguments_are_passed_on_as_they_come() -> None:
    splitter = CallSplitter(HERMES, {})
    splitter.push('<tool_call>{"name": "f", "arguments": {"a": "')
    assert [splitter.push(word).calls[0].arguments for word in ("one", " two")] == ["one", " two"]


def test_a_choice_ends_with_the_last_call_that_it_may_have() -> None:
    text = '<tool_call>{"name": "f", "arguments": {}}</tool_call>' * 2
    for pieces in ([text], list(text)):
        assert split(HERMES, pieces, max_calls=1) == ("", [("f", "{}")])


def test_a_control_token_is_known_by_its_id_and_its_words_are_text() -> None:
    splitter = CallSplitter(MISTRAL, {"[TOOL_CALLS]": 5})
    assert joined([splitter.push("[TOOL_CALLS]f{} "), splitter.push(splitter.mark(5) + "g"), splitter.push("{}")]) == (
        "[TOOL_CALLS]f{}",
        [("g", "{}")],
    )


def test_call_ids_of_mistral_s_newest_format_are_skipped() -> None:
    splitter = CallSplitter(MISTRAL, {"[TOOL_CALLS]": 5, "[CALL_ID]": 6, "[ARGS]": 7})
    pieces = [splitter.mark(5), "get", "_x", splitter.mark(6), "abcDEF123", splitter.mark(7), '{"a"', ": 1}"]
    assert joined([splitter.push(piece) for piece in pieces]) == ("", [("get_x", '{"a": 1}')])
