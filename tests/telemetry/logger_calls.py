"""Every call of a logger in the source, read from its syntax tree."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "axon"
LEVEL_OF = {name: name for name in ("debug", "info", "warning", "error")} | {"exception": "error"}
FORWARDERS = {
    "gateway/admin/bodies.py": {"note"},
    "gateway/admin/models/rollouts.py": {"_stepped"},
    "control/rollouts.py": {"_write"},
}
"""Functions that are given an event's name and write it: calls of them are checked as calls of a logger are."""
IDS = frozenset({"turn", "tenant_id", "session_id", "trace_id", "attempt"})
"""The fields that ``**about(job)`` adds."""


@dataclass(frozen=True)
class Said:
    """One way in which a line of the source writes an event."""

    where: str
    event: str
    level: str | None
    """None where the function that writes it decides."""
    fields: frozenset[str]


@dataclass(frozen=True)
class Odd:
    """A call that the rules do not allow."""

    where: str
    why: str


def calls() -> Iterator[Said | Odd]:
    """Every call of a logger, and of a function that forwards to one."""
    for path in sorted(SOURCE.rglob("*.py")):
        yield from _calls_in(str(path.relative_to(SOURCE)), ast.parse(path.read_text("utf-8")))


def _calls_in(name: str, tree: ast.Module) -> Iterator[Said | Odd]:
    forwards = FORWARDERS.get(name, set()) | (FORWARDERS["gateway/admin/bodies.py"] if "/admin/" in name else set())
    own = FORWARDERS.get(name, set())
    inside = {
        id(call)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and function.name in own
        for call in ast.walk(function)
        if isinstance(call, ast.Call)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Assign)
            and name != "telemetry/logs.py"
            and _makes_logger(node.value)
            and _target(node) not in _NAMES
        ):
            yield Odd(f"{name}:{node.lineno}", f"a logger is named one of {sorted(_NAMES)}")
        if not isinstance(node, ast.Call):
            continue
        where = f"{name}:{node.lineno}"
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr in {*LEVEL_OF, "critical", "warn", "log"}:
            if ast.unparse(called.value) in _NAMES:
                yield from _of_logger(where, node, called.attr, is_forwarder=id(node) in inside)
        elif (ast.unparse(called).split(".")[-1]) in forwards and id(node) not in inside:
            yield from _of_forwarder(where, node)


_NAMES = {"_logger", "self._logger", "logger", "_LOGGER"}


def _makes_logger(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in {"structlog.get_logger", "logging.getLogger"}


def _target(node: ast.Assign) -> str:
    return ast.unparse(node.targets[0])


def _of_logger(where: str, node: ast.Call, method: str, *, is_forwarder: bool) -> Iterator[Said | Odd]:
    level = LEVEL_OF.get(method)
    if level is None:
        yield Odd(where, f"'{method}' is no level of ours")
        return
    if where.startswith("engine/"):
        yield from _of_engine(where, node, level)
        return
    names = list(_names(node.args[0])) if len(node.args) == 1 else []
    if is_forwarder and not names:
        return
    if not names:
        yield Odd(where, "an event's name is the only positional argument, and a literal")
    fields = _fields(where, node)
    if isinstance(fields, Odd):
        yield fields
    else:
        yield from (Said(where, name, level, fields) for name in names)


def _of_engine(where: str, node: ast.Call, level: str) -> Iterator[Said | Odd]:
    """The engine knows no structlog: it writes sentences by the standard library and names their events beside."""
    for keyword in node.keywords:
        if keyword.arg == "extra" and isinstance(keyword.value, ast.Dict):
            [value] = keyword.value.values
            yield from (Said(where, name, level, frozenset()) for name in _names(value))
            return
    yield Odd(where, "a line of the engine names its event by extra={'axon_event': ...}")


def _of_forwarder(where: str, node: ast.Call) -> Iterator[Said | Odd]:
    names = [name for each in node.args for name in _names(each) if "." in name]
    fields = _fields(where, node)
    if isinstance(fields, Odd):
        yield fields
    elif len(names) == 1:
        yield Said(where, names[0], None, fields)
    elif names or not isinstance(node.args[1], ast.Name):
        yield Odd(where, "one argument is an event's name, and a literal")


def _names(value: ast.expr) -> Iterator[str]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.IfExp):
        yield from _names(value.body)
        yield from _names(value.orelse)


def _fields(where: str, node: ast.Call) -> "frozenset[str] | Odd":
    found = set()
    for keyword in node.keywords:
        if keyword.arg is not None:
            found.add(keyword.arg)
        elif isinstance(keyword.value, ast.Call) and ast.unparse(keyword.value.func) == "about":
            found |= IDS
        else:
            return Odd(where, f"the fields of **{ast.unparse(keyword.value)} cannot be read here: write them out")
    return frozenset(found - {"exc_info"})
