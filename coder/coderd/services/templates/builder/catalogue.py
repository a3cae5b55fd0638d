"""Catalogue of the template builder: bases, which are bundled examples, and modules.

A module is a folder of `coderd/builder_modules`: Terraform, and a README whose front matter describes it. Its variables
are the `variable` blocks of its `main.tf`; those of a base are the blocks of the example. Nothing is downloaded.

Editors on the user's own machine differ in a few words only: `desktop-editors` has one text for all of them and a table
of the words. A template contains each of its editors whole.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from coder.api.templates.template_builder import TemplateBuilderVariableType
from coder.base.json_types import as_texts
from coder.coderd.services.templates.examples import find_example, read_files, split_front_matter
from coder.domain.hcl.parser import parse_file_untrusted
from coder.domain.hcl.tree import Expression, HclBlock, Literal, TemplateExpression, UnaryOperation, Variable

_FOLDER = Path(__file__).resolve().parents[3] / "builder_modules"
_EDITORS = _FOLDER / "desktop-editors"
MAIN = "main.tf"
_README = "README.md"
AGENT = "coder_agent.main"
"""The agent of every base."""
_IMAGE = "container_image"
_TYPES: dict[str, TemplateBuilderVariableType] = {"bool": "bool", "number": "number", "string": "string"}


@dataclass(frozen=True, slots=True)
class BuilderVariable:
    """A question of the builder."""

    name: str
    type: TemplateBuilderVariableType
    description: str
    default: str | float | bool | None
    """None without a default, and for a default of null."""
    required: bool
    sensitive: bool = False


@dataclass(frozen=True, slots=True)
class BuilderModule:
    """A part of a template that works with every base of its operating systems."""

    id: str
    display_name: str
    description: str
    icon: str
    category: str
    version: str
    compatible_os: tuple[str, ...]
    conflicts_with: tuple[str, ...]
    agreements: tuple[str, ...]
    """Variables that must be true, such as the acceptance of a licence."""
    registry: str
    """Address of the same module in a registry, without the host; empty if only this server has it."""
    registry_version: str
    variables: tuple[BuilderVariable, ...]
    files: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True)
class BuilderBase:
    """A bundled example as the ground of a template."""

    id: str
    name: str
    description: str
    icon: str
    os: str
    prerequisites: str
    """Markdown."""
    variables: tuple[BuilderVariable, ...]
    counted: bool
    """Whether the agent has a count, so that a stopped workspace has none."""
    image: str
    """Image in the Terraform that the variable `container_image` replaces; empty without one."""
    files: Mapping[str, bytes] = field(repr=False)


_BASES = {
    "aws-linux": "linux",
    "aws-windows": "windows",
    "azure-linux": "linux",
    "azure-windows": "windows",
    "digitalocean-linux": "linux",
    "docker": "linux",
    "externally-managed-workspace": "linux",
    "gcp-linux": "linux",
    "gcp-windows": "windows",
    "incus": "linux",
    "kubernetes": "linux",
    "local-process": "linux",
    "nomad-docker": "linux",
    "scratch": "linux",
}
"""Operating systems of the bases, by id of the example."""
_IMAGES = {
    "docker": "codercom/enterprise-base:ubuntu",
    "kubernetes": "codercom/enterprise-base:ubuntu",
    "nomad-docker": "codercom/enterprise-base:ubuntu",
}
"""Image in the Terraform of the bases that ask for one."""


@functools.cache
def bases() -> Mapping[str, BuilderBase]:
    """Return the bases by id, sorted."""
    return MappingProxyType({base_id: _read_base(base_id, os) for base_id, os in sorted(_BASES.items())})


@functools.cache
def modules() -> Mapping[str, BuilderModule]:
    """Return the modules by id, sorted."""
    folders = {folder.name: folder for folder in _FOLDER.iterdir() if (folder / MAIN).is_file()}
    texts = {name: {path.name: path.read_text("utf-8") for path in folders[name].iterdir()} for name in folders}
    texts |= _editor_texts()
    return MappingProxyType({module_id: _read_module(module_id, texts[module_id]) for module_id in sorted(texts)})


def _read_base(base_id: str, os: str) -> BuilderBase:
    example = find_example(base_id)
    if example is None:
        raise LookupError(f"there is no example {base_id}")
    files, image = read_files(base_id), _IMAGES.get(base_id, "")
    variables = read_variables(files[MAIN].decode())
    if image:
        question = BuilderVariable(_IMAGE, "string", "Container image of the workspaces", image, required=False)
        variables = (question, *variables)
    return BuilderBase(
        id=base_id,
        name=example.name,
        description=example.description,
        icon=example.icon,
        os=os,
        prerequisites=_prerequisites(example.markdown),
        variables=variables,
        counted=_is_counted(files[MAIN].decode()),
        image=image,
        files=files,
    )


def _is_counted(text: str) -> bool:
    blocks = parse_file_untrusted(text, MAIN).body.blocks
    return any(block.labels == tuple(AGENT.split(".")) and "count" in block.body.attributes for block in blocks)


def _prerequisites(markdown: str) -> str:
    """Return the section "Requirements" of a README as the builder's "Prerequisites"; the rest without one."""
    _title, _, text = markdown.partition("\n")
    _before, found, section = text.partition("\n## Requirements\n")
    body = section.partition("\n## ")[0] if found else text.partition("\n## ")[0]
    return f"## Prerequisites\n\n{body.strip()}"


def _editor_texts() -> dict[str, dict[str, str]]:
    """Return the files of the editors by id: the words of a row in place of the names of its columns."""
    shared = {name: (_EDITORS / f"module{Path(name).suffix}").read_text("utf-8") for name in (MAIN, _README)}
    columns, *rows = (line.split("\t") for line in (_EDITORS / "editors.tsv").read_text("utf-8").splitlines())
    editors: dict[str, dict[str, str]] = {}
    for row in rows:
        editor = dict(zip(columns, row, strict=True))
        editors[editor["EDITOR_ID"]] = {name: _filled(text, editor) for name, text in shared.items()}
    return editors


def _filled(text: str, words: Mapping[str, str]) -> str:
    return re.sub(r"\bEDITOR_[A-Z_]+\b", lambda found: words[found[0]], text)


def _read_module(module_id: str, texts: Mapping[str, str]) -> BuilderModule:
    matter, readme = split_front_matter(texts[_README])
    files = {name: text.encode() for name, text in sorted({**texts, _README: readme}.items())}
    return BuilderModule(
        id=module_id,
        display_name=str(matter["display_name"]),
        description=str(matter["description"]),
        icon=str(matter["icon"]),
        category=str(matter["category"]),
        version=str(matter["version"]),
        compatible_os=tuple(as_texts(matter["compatible_os"])),
        conflicts_with=tuple(as_texts(matter["conflicts_with"])),
        agreements=tuple(as_texts(matter["agreements"])),
        registry=str(matter.get("registry") or ""),
        registry_version=str(matter.get("registry_version") or ""),
        variables=tuple(item for item in read_variables(texts[MAIN]) if item.name != "agent_id"),
        files=MappingProxyType(files),
    )


def read_variables(text: str) -> tuple[BuilderVariable, ...]:
    """Return the variables that Terraform declares, in its order. Raises HclError, and LookupError for other types."""
    blocks = parse_file_untrusted(text, MAIN).body.blocks
    return tuple(_variable(block) for block in blocks if block.type == "variable")


def _variable(block: HclBlock) -> BuilderVariable:
    attributes = block.body.attributes
    kind = attributes.get("type")
    default, sensitive = attributes.get("default"), attributes.get("sensitive")
    return BuilderVariable(
        name=block.labels[0],
        type=_TYPES[kind.name if isinstance(kind, Variable) else "string"],
        description=str(_constant(attributes.get("description")) or ""),
        default=_constant(default),
        required=default is None,
        sensitive=_constant(sensitive) is True,
    )


def _constant(expression: Expression | None) -> str | float | bool | None:
    match expression:
        case Literal(value=value):
            return value
        case TemplateExpression(parts=parts):
            return "".join(map(str, parts))
        case UnaryOperation(operator="-", operand=Literal(value=int() | float() as value)):
            return -value
    return None
