"""Every command in README, in docs/ and on the pages can be typed, or its block says why it is not run here.

Flags of ``axon`` are read by its own parser; targets of ``make``, modules and routes must be there. For anything else a
block says ``<!-- not run: why -->``; the commands in it that can be checked are checked all the same.
"""

import re

import pytest

from tests.docs.blocks import Block, Command, blocks, commands, of_page, of_ui, pages
from tests.docs.checks import UNKNOWN, problem

COMMAND = re.compile(r"\$ |(curl|axon|make|python|kubectl|helm|pip) \w")


@pytest.mark.parametrize("block", [*blocks(), *of_ui()], ids=str)
def test_every_command_of_a_block_can_be_typed_or_is_marked(block: Block) -> None:
    for command in commands(block.text):
        wrong = problem(command)
        if wrong == UNKNOWN and block.why_not_run:
            continue
        assert wrong is None, f"{block}: `{' '.join(command.words)}`: {wrong}"


def test_a_block_of_commands_says_that_it_is_one() -> None:
    """Else nobody looks at what is in it."""
    unnamed = [(name, block) for name, text in pages() for block in text.split("```")[1::2] if block.startswith("\n")]
    assert [(name, block) for name, block in unnamed if COMMAND.match(block.lstrip())] == []


def test_a_mark_is_needed_where_it_stands() -> None:
    """Else it would hide what becomes wrong later."""
    needless = [
        str(block)
        for block in blocks()
        if block.why_not_run and not any(problem(command) == UNKNOWN for command in commands(block.text))
    ]
    assert not needless


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("axon serve --model x --processes 2", None),
        ("axon serve --no-such-flag", "--no-such-flag"),
        ("axon no-such-command", "no command no-such-command"),
        ("axon keys create --scope nobody", "nobody is none of"),
        ("axon tenants show", "needs"),
        ("axon tenants show acme too many", "takes no"),
        ("axon serve --set engine.no_such=1", "engine.no_such is no setting"),
        ("AXON_NO_SUCH=1 axon serve", "AXON_NO_SUCH is no setting"),
        ("export AXON_NO_SUCH=1", "AXON_NO_SUCH is no setting"),
        ("make serve", None),
        ("make no-such-target", "no target no-such-target"),
        ("make fleet FLEET_ARGS=--no-such-flag", "has no --no-such-flag"),
        ("make bench-path BENCH_ARGS=--save", None),
        ("make bench-path BENCH_ARGS=--readers=7", None),
        ("make bench BENCH_ARGS=--no-such-flag", "has no --no-such-flag"),
        ("make bench-scaling BENCH_ARGS=--readers=7", "benchmarks.scaling has no --readers"),
        ("python -m tests.faults --list", None),
        ("python -m tests.no_such", "no module tests.no_such"),
        ("python -m tests.faults --no-such-flag", "has no --no-such-flag"),
        ("python -c 'import axon.no_such'", "no module axon.no_such"),
        ("curl http://127.0.0.1:8000/v1/models", None),
        ("curl http://127.0.0.1:8000/v1/no-such", "no route GET /v1/no-such"),
        ("curl -X DELETE http://127.0.0.1:8000/v1/models", "no route DELETE /v1/models"),
        ("pip install 'axon-serving[no_such]'", "no extra no_such"),
        ("scripts/no-such", "scripts/no-such is not there"),
        ("kubectl get pods", UNKNOWN),
    ],
)
def test_what_is_wrong_is_noticed(text: str, wrong: str | None) -> None:
    (command,) = commands(text)
    found = problem(command)
    assert found == wrong or (wrong and wrong in (found or ""))


def test_the_commands_of_a_block_are_found() -> None:
    text = "$ A=1 one \\\n    --two # a comment\noutput\n$ three $(four | five) > six; seven\n"
    page = f"<!-- not run: a reason -->\n```console\n{text}```\n"
    (block,) = of_page("a.md", page)
    assert block.why_not_run == "a reason"
    assert list(commands(block.text)) == [
        Command(words=("one", "--two"), assigned=("A=1",)),
        Command(words=("four",)),
        Command(words=("five",)),
        Command(words=("three", "SUBSTITUTED")),
        Command(words=("seven",)),
    ]
