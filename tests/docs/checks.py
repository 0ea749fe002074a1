"""Whether a command of the documentation can be typed: its flags, target, module or route are there. Runs none."""

import ast
import importlib.util
import re
import tomllib
from collections.abc import Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

import typer

from axon import cli
from axon.gateway.http.scopes import NEEDED
from axon.settings import describe
from tests.docs.blocks import INNER, REPOSITORY, Command

SHELL = frozenset({"export", "cd", ".", "cat", "echo", "ls", "head", "tail", "sed", "mkdir", "cp", "sleep"})
"""What needs no proof."""
_OURS = re.compile(
    r"^(https?://)?(127\.0\.0\.1(:\d+)?|localhost(:\d+)?|api\.example\.com|gpu-box:8000|\$\{?(AXON_)?URL\}?)(?=/)"
)
_TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)
_RECIPE = re.compile(r"^([a-z][a-z-]*):(.*\n(?:\t.*\n)*)", re.MULTILINE)
_MODULE = re.compile(r"-m ([\w.]+) \$\((\w+)\)")
_SHARED_OPTIONS = re.compile(r"^from ([\w.]+) import [^\n]*\badd_\w+_options\b", re.MULTILINE)
"""Matches an import of options that several programs share; the group is their module."""
_NAMES_OF_CLIENTS = frozenset({"AXON_API_KEY", "AXON_URL", "AXON_CONFIG"})
_BODY = frozenset({"-d", "--data", "--data-binary", "--data-raw", "--json", "-F", "--form"})
_WITH_VALUE = frozenset({"-H", "--header", "-u", "--user", "-o", "--output", "--max-time"})


def problem(command: Command) -> str | None:
    """What is wrong with a command; None if it is right; ``UNKNOWN`` if nothing here can tell."""
    wrong = next(filter(None, map(_of_assignment, [*command.assigned, *_exported(command.words)])), None)
    if wrong or not command.words:
        return wrong
    name, *arguments = command.words
    name = name.removeprefix(".venv/bin/")
    if name in SHELL:
        return None
    if name in ("python", "python3"):
        return _of_python(arguments)
    check = {"axon": _of_axon, "make": _of_make, "curl": _of_curl, "pip": _of_pip}.get(name)
    if check:
        return check(arguments)
    if name.startswith(("scripts/", "deploy/")):
        return None if (REPOSITORY / name).is_file() else f"{name} is not there"
    return UNKNOWN


UNKNOWN = "nothing here tells whether it is right"


def _exported(words: tuple[str, ...]) -> list[str]:
    return [word for word in words[1:] if "=" in word] if words and words[0] == "export" else []


def _of_assignment(assigned: str) -> str | None:
    name = assigned.partition("=")[0]
    if not name.startswith("AXON_") or name.startswith("AXON_EDGE_") or name in _NAMES_OF_CLIENTS:
        return None
    return None if name in _variables() else f"{name} is no setting"


def _of_axon(arguments: list[str]) -> str | None:
    """Goes down the real commands, then reads the flags as they do."""
    command = _axon()
    context = command.context_class(command, info_name="axon")
    while hasattr(command, "commands"):
        if not arguments or arguments[0].startswith("-"):
            return None if arguments in (["--help"], ["--version"]) else f"axon {command.name} needs a command"
        if arguments[0] not in command.commands:
            return f"axon {command.name} has no command {arguments[0]}"
        command = command.commands[arguments[0]]
        context = command.context_class(command, info_name=arguments[0], parent=context)
        arguments = arguments[1:]
    return _of_flags(command, context, [word for word in arguments if word != "…"], is_whole="…" not in arguments)


def _of_flags(command: Any, context: Any, arguments: list[str], *, is_whole: bool) -> str | None:
    try:
        values, rest, _ = command.make_parser(context).parse_args(list(arguments))
    except typer.TyperException as error:
        return f"axon {command.name}: {error.format_message()}"
    if rest:
        return f"axon {command.name} takes no {' '.join(rest)}"
    for parameter in command.params:
        value = values.get(parameter.name)
        if is_whole and parameter.required and value in (None, (), []):
            return f"axon {command.name} needs {parameter.display_name_raw}"
        choices = _choices(parameter.type_descriptor.annotation)
        given = [each for each in (value if isinstance(value, list | tuple) else [value]) if isinstance(each, str)]
        wrong = [each for each in given if choices and each not in choices and not _stands_for_something(each)]
        if wrong:
            return f"axon {command.name}: {wrong[0]} is none of {', '.join(choices)}"
    settings = [each.partition("=")[0] for each in values.get("set_") or []]
    return next((f"{name} is no setting" for name in settings if name not in _settings()), None)


def _choices(annotation: Any) -> list[str]:
    """What a parameter takes, if it takes some words only."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [str(each.value) for each in annotation]
    return [choice for inner in get_args(annotation) for choice in _choices(inner)]


def _stands_for_something(word: str) -> bool:
    return word.isupper() or word.startswith("$") or "…" in word or word == INNER


def _of_make(arguments: list[str]) -> str | None:
    text = (REPOSITORY / "Makefile").read_text()
    targets, recipes = set(_TARGET.findall(text)), dict(_RECIPE.findall(text))
    asked = "".join(_with_prerequisites(word, recipes) for word in arguments)
    for word in arguments:
        name, given, value = word.partition("=")
        if not given and word not in targets:
            return f"make has no target {word}"
        if given and f"$({name})" not in text and f"$(or $({name})" not in text:
            return f"the Makefile has no {name}"
        if given and (module := next((found[1] for found in _MODULE.finditer(asked) if found[2] == name), None)):
            return _flags_of(module, value.split())
    return None


def _with_prerequisites(target: str, recipes: Mapping[str, str]) -> str:
    """The recipe of a target, and of those that it needs; empty for a word that is no target."""
    recipe = recipes.get(target, "")
    needed = recipe.partition("\n")[0].partition("##")[0].split()
    return recipe + "".join(_with_prerequisites(each, recipes) for each in needed)


def _of_python(arguments: list[str]) -> str | None:
    match arguments:
        case ["-m", "venv" | "zipfile" | "pip", *_]:
            return None
        case ["-m", "pytest", *paths]:
            missing = [path for path in paths if "/" in path and not (REPOSITORY / path.partition("::")[0]).exists()]
            return f"{missing[0]} is not there" if missing else None
        case ["-m", module, *flags]:
            return _flags_of(module, flags) if importlib.util.find_spec(module) else f"there is no module {module}"
        case ["-c", code]:
            return next(filter(None, map(_of_import, ast.walk(ast.parse(code)))), None)
        case [script, *flags] if (REPOSITORY / script).is_file():
            return _unknown_flag((REPOSITORY / script).read_text(), script, flags)
    return UNKNOWN


def _of_import(node: ast.AST) -> str | None:
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    foreign = [name for name in names if not name.startswith("axon")]
    if foreign:
        return UNKNOWN
    return next((f"there is no module {name}" for name in names if importlib.util.find_spec(name) is None), None)


def _flags_of(module: str, flags: list[str]) -> str | None:
    return _unknown_flag(_source_of(module), module, flags)


def _source_of(module: str) -> str:
    """The source of a module or of all modules of a package, and of those whose options it shares."""
    spec = importlib.util.find_spec(module)
    assert spec is not None, module
    assert spec.origin is not None, module
    of_package = Path(spec.origin).parent.rglob("*.py") if spec.submodule_search_locations else [Path(spec.origin)]
    source = "".join(path.read_text() for path in of_package)
    return source + "".join(_source_of(shared) for shared in set(_SHARED_OPTIONS.findall(source)) - {module})


def _unknown_flag(source: str, name: str, words: list[str]) -> str | None:
    flags = [word.partition("=")[0] for word in words if word.startswith("--")]
    return next((f"{name} has no {flag}" for flag in flags if f'"{flag}"' not in source), None)


def _of_curl(arguments: list[str]) -> str | None:
    method, url, words = "GET", "", iter(arguments)
    for word in words:
        if word in ("-X", "--request"):
            method = next(words)
        elif word in _BODY:
            method = "POST" if method == "GET" else method
            next(words)
        elif word in _WITH_VALUE:
            next(words)
        elif not word.startswith("-"):
            url = word
    ours = _OURS.match(url)
    if ours is None:
        return UNKNOWN
    path = urlsplit(url[ours.end() :]).path
    found = any(_is_of(route, method, path) for route in NEEDED)
    return None if found else f"there is no route {method} {path}"


def _is_of(route: str, method: str, path: str) -> bool:
    takes, _, template = route.partition(" ")
    pattern = re.sub(r"\{[^}]*:path\}", ".+", template)
    return takes == method and re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", pattern), path) is not None


def _of_pip(arguments: list[str]) -> str | None:
    """Of our package and its extras something can be said; and of the default model."""
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for word in arguments:
        ours = re.fullmatch(r"axon-serving(?:\[([\w,]+)\])?", word)
        missing = set(filter(None, (ours[1] or "").split(","))) - set(extras) if ours else set()
        if missing:
            return f"axon-serving has no extra {', '.join(sorted(missing))}"
        if ours or f"DEFAULT_MODEL := {word}\n" in (REPOSITORY / "Makefile").read_text():
            return None
    return UNKNOWN


@cache
def _axon() -> Any:
    return typer.main.get_command(cli.app)


@cache
def _settings() -> frozenset[str]:
    return frozenset(each.name for each in describe())


@cache
def _variables() -> frozenset[str]:
    return frozenset(f"AXON_{name.replace('.', '_').upper()}" for name in _settings())
