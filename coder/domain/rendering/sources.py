"""A template's files as modules: blocks by kind, override files merged in, variable files read."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from coder.domain.hcl.json_syntax import native_syntax_untrusted, native_values_untrusted
from coder.domain.hcl.lexer import HclError
from coder.domain.hcl.parser import parse_file_untrusted
from coder.domain.hcl.tree import Expression, File, HclBlock, HclBody

Files = Mapping[str, bytes]
SUFFIXES = (".tf", ".tf.json")


@dataclass(frozen=True, slots=True)
class Located:
    """Block and its file."""

    block: HclBlock
    file: str


@dataclass(slots=True)
class TemplateSource:
    """Blocks of one module. Immutable after parsing: renderings share it."""

    folder: str
    """Path relative to the template's root; empty for the root."""
    blocks: list[Located] = field(default_factory=list)

    def of(self, kind: str, *labels: str) -> Iterator[Located]:
        """Return the blocks of a kind with these first labels."""
        for located in self.blocks:
            if located.block.type == kind and located.block.labels[: len(labels)] == labels:
                yield located

    def locals(self) -> dict[str, Expression]:
        return {name: value for item in self.of("locals") for name, value in item.block.body.attributes.items()}


class ParsedFiles(Mapping[str, bytes]):
    """A template's files with a cache of their parsed form, for successive renderings."""

    def __init__(self, files: Files) -> None:
        self._files = dict(files)
        self._sources: dict[str, TemplateSource] = {}

    def source(self, folder: str) -> TemplateSource:
        """Return the module in a directory, parsed once."""
        if folder not in self._sources:
            self._sources[folder] = _read_source(self._files, folder)
        return self._sources[folder]

    def __getitem__(self, name: str) -> bytes:
        return self._files[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def read_source(files: Files, folder: str = "") -> TemplateSource:
    """Parse a directory's *.tf and *.tf.json files. A file that does not parse is skipped."""
    return files.source(folder) if isinstance(files, ParsedFiles) else _read_source(files, folder)


def _read_source(files: Files, folder: str) -> TemplateSource:
    plain: list[Located] = []
    overrides: list[Located] = []
    for name in sorted(files):
        if posixpath.dirname(name) != folder or not name.endswith(SUFFIXES):
            continue
        base = posixpath.basename(name)
        try:
            body = _parse_untrusted(files[name], base).body
        except HclError:
            continue
        stem = base.removesuffix(".json").removesuffix(".tf")
        target = overrides if stem == "override" or stem.endswith("_override") else plain
        target.extend(Located(block, name) for block in body.blocks)
    for override in overrides:
        plain = [_overridden(located, override.block) for located in plain]
    return TemplateSource(folder, plain)


def _parse_untrusted(data: bytes, name: str) -> File:
    """Parse a file of either syntax, by its name. Raises HclError."""
    text = data.decode("utf-8-sig", "replace")
    if name.endswith(".tf.json"):
        text = native_syntax_untrusted(text, name)
    elif name.endswith(".json"):
        text = native_values_untrusted(text, name)
    return parse_file_untrusted(text, name)


def _overridden(located: Located, override: HclBlock) -> Located:
    block = located.block
    if (block.type, block.labels) != (override.type, override.labels):
        return located
    replaced = {inner.type for inner in override.body.blocks}
    kept = [inner for inner in block.body.blocks if inner.type not in replaced]
    body = HclBody({**block.body.attributes, **override.body.attributes}, [*kept, *override.body.blocks])
    return Located(HclBlock(block.type, block.labels, body, block.span), located.file)


def variable_files(files: Files) -> Iterable[dict[str, Expression]]:
    """Return the contents of terraform.tfvars and *.auto.tfvars in the root, in JSON too, later ones winning."""
    names = [name for name in ("terraform.tfvars", "terraform.tfvars.json") if name in files]
    names += sorted(name for name in files if name.endswith((".auto.tfvars", ".auto.tfvars.json")) and "/" not in name)
    for name in names:
        try:
            yield _parse_untrusted(files[name], name).body.attributes
        except HclError:
            continue


def module_folder(files: Files, parent: str, source: str, key: str) -> str | None:
    """Return the folder of a module's files: relative to its caller, or the location of `terraform init`. None if
    missing."""
    if source.startswith(("./", "../")):
        folder = posixpath.normpath(posixpath.join(parent, source))
        folder = "" if folder == "." else folder
    else:
        folder = _installed(files).get(key, "")
    has_files = any(posixpath.dirname(name) == folder and name.endswith(SUFFIXES) for name in files)
    return folder if has_files and (folder or source.startswith(".")) else None


def _installed(files: Files) -> dict[str, str]:
    try:
        modules = json.loads(files[".terraform/modules/modules.json"])["Modules"]
        return {module["Key"]: posixpath.normpath(module["Dir"]) for module in modules}
    except (KeyError, TypeError, ValueError):
        return {}
