"""What a template's own files say, read without terraform: variables, workspace tags, and whether init is needed."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coder.base.errors import CoderError
from coder.domain.hcl.json_syntax import native_syntax_untrusted
from coder.domain.hcl.lexer import HclError
from coder.domain.hcl.parser import parse_file_untrusted
from coder.domain.hcl.tree import (
    Expression,
    File,
    HclAttribute,
    HclBlock,
    Literal,
    Object,
    Parentheses,
    TemplateExpression,
    Tuple,
    UnaryOperation,
    Variable,
)
from coder.rpc.proto import provisioner_pb2 as pb

_BUILT_IN = frozenset({"coder", "terraform"})
"""Providers that need no download: ours is served in process, the other is part of terraform."""
_KEPT, _KEPT_TEXT = 16, 512 * 1024
"Templates, and letters of all of them, that are kept: parsed, a letter takes some twenty bytes."
_HARMLESS = frozenset({"variable", "locals", "output", "provider", "check", "moved", "removed"})
_PRIMITIVE = frozenset({"", "string", "number", "bool", "any"})


class TemplateError(CoderError):
    """Files that cannot be read as a template."""

    def __init__(self, message: str) -> None:
        super().__init__("bad_template", message, "Run `terraform validate` in the template's directory.")


@dataclass(frozen=True, slots=True)
class ReadTemplate:
    """The parsed *.tf and *.tf.json files of a directory, by name; the latter as if they had been written natively."""

    files: tuple[File, ...]
    has_json: bool
    "There are *.tf.json files."

    def blocks(self, kind: str) -> Iterable[tuple[File, HclBlock]]:
        for file in self.files:
            for block in file.body.blocks:
                if block.type == kind:
                    yield file, block


def read_template(folder: Path) -> ReadTemplate:
    """Raises TemplateError naming file, line and column."""
    files: list[File] = []
    in_json = set(folder.glob("*.tf.json"))
    for path in sorted({*folder.glob("*.tf"), *in_json}):
        try:
            text = path.read_text("utf-8-sig", "replace")
            if path in in_json:
                text = native_syntax_untrusted(text, path.name)
            files.append(parse_file_untrusted(text, path.name))
        except HclError as problem:
            raise TemplateError(problem.message) from problem
    return ReadTemplate(tuple(files), bool(in_json))


class TemplateCache:
    """Templates read lately: the builds of a template need not parse it again."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, ReadTemplate] = OrderedDict()

    def read(self, key: bytes, folder: Path) -> ReadTemplate:
        """What is in `folder`, which `key` stands for. Raises TemplateError."""
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = read_template(folder)
        self._kept.move_to_end(key)
        while len(self._kept) > _KEPT or (len(self._kept) > 1 and self._size() > _KEPT_TEXT):
            self._kept.popitem(last=False)
        return found

    def _size(self) -> int:
        return sum(len(file.text) for template in self._kept.values() for file in template.files)


# --- variables
def variables(template: ReadTemplate) -> list[pb.TemplateVariable]:
    """In order of file and line."""
    return [_variable(file, block) for file, block in template.blocks("variable") if block.labels]


def _variable(file: File, block: HclBlock) -> pb.TemplateVariable:
    attributes = block.body.attributes
    default = attributes.get("default")
    value = None if default is None else constant(default)
    return pb.TemplateVariable(
        name=block.labels[0],
        description=_text(attributes.get("description")),
        type=_type_text(file, attributes.get("type")),
        default_value=_as_text(value),
        # `default = null` counts as required, as it always has
        required=value is None,
        sensitive=constant(attributes["sensitive"]) is True if "sensitive" in attributes else False,
    )


def _type_text(file: File, expression: Expression | None) -> str:
    if expression is None:
        return ""
    if isinstance(expression, TemplateExpression):
        return _text(expression)  # "string" in quotes, as Terraform 0.11 wrote it
    return file.source(expression.span)


def _text(expression: Expression | None) -> str:
    value = None if expression is None else constant(expression)
    return value if isinstance(value, str) else ""


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def constant(expression: Expression) -> Any:
    """The value of an expression made of literals; None for anything else."""
    match expression:
        case Literal(value=value):
            return value
        case TemplateExpression(parts=parts):
            return "".join(map(str, parts)) if all(isinstance(part, str) for part in parts) else None
        case Tuple(items=items):
            return [constant(item) for item in items]
        case Object(items=items):
            return {_key(key): constant(value) for key, value in items}
        case Parentheses(inner=inner):
            return constant(inner)
        case UnaryOperation(operator="-", operand=operand):
            value = constant(operand)
            return -value if isinstance(value, int | float) and not isinstance(value, bool) else None
    return None


def _key(expression: Expression) -> str:
    if isinstance(expression, Variable):
        return expression.name
    value = constant(expression)
    return value if isinstance(value, str) else _as_text(value)


def variables_file(template: ReadTemplate, values: Iterable[pb.VariableValue]) -> str:
    """A .tfvars text that means what `-var name=value` would, without putting secrets on a command line.

    As there, a value of a structural type is an expression and one of a primitive type is taken literally.
    """
    types = {variable.name: variable.type for variable in variables(template)}
    lines = []
    for value in values:
        literal = types.get(value.name, "") in _PRIMITIVE
        lines.append(f"{value.name} = {_quoted(value.value) if literal else value.value}\n")
    return "".join(lines)


def _quoted(text: str) -> str:
    escaped = json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
    # JSON's other escapes exist in HCL too, but for \b and \f
    escaped = escaped.replace("\\b", "\\u0008").replace("\\f", "\\u000c").replace("\\/", "/")
    return escaped.replace("${", "$${").replace("%{", "%%{")


# --- tags
def workspace_tags(template: ReadTemplate) -> dict[str, str]:
    """Tag name -> source of its expression. Raises TemplateError for a name given twice or a malformed block."""
    tags: dict[str, str] = {}
    for file, block in template.blocks("data"):
        if block.labels[:1] != ("coder_workspace_tags",):
            continue
        expression = block.body.attributes.get("tags")
        if expression is None:
            raise TemplateError(f'"tags" attribute is required by coder_workspace_tags {file.name}:{block.span.line}')
        if not isinstance(expression, Object):
            raise TemplateError(f'"tags" must be a map of strings in {file.name}:{block.span.line}')
        for key, value in expression.items:
            name = _key(key)
            if name in tags:
                raise TemplateError(f"workspace tag {name!r} is defined multiple times")
            tags[name] = file.source(value.span)
    return tags


# --- init
def needs_init(template: ReadTemplate) -> bool:
    """Whether terraform must prepare the directory: modules, other providers, a backend, or anything unfamiliar.

    Without those, plan works in a bare directory, and a terraform run is saved.
    """
    if template.has_json:
        return True
    used: set[str] = set()
    declared = False
    for file in template.files:
        # a function of a provider would need that provider
        if "provider::" in file.text:
            return True
        for block in file.body.blocks:
            if block.type in {"resource", "data"}:
                used.add(block.labels[0].partition("_")[0] if block.labels else "")
                if _other_provider(block):
                    return True
            elif block.type == "terraform":
                if _settings_need_init(block):
                    return True
                declared = declared or _declares_coder(block)
            elif block.type == "provider":
                used.add(block.labels[0] if block.labels else "")
            elif block.type not in _HARMLESS:
                return True
    # Undeclared, `coder` would mean hashicorp/coder: let init say that there is no such provider.
    return not used <= _BUILT_IN or ("coder" in used and not declared)


def _declares_coder(block: HclBlock) -> bool:
    return any("coder" in inner.body.attributes for inner in block.body.blocks if inner.type == "required_providers")


def _other_provider(block: HclBlock) -> bool:
    chosen = block.body.attributes.get("provider")
    while isinstance(chosen, HclAttribute):
        chosen = chosen.of
    return chosen is not None and not (isinstance(chosen, Variable) and chosen.name in _BUILT_IN)


def _settings_need_init(block: HclBlock) -> bool:
    for inner in block.body.blocks:
        if inner.type != "required_providers":
            return True
        for name, wanted in inner.body.attributes.items():
            value = constant(wanted)
            source = value.get("source", "") if isinstance(value, dict) else ""
            if name not in _BUILT_IN or (name == "coder" and source not in {"coder/coder", _FULL_SOURCE}):
                return True
    return bool(set(block.body.attributes) - {"required_version"})


_FULL_SOURCE = "registry.terraform.io/coder/coder"
