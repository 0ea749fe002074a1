"""What the AWS provider accepts: resources, their attributes and blocks, read from the bindings made of its schema.

The provider's binary is on no package index; CDK for Terraform's bindings for it are, and every attribute is in them
with its type. They do not say which optional attributes the provider also computes; ``COMPUTED_TOO`` has those that our
modules read.
"""

import re
from dataclasses import dataclass, field

COMPUTED_TOO = {"id", "arn", "tags_all"}

_SIMPLE: dict[str, str] = {"string": "string", "number": "number", "boolean": "bool", "any": "dynamic"}
_GETTERS: dict[str, object] = {
    "getStringAttribute": "string",
    "getNumberAttribute": "number",
    "getBooleanAttribute": "bool",
    "getListAttribute": ["list", "string"],
    "getNumberListAttribute": ["list", "number"],
    "getStringMapAttribute": ["map", "string"],
    "getNumberMapAttribute": ["map", "number"],
    "getBooleanMapAttribute": ["map", "bool"],
}
_CLASS = re.compile(r"^class (\w+) extends cdktf\.\w+ \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FUNCTION = re.compile(r"^function (\w+)ToHclTerraform\(struct\) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r'(\w+): \{\s+value: (.*),\s+isBlock: (true|false),\s+type: "(\w+)",\s+storageClassType: "(\w+)"')
_GETTER = re.compile(r"get (\w+)\(\) \{\s+return (?P<set>cdktf\.Fn\.tolist\()?this\.(get\w+)\('(\w+)'\)")
_NESTED = re.compile(r"computed: (true|false), .*? required: (true|false)\s+this\._\w+ = new (\w+)\(this, \"(\w+)\"")
_ONLY_READ = re.compile(r"// (\w+) - computed: true, optional: false, required: false\s+get (\w+)\(\)")
_TYPE = re.compile(r"terraformResourceType: '(\w+)'")


@dataclass
class Attribute:
    """One attribute: its type, and who sets it."""

    type: object
    """As Terraform writes it in JSON: ``"string"``, ``["list", "string"]``, ``["object", {...}]``."""
    required: bool = False
    optional: bool = False
    computed: bool = False


@dataclass
class Nested:
    """A block within a block."""

    block: "Block"
    nesting: str
    """``list``, ``set`` or ``single``."""
    least: int = 0
    most: int = 0


@dataclass
class Block:
    """What a resource, a data source, the provider or a block of them consists of."""

    attributes: dict[str, Attribute] = field(default_factory=dict)
    blocks: dict[str, Nested] = field(default_factory=dict)


def _firewall_statement() -> Nested:
    """What a rule of the firewall looks for: the bindings have no types for it, so that these are written by hand."""
    none = Nested(Block(), "list", most=1)
    actions = Block(blocks=dict.fromkeys(("allow", "block", "captcha", "challenge", "count"), none))
    text, needed = Attribute(type="string", optional=True), Attribute(type="string", required=True)
    override = Block(attributes={"name": needed}, blocks={"action_to_use": Nested(actions, "list", least=1, most=1)})
    managed = Block(
        attributes={"name": needed, "vendor_name": needed, "version": text},
        blocks={"rule_action_override": Nested(override, "list", most=100)},
    )
    limit = Attribute(type="number", required=True)
    seconds = Attribute(type="number", optional=True)
    rate = Block(attributes={"limit": limit, "aggregate_key_type": text, "evaluation_window_sec": seconds})
    kinds = {"managed_rule_group_statement": managed, "rate_based_statement": rate}
    blocks = {name: Nested(block, "list", most=1) for name, block in kinds.items()}
    return Nested(Block(blocks=blocks), "list", least=1, most=1)


def folder_of(kind: str, name: str) -> str:
    """The bindings' folder of a resource (``aws_vpc``), a data source or the provider itself."""
    if kind == "provider":
        return "provider"
    words = name.removeprefix("aws_").replace("_", "-")
    return f"data-aws-{words}" if kind == "data" else words


def read(code: str) -> Block:
    """The schema of the resource, data source or provider whose bindings' code this is."""
    block = _Bindings(code).root()
    if (rule := block.blocks.get("rule")) and "statement" in rule.block.attributes:
        del rule.block.attributes["statement"]
        rule.block.blocks["statement"] = _firewall_statement()
    return block


class _Bindings:
    """The generated code of one resource."""

    def __init__(self, code: str) -> None:
        self._classes = dict(_CLASS.findall(code))
        self._functions = dict(_FUNCTION.findall(code))

    def root(self) -> Block:
        (body,) = [each for each in self._classes.values() if _TYPE.search(each)]
        return self._block(body, body)

    def _block(self, body: str, fields: str) -> Block:
        """``body`` is the class of an object that is read, ``fields`` the code that writes it."""
        block = Block()
        for python_name, as_set, getter, name in _GETTER.findall(body):
            kind = _GETTERS.get(getter, "dynamic")
            written = f"set {python_name}(" in body
            optional = f"reset{_upper(python_name)}(" in body
            block.attributes[name] = Attribute(
                type=["set", kind[1]] if as_set and isinstance(kind, list) else kind,
                required=written and not optional,
                optional=written and optional,
                computed=not written or (optional and name in COMPUTED_TOO),
            )
        nested = {
            name: (cls, required == "true", computed == "true")
            for computed, required, cls, name in _NESTED.findall(body)
        }
        for name, value, is_block, kind, storage in _FIELD.findall(fields):
            if is_block == "true":
                cls, required, _ = nested.pop(name, ("", False, False))
                base = re.search(r"(\w+)ToHclTerraform", value)
                assert base, f"{name} has no type"
                block.blocks[name] = self._nested(base[1], cls, kind, required)
            elif name not in block.attributes and name not in nested:
                block.attributes[name] = Attribute(type=_written(kind, storage), optional=True)
        for name, (cls, required, computed) in nested.items():
            block.attributes[name] = Attribute(
                type=self._object(cls, body),
                required=required,
                optional=not computed and not required,
                computed=computed,
            )
        return block

    def _nested(self, base: str, cls: str, kind: str, required: bool) -> Nested:
        body = self._classes.get(f"{_upper(base)}OutputReference", "")
        block = self._block(body, self._functions.get(base, ""))
        if kind == "struct":
            return Nested(block, "single")
        return Nested(block, kind, least=int(required), most=int(cls.endswith("OutputReference")))

    def _object(self, cls: str, body: str) -> object:
        """The type of an attribute that is an object, or a list, set or map of them."""
        base = cls.removesuffix("OutputReference").removesuffix("List").removesuffix("Map")
        inner = self._block(self._classes.get(f"{base}OutputReference", ""), self._functions.get(_lower(base), ""))
        fields: dict[str, object] = {name: each.type for name, each in inner.attributes.items()}
        for name, each in inner.blocks.items():
            of = {key: attribute.type for key, attribute in each.block.attributes.items()}
            fields[name] = ["object", of] if each.nesting == "single" else [each.nesting, ["object", of]]
        if cls.endswith("OutputReference"):
            return ["object", fields]
        is_set = re.search(rf"new {cls}\(this, \"\w+\", true\)", body)
        return ["map" if cls.endswith("Map") else "set" if is_set else "list", ["object", fields]]


def _written(kind: str, storage: str) -> object:
    for suffix in ("List", "Map"):
        if storage.endswith(suffix):
            return [
                kind if kind in ("list", "set", "map") else "list",
                _SIMPLE.get(storage.removesuffix(suffix), "dynamic"),
            ]
    return _SIMPLE.get(storage, "dynamic")


def _upper(name: str) -> str:
    return name[:1].upper() + name[1:]


def _lower(name: str) -> str:
    return name[:1].lower() + name[1:]
