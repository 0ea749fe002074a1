"""A server whose engine plays the part of a model that calls tools: what it says depends on its prompt alone."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.journeys.server import Server, running


def call(name: str, **arguments: object) -> str:
    """A call in the words of the format that a model without a template for tools is taught; its arguments are compact,
    as grammars of calls have them."""
    written = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    return f'<tool_call>\n{{"name": "{name}", "arguments": {written}}}\n</tool_call>'


RESULT = r"<tool_response>\n"
SCRIPT = [
    # An agent's loop: two calls at once, one that depends on them, then the answer.
    (r"book the warmer.*booked: Rome", "Rome is booked."),
    (rf"book the warmer.*{RESULT}.*{RESULT}", "Rome is warmer.\n" + call("book", city="Rome")),
    (
        "book the warmer",
        "I look at both.\n" + call("get_weather", city="Paris") + "\n" + call("get_weather", city="Rome"),
    ),
    (rf"weather in Zürich.*{RESULT}", "It is sunny in Zürich."),
    ("weather in Zürich", call("get_weather", city="Zürich")),
    ("broken call", '<tool_call>\n{"name": get_weather}\n</tool_call> sorry'),
    (r'"name": "final_result".*a City, please', call("final_result", city="Rome")),
    ("a City, please", call("City", city="Rome")),
    (rf"weather in Bern.*{RESULT}", '{"city":"Bern","degrees":24}'),
    ("weather in Bern", call("get_weather", city="Bern")),
    ("only words", "I need no tool."),
]


@contextmanager
def scripted(folder: Path, **settings: object) -> Iterator[Server]:
    """The server, with the script above."""
    path = folder / "script.json"
    path.write_text(json.dumps([{"if": pattern, "say": text} for pattern, text in SCRIPT]))
    with running(folder / "data", engine_kind="echo", engine_echo_script=path, **settings) as server:
        yield server
