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
CODING = [
    # What a coding agent does with a folder: look, count, answer. Their tools have names of their own.
    (rf"how many notes.*{RESULT}.*three.*{RESULT}", "There are 3 notes."),
    (rf'"name": "exec_command".*how many notes.*{RESULT}', call("exec_command", cmd="wc -l < notes.txt")),
    (r'"name": "exec_command".*how many notes', "I look.\n" + call("exec_command", cmd="cat notes.txt")),
    (rf'"name": "Bash".*how many notes.*{RESULT}', call("Bash", command="wc -l < notes.txt", description="Counts")),
    (r'"name": "Bash".*how many notes', "I look.\n" + call("Read", file_path="notes.txt")),
]
CODING_CONTEXT = 131_072
"""Tokens of context that coding agents need: their own instructions are 50,000 of the byte tokenizer's."""
SCRIPT = [
    *CODING,
    # An agent's loop: two calls at once, one that depends on them, then the answer.
    (r"book the warmer.*booked: Rome", "Rome is booked."),
    (rf"book the warmer.*{RESULT}.*{RESULT}", "Rome is warmer.\n" + call("book", city="Rome")),
    (
        "book the warmer",
        "I look at both.\n" + call("get_weather", city="Paris") + "\n" + call("get_weather", city="Rome"),
    ),
    (rf"weather in Zürich.*{RESULT}", "It is sunny in Zürich."),
    ("weather in Zürich", call("get_weather", city="Zürich")),
    ("weather like in San Francisco", call("get_weather", location="San Francisco, CA")),
    (rf"who is customer 7.*{RESULT}", "Customer 7 is Ada."),
    ("who is customer 7", call("crm.look_up", number=7)),
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
    chosen = {"engine_kind": "echo", "engine_echo_script": path, "engine_max_model_len": CODING_CONTEXT, **settings}
    with running(folder / "data", **chosen) as server:
        yield server
