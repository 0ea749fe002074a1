"""No bag of strings crosses a package: a signature that another package uses has no ``dict[str, Any]`` in it.

A public function, or a public method or field of a public class, counts as used by another package when a module of
another top-level package of ``axon`` imports it by name, or imports its module as a whole.
"""

import ast
import functools
from collections.abc import Collection, Iterator
from pathlib import Path

import axon

ROOT = Path(axon.__file__).parent
BAGS = ("dict[str, Any]", "Mapping[str, Any]")
KEPT = "extra"
"""A field of this name holds fields of a later release as they came."""
_SCHEMA = "a client's JSON schema, as it came"
_MANIFEST = "an object of Kubernetes, as its API server has it"
ALLOWED: dict[str, str] = {
    "axon.adapters.launch.kubernetes_api.KubernetesApi.create": _MANIFEST,
    "axon.adapters.launch.kubernetes_api.KubernetesApi.get": _MANIFEST,
    "axon.adapters.launch.kubernetes_api.KubernetesApi.list": _MANIFEST,
    "axon.adapters.launch.kubernetes_api.KubernetesApi.patch": _MANIFEST,
    "axon.text.tools.grammar.ANY": _SCHEMA,
    "axon.text.tools.grammar.call_grammar": _SCHEMA,
    "axon.text.tools.grammar.schema_of": _SCHEMA,
    "axon.sessions.grammars.TenantGrammars.schema": _SCHEMA,
    "axon.text.grammar.schema_grammar": _SCHEMA,
    "axon.text.schema_bounds.check_schemas": _SCHEMA,
}
"""``module.name`` of an exception, and the reason: user metadata, headers, metric labels."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def module_of(path: Path) -> str:
    parts = ("axon", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def used_elsewhere(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """By module, the names that other packages import from it; ``*`` where one imports the module itself."""
    used: dict[str, set[str]] = {}
    for importer, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    module, name = (whole, "*") if whole in trees else (node.module, alias.name)
                    if module in trees and package_of(module) != package_of(importer):
                        used.setdefault(module, set()).add(name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name in trees and package_of(alias.name) != package_of(importer):
                        used.setdefault(alias.name, set()).add("*")
    return used


def signatures(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr | None]]:
    """Each public name in a module or class, with each annotation that belongs to it."""
    for node in body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.annotation
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            rest = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest):
                yield node.name, argument.annotation
            yield node.name, node.returns
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for name, annotation in signatures(node.body):
                yield f"{node.name}.{name}", annotation


def bag_names(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """By module, the names that stand for a bag there, made there or imported: ``Schema = Mapping[str, Any]``."""
    made = {
        module: {
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript) and has_bag(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for module, tree in trees.items()
    }
    return {
        module: made[module]
        | {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if alias.name in made.get(node.module or "", ())
        }
        for module, tree in trees.items()
    }


def has_bag(annotation: ast.expr | None, names: Collection[str] = ()) -> bool:
    if annotation is None:
        return False
    used = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
    return not used.isdisjoint(names) or any(bag in ast.unparse(annotation) for bag in BAGS)


def is_public(name: str) -> bool:
    last = name.rpartition(".")[2]
    return last != KEPT and (not last.startswith("_") or last in ("__init__", "__call__"))


@functools.cache
def bags() -> set[str]:
    trees = {module_of(path): ast.parse(path.read_text()) for path in ROOT.rglob("*.py")}
    used, names_of_bags = used_elsewhere(trees), bag_names(trees)
    return {
        f"{module}.{name}"
        for module, names in used.items()
        for name, annotation in signatures(trees[module].body)
        if ("*" in names or name.partition(".")[0] in names)
        and is_public(name)
        and has_bag(annotation, names_of_bags[module])
    }


def test_no_signature_that_another_package_uses_has_a_bag_of_strings() -> None:
    assert bags() - ALLOWED.keys() == set()


def test_every_exception_is_still_needed() -> None:
    assert ALLOWED.keys() - bags() == set()


def test_a_bag_of_strings_is_found_in_arguments_results_methods_and_fields() -> None:
    source = """
def take(bag: dict[str, Any]) -> None: ...
async def give() -> list[Mapping[str, Any]] | None: ...
class Thing:
    field: dict[str, Any]
    extra: Mapping[str, Any]
    def method(self, *, bag: Sequence[dict[str, Any]]) -> None: ...
    def fine(self, headers: Mapping[str, str]) -> None: ...
    def by_name(self, schema: Schema | None) -> None: ...
    def rest(self, **bags: dict[str, Any]) -> None: ...
Schema = Mapping[str, Any]
"""
    tree = ast.parse(source)
    names = bag_names({"module": tree, "other": ast.parse("from module import Schema as Form, Thing")})
    found = {name for name, each in signatures(tree.body) if is_public(name) and has_bag(each, names["module"])}
    assert names == {"module": {"Schema"}, "other": {"Form"}}
    assert found == {"take", "give", "Thing.field", "Thing.method", "Thing.by_name", "Thing.rest"}
