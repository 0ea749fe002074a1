"""Makes, bounds and compiles the grammar of one task. Knows no process and no client."""

import json
import time

from axon.errors import InvalidInput
from axon.text.compiler.messages import Result, Task
from axon.text.grammar import Grammar, client_grammar, regex_grammar
from axon.text.grammar_check import GrammarCheck
from axon.text.schema_bounds import SchemaRefused, check_schema, too_long

NOT_COMPILED = "it could not be compiled"


def compiled(task: Task, check: GrammarCheck) -> Result:
    """Returns whether the task's grammar can be used, and the grammar itself where it was made here."""
    began = time.thread_time()
    made = ""
    try:
        if task.kind == "schema":
            _check_bounds(task.text)
        if task.kind in ("regex", "rules"):
            made = (regex_grammar if task.kind == "regex" else client_grammar)(task.text).text
        problem = too_long(made) or check.problem(Grammar(made or task.text, task.form))
    except InvalidInput as error:
        problem = error.message
    except RecursionError:
        problem = "it is nested too deeply"
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic of the compiler is no Exception; its words may be the client's
        problem = NOT_COMPILED
    return Result(problem=problem, made=made, cpu_s=time.thread_time() - began)


def _check_bounds(text: str) -> None:
    """Raises ``SchemaRefused`` if to compile the schema could cost too much."""
    try:
        schema = json.loads(text)["json_schema"]
    except RecursionError:
        raise SchemaRefused("it is nested too deeply") from None
    schema.pop("x-guidance", None)  # our own options
    check_schema(schema)
