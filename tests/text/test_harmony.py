"""Harmony's channels are told apart by control tokens, wherever the text is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llguidance import LLMatcher, LLTokenizer
from tokenizers import AddedToken
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from axon.domain.content.tool import CallMode, Tool, Toolbox, ToolChoice
from axon.domain.content.tool_call import TOOL_CALLS
from axon.domain.sampling import Sampling
from axon.engine.protocol.messages import Emitted
from axon.sessions.prompt import Prompts, Threads
from axon.text.grammar import regex_grammar
from axon.text.harmony import HARMONY, has_marks, is_harmony
from axon.text.template import ChatTemplate
from axon.text.tokenizer import ByteTokenizer, HFTokenizer
from axon.text.tools.formats import CallFormat, CallSplitter, marks_of
from axon.text.tools.grammar import call_grammar
from axon.worker.job.choice import Choice

MARKS = ["<|return|>", "<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>"]
TEMPLATE = "{% for message in messages %}<|start|>{{ message.role }}<|message|>{{ message.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|start|>assistant{# <|channel|>analysis #}{% endif %}"  # noqa: E501


def make_rust_tokenizer() -> RustTokenizer:
    alphabet = {letter: id for id, letter in enumerate(sorted(ByteLevel.alphabet()))}
    tokenizer = RustTokenizer(BPE(vocab=alphabet, merges=[]))
    tokenizer.pre_tokenizer, tokenizer.decoder = ByteLevel(add_prefix_space=False), ByteLevelDecoder()
    tokenizer.add_special_tokens([AddedToken(mark, special=True) for mark in MARKS])
    return tokenizer


TOKENIZER = HFTokenizer(make_rust_tokenizer())


def ids_of(answer: str) -> list[int]:
    return TOKENIZER.encode(answer, parse_special=True)


def read(ids: list[int], stop: tuple[str, ...] = ()) -> tuple[str, str, str]:
    """Answer, reasoning and finish reason."""
    choice = Choice(index=0, sampling=Sampling(max_tokens=1, stop=stop), tokenizer=TOKENIZER, reasoning=HARMONY)
    for place, id in enumerate(ids):
        choice.push(Emitted(id="a", token=id, finish="stop" if place + 1 == len(ids) else None))
        if choice.reason:
            break
    tokens = list(choice.waiting)
    return "".join(token.text for token in tokens), "".join(token.reasoning for token in tokens), choice.reason


HEAD = "<|channel|>final<|message|>"
CASES = [
    (
        f"<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant{HEAD}Hello!<|return|>",
        "Hello!",
        "Let me see.",
    ),
    (f"{HEAD}Hello!<|return|>", "Hello!", ""),
    (f"{HEAD}Hel", "Hel", ""),
    ("<|channel|>analysis<|message|>I th", "", "I th"),
    ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b<|end|>", "", "ab"),
    ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>fin", "", "a"),
    (f"<|channel|>commentary<|message|>First,<|end|><|start|>assistant{HEAD} yes.<|return|>", "First, yes.", ""),
    ("<|channel|>analysis <|constrain|>json<|message|>so<|end|>", "", "so"),
    ("<|channel|>commentary to=functions.f<|message|>{}<|call|>", "{}", ""),  # nobody has offered tools
    ("<|message|>Hello<|return|>", "Hello", ""),
    ("Hello", "Hello", ""),
    ("H" * 300 + "!", "H" * 300 + "!", ""),
    (f"{HEAD}für 5 €<|return|>", "für 5 €", ""),
]


@pytest.mark.parametrize(("answer", "text", "thinking"), CASES)
def test_analysis_is_reasoning_and_the_rest_is_the_answer(answer: str, text: str, thinking: str) -> None:
    assert read(ids_of(answer)) == (text, thinking, "stop")


THOUGHT = "<|channel|>analysis<|message|>Rain?<|end|><|start|>assistant"
SPOKEN = "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant"
TO = "<|channel|>commentary to=functions.get_weather "
ARGUMENTS = '{"city": "Köln", "a": "}"}'
CALLS = [
    (
        f"{THOUGHT}{TO}<|constrain|>json<|message|>{ARGUMENTS}<|call|>",
        "",
        "Rain?",
        [("get_weather", ARGUMENTS)],
        TOOL_CALLS,
    ),
    (f"{TO}<|message|>{ARGUMENTS}<|call|>", "", "", [("get_weather", ARGUMENTS)], TOOL_CALLS),
    (
        f"{THOUGHT} to=functions.get_weather<|channel|>commentary json<|message|>{ARGUMENTS}<|call|>",
        "",
        "Rain?",
        [("get_weather", ARGUMENTS)],
        TOOL_CALLS,
    ),
    (
        f"{THOUGHT}{SPOKEN}{TO}json<|message|>{{}}<|end|><|start|>assistant{TO}<|message|>{{}}<|call|>",
        "I look.",
        "Rain?",
        [("get_weather", "{}"), ("get_weather", "{}")],
        TOOL_CALLS,
    ),
    (f"{TO}<|message|>no object<|call|>", "no object", "", [], "stop"),
    (f"{TO}<|message|>", "", "", [], "stop"),
    ("<|channel|>commentary to=python<|message|>{}<|call|>", "{}", "", [], "stop"),
    ("<|channel|>final<|message|>to=functions.f {}<|return|>", "to=functions.f {}", "", [], "stop"),
    (f"{THOUGHT}{HEAD}Rain.<|return|>", "Rain.", "Rain?", [], "stop"),
]


def called(
    ids: list[int], stop: tuple[str, ...] = (), max_calls: int = 0
) -> tuple[str, str, list[tuple[str, str]], str]:
    """Answer, reasoning, calls and finish reason of a request that offers tools."""
    calls = CallSplitter("harmony", marks_of(CallFormat.HARMONY, TOKENIZER), max_calls=max_calls)
    sampling = Sampling(max_tokens=1, stop=stop)
    choice = Choice(index=0, sampling=sampling, tokenizer=TOKENIZER, reasoning=HARMONY, calls=calls)
    for place, id in enumerate(ids):
        choice.push(Emitted(id="a", token=id, finish="stop" if place + 1 == len(ids) else None))
        if choice.reason:
            break
    tokens = list(choice.waiting)
    found: dict[int, tuple[str, str]] = {}
    for piece in (piece for token in tokens if token.details for piece in token.details.calls):
        name, arguments = found.get(piece.index, ("", ""))
        found[piece.index] = (name + piece.name, arguments + piece.arguments)
    said, thought = ("".join(getattr(token, name) for token in tokens) for name in ("text", "reasoning"))
    return said, thought, list(found.values()), choice.reason


@pytest.mark.parametrize(("answer", "text", "thinking", "calls", "reason"), CALLS)
def test_messages_to_functions_are_calls(
    answer: str, text: str, thinking: str, calls: list[tuple[str, str]], reason: str
) -> None:
    assert called(ids_of(answer)) == (text, thinking, calls, reason)


def test_one_call_is_enough_where_there_may_be_one_and_stop_strings_do_not_see_headers() -> None:
    answer = f"{TO}<|message|>{{}}<|end|><|start|>assistant{TO}<|message|>{{}}<|call|>"
    assert called(ids_of(answer), max_calls=1) == ("", "", [("get_weather", "{}")], TOOL_CALLS)
    assert called(ids_of(CALLS[0][0]), stop=("functions", "message"))[2] == [("get_weather", ARGUMENTS)]


@pytest.mark.parametrize("mode", [CallMode.REQUIRED, CallMode.AUTO])
@pytest.mark.parametrize("marks", [MARKS, [each for each in MARKS if each != "<|constrain|>"]])
def test_calls_follow_their_schemas_by_a_grammar_with_headers_of_its_own(marks: list[str], mode: CallMode) -> None:
    vocabulary = LLTokenizer(make_rust_tokenizer().to_str(), eos_token=[ids_of("<|call|>")[0]])
    ids = {mark: id for mark, id in marks_of(CallFormat.HARMONY, TOKENIZER).items() if mark in marks}
    tool = Tool(name="f", parameters='{"properties": {"n": {"type": "integer"}}, "required": ["n"]}', strict=True)
    toolbox = Toolbox(tools=(tool,), choice=ToolChoice(mode=mode))
    grammar = call_grammar(toolbox, CallFormat.HARMONY, ids).after(HARMONY)

    def is_allowed(answer: str) -> bool:
        matcher = LLMatcher(vocabulary, grammar, log_level=0)
        assert not matcher.is_error(), matcher.get_error()
        return matcher.validate_tokens(ids_of(answer)) == len(ids_of(answer))

    constrain = "<|constrain|>" if "<|constrain|>" in marks else ""
    for thought in ("", THOUGHT):
        head = f"{thought}<|channel|>commentary to=functions.f {constrain}json<|message|>"
        assert is_allowed(head + '{"n":1}')
        assert not is_allowed(head + '{"n":"1"}')
        assert is_allowed(f"{thought}{HEAD}Hello") == (mode is CallMode.AUTO)
        assert not is_allowed(f"{thought}<|channel|>commentary to=functions.g ")


def test_an_answer_is_a_call_or_text_of_the_form_that_is_asked_for() -> None:
    vocabulary = LLTokenizer(make_rust_tokenizer().to_str(), eos_token=[ids_of("<|call|>")[0]])
    marks = marks_of(CallFormat.HARMONY, TOKENIZER)
    toolbox = Toolbox(tools=(Tool(name="f"),), choice=ToolChoice(mode=CallMode.AUTO))
    grammar = call_grammar(toolbox, CallFormat.HARMONY, marks, form=regex_grammar("[0-9]{2}")).after(HARMONY)
    call = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}"
    for answer, is_allowed in ((call, True), (f"{HEAD}42", True), (f"{HEAD}4x", False), (f"{THOUGHT}{HEAD}42", True)):
        matcher = LLMatcher(vocabulary, grammar, log_level=0)
        assert (matcher.validate_tokens(ids_of(answer)) == len(ids_of(answer))) == is_allowed, answer
    calls = CallSplitter("harmony", marks, formed=True)
    choice = Choice(index=0, sampling=Sampling(max_tokens=1), tokenizer=TOKENIZER, reasoning=HARMONY, calls=calls)
    for id in ids_of(call + "<|call|>"):
        choice.push(Emitted(id="a", token=id, finish="stop" if id == ids_of("<|call|>")[0] else None))
    assert (choice.reason, calls.has_calls) == (TOOL_CALLS, True)


def test_marks_that_are_written_out_are_text() -> None:
    written = TOKENIZER.encode("<|channel|>analysis<|message|>", parse_special=False)
    assert read([*ids_of(HEAD), *written]) == ("<|channel|>analysis<|message|>", "", "stop")


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        ("anal", ("Hello!", "Let me see.", "stop")),
        ("llo", ("He", "Let me see.", "stop")),
        ("me", ("", "Let ", "stop")),
        ("see.Hel", ("Hello!", "Let me see.", "stop")),
        ("see..", ("Hello!", "Let me see.", "stop")),
    ],
)
def test_stop_strings_are_found_within_a_body_and_not_in_headers(stop: str, expected: tuple[str, str, str]) -> None:
    assert read(ids_of(CASES[0][0]), stop=(stop,)) == expected


@given(st.lists(st.sampled_from([*MARKS, "analysis", "final", " ", "Hi", "€", "<|end|"]), max_size=12))
def test_nothing_is_said_twice_and_no_mark_is_said(words: list[str]) -> None:
    text, thinking, _ = read(ids_of("".join(words)) or [0])
    said = "".join(word for word in words if word not in MARKS) if words else text
    assert len(text) + len(thinking) <= len(said)
    assert not any(mark in text or mark in thinking for mark in MARKS)


def test_a_template_of_the_format_with_its_control_tokens_gives_the_mode() -> None:
    template = ChatTemplate(TEMPLATE)
    assert template.reasons
    assert is_harmony(TEMPLATE)
    assert has_marks(TOKENIZER)
    prompts = Prompts(TOKENIZER, template, max_model_len=100, threads=Threads())
    assert prompts.reasoning(ids_of("<|start|>assistant")) == HARMONY
    plain = Prompts(ByteTokenizer(), template, max_model_len=100, threads=Threads())
    assert plain.reasoning([65]) == "text"


@pytest.mark.parametrize("thought", ["", "<|channel|>analysis<|message|>so\nwhat?<|end|><|start|>assistant"])
def test_a_grammar_begins_with_the_body_of_the_answer(thought: str) -> None:
    vocabulary = LLTokenizer(make_rust_tokenizer().to_str(), eos_token=[ids_of("<|return|>")[0]])
    grammar = regex_grammar("[0-9]{2}").after(HARMONY)

    def num_allowed(answer: str) -> int:
        matcher = LLMatcher(vocabulary, grammar, log_level=0)
        assert not matcher.is_error(), matcher.get_error()
        return int(matcher.validate_tokens(ids_of(answer)))

    whole = f"{thought}{HEAD}42"
    assert num_allowed(whole) == len(ids_of(whole))
    assert num_allowed(f"{thought}{HEAD}4x") == len(ids_of(whole)) - 1
    assert num_allowed("42") == 0
