"""Content of a template's own files, read without terraform: variables, workspace tags, and whether init is needed."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.base.threads import in_thread_or_here
from coder.domain.hcl.json_syntax import native_syntax_untrusted
from coder.domain.hcl.lexer import HclError
from coder.domain.hcl.literals import text_literal
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
_MAX_TEMPLATES, _MAX_TEXT = 16, 512 * 1024
"Limits of the cache: templates, and characters of all of them; parsed, a character takes some twenty bytes."
_LOCAL_BLOCKS = frozenset({"variable", "locals", "output", "provider", "check", "moved", "removed"})
_PRIMITIVE = frozenset({"", "string", "number", "bool", "any"})


class TemplateError(CoderError):
    """The files cannot be parsed as a template."""

    def __init__(self, message: str) -> None:
        super().__init__("bad_template", message, "Run `terraform validate` in the template's directory.")


@dataclass(frozen=True, slots=True)
class ReadTemplate:
    """Parsed *.tf and *.tf.json files of a directory, by name; the latter as if written in native syntax."""

    files: tuple[File, ...]
    has_json: bool
    "Whether there are *.tf.json files."

    def blocks(self, kind: str) -> Iterable[tuple[File, HclBlock]]:
        for file in self.files:
            for block in file.body.blocks:
                if block.type == kind:
                    yield file, block


def read_template(folder: Path) -> ReadTemplate:
    """Parse the template in `folder`. Raises TemplateError with file, line and column."""
    files: list[File] = []
    in_json = set(folder.glob("*.tf.json"))
    for path in sorted({*folder.glob("*.tf"), *in_json}):
        if not path.is_file():
            continue  # a folder with such a name, which terraform ignores as well
        try:
            text = path.read_text("utf-8-sig", "replace")
            if path in in_json:
                text = native_syntax_untrusted(text, path.name)
            files.append(parse_file_untrusted(text, path.name))
        except HclError as error:
            raise TemplateError(error.message) from error
    return ReadTemplate(tuple(files), bool(in_json))


async def read_template_aside(folder: Path) -> ReadTemplate:
    """Parse the template in a thread: a megabyte takes two seconds, and a built-in daemon shares the server's event
    loop. Raises TemplateError."""
    return await in_thread_or_here(read_template, folder)


class TemplateCache:
    """Cache of recent templates: builds of a template need not parse it again."""

    def __init__(self) -> None:
        self._templates: OrderedDict[bytes, ReadTemplate] = OrderedDict()

    async def read(self, key: bytes, folder: Path) -> ReadTemplate:
        """Return the template in `folder`, identified by `key`. Raises TemplateError."""
        template = self._templates.get(key)
        if template is None:
            template = self._templates[key] = await read_template_aside(folder)
        self._templates.move_to_end(key)
        while len(self._templates) > _MAX_TEMPLATES or (len(self._templates) > 1 and self._size() > _MAX_TEXT):
            self._templates.popitem(last=False)
        return template

    def _size(self) -> int:
        return sum(len(file.text) for template in self._templates.values() for file in template.files)


# --- variables
def variables(template: ReadTemplate) -> list[pb.TemplateVariable]:
    """Return the variables in order of file and line."""
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
        # `default = null` counts as required, as in the original
        required=value is None,
        sensitive=constant(attributes["sensitive"]) is True if "sensitive" in attributes else False,
    )


def _type_text(file: File, expression: Expression | None) -> str:
    if expression is None:
        return ""
    if isinstance(expression, TemplateExpression):
        return _text(expression)  # "string" in quotes, as in Terraform 0.11
    return file.source(expression.span)


def _text(expression: Expression | None) -> str:
    value = None if expression is None else constant(expression)
    return value if isinstance(value, str) else ""


def _as_text(value: Json) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def constant(expression: Expression) -> Json:
    """Return the value of an expression made of literals; None for anything else."""
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
            number = constant(operand)
            return -number if isinstance(number, int | float) and not isinstance(number, bool) else None
    return None


def _key(expression: Expression) -> str:
    if isinstance(expression, Variable):
        return expression.name
    value = constant(expression)
    return value if isinstance(value, str) else _as_text(value)


def variables_file(template: ReadTemplate, values: Iterable[pb.VariableValue]) -> str:
    """Return a .tfvars text equivalent to `-var name=value`, without secrets on a command line.

    As there, a value of a structural type is an expression and a value of a primitive type is literal.
    """
    types = {variable.name: variable.type for variable in variables(template)}
    lines = []
    for value in values:
        literal = types.get(value.name, "") in _PRIMITIVE
        lines.append(f"{value.name} = {text_literal(value.value) if literal else value.value}\n")
    return "".join(lines)


# --- tags
def workspace_tags(template: ReadTemplate) -> dict[str, str]:
    """Return tag name -> source of its expression. Raises TemplateError for a duplicate name or a malformed block."""
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
    """Return whether terraform must prepare the directory: for modules, other providers, a backend, or an unknown
    block.

    Otherwise plan works in a bare directory, which saves a terraform run.
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
            elif block.type not in _LOCAL_BLOCKS:
                return True
    # Undeclared, `coder` would mean hashicorp/coder: init reports that this provider does not exist.
    return not used <= _BUILT_IN or ("coder" in used and not declared)


def _declares_coder(block: HclBlock) -> bool:
    return any("coder" in inner.body.attributes for inner in block.body.blocks if inner.type == "required_providers")


def _other_provider(block: HclBlock) -> bool:
    provider = block.body.attributes.get("provider")
    while isinstance(provider, HclAttribute):
        provider = provider.of
    return provider is not None and not (isinstance(provider, Variable) and provider.name in _BUILT_IN)


def _settings_need_init(block: HclBlock) -> bool:
    for inner in block.body.blocks:
        if inner.type != "required_providers":
            return True
        for name, requirement in inner.body.attributes.items():
            value = constant(requirement)
            source = value.get("source", "") if isinstance(value, dict) else ""
            if name not in _BUILT_IN or (name == "coder" and source not in {"coder/coder", _FULL_SOURCE}):
                return True
    return bool(set(block.body.attributes) - {"required_version"})


_FULL_SOURCE = "registry.terraform.io/coder/coder"
