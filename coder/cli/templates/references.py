"""Paths that Terraform files name: arguments of file functions, sources of modules, texts below `path.module`."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, fields, is_dataclass
from pathlib import PurePosixPath

from coder.domain.hcl.json_syntax import native_syntax_untrusted
from coder.domain.hcl.lexer import HclError
from coder.domain.hcl.parser import parse_file_untrusted
from coder.domain.hcl.tree import (
    Expression,
    FunctionCall,
    HclAttribute,
    HclBlock,
    HclBody,
    TemplateExpression,
    Variable,
)

TERRAFORM_FILES = (".tf", ".tf.json")
_FILE_FUNCTIONS = frozenset(
    (
        "file templatefile fileset filebase64 filemd5 filesha1 filesha256 filesha512 filebase64sha256 filebase64sha512"
    ).split()
)
_CHECK = "fileexists"
"A template that checks for a file works without it."


@dataclass(frozen=True, slots=True)
class Reference:
    """Path of the template that a file names, and the line; 0 for a file in JSON."""

    path: PurePosixPath
    line: int


def references_of(file: PurePosixPath, text: str) -> list[Reference]:
    """Return the paths that a Terraform file names with constant texts. A file with a syntax error names none: the
    import reports it."""
    is_json = file.name.endswith(".json")
    try:
        native = native_syntax_untrusted(text) if is_json else text
        body = parse_file_untrusted(native, file.name).body
    except (HclError, RecursionError):
        return []
    reader = _Reader(file.parent)
    reader.read_body(body)
    return [
        Reference(reference.path, 0 if is_json else reference.line)
        for reference in reader.named
        if reference.path not in reader.checked
    ]


class _Reader:
    """Run over one file of the module in `directory`."""

    def __init__(self, directory: PurePosixPath) -> None:
        self._directory = directory
        self.named: list[Reference] = []
        self.checked: set[PurePosixPath] = set()

    def read_body(self, body: HclBody, block: HclBlock | None = None) -> None:
        for name, expression in body.attributes.items():
            if block is not None and block.type == "module" and name == "source":
                self._name(expression, relative_to=self._directory, is_source=True)
            self._read(expression)
        for inner in body.blocks:
            self.read_body(inner.body, inner)

    def _read(self, node: object) -> None:
        """Read an expression and those in it."""
        if isinstance(node, FunctionCall) and node.name in {*_FILE_FUNCTIONS, _CHECK} and node.arguments:
            path = self._path(node.arguments[0], PurePosixPath())
            if path is not None and node.name == _CHECK:
                self.checked.add(path)
            elif path is not None:
                self.named.append(Reference(path, node.span.line))
            for argument in node.arguments[1:]:
                self._read(argument)
            return
        if isinstance(node, TemplateExpression) and len(node.parts) == 2 and _base(node.parts[0]):
            self._name(node)
        if isinstance(node, tuple):
            for item in node:
                self._read(item)
        elif is_dataclass(node) and not isinstance(node, type):
            for field in fields(node):
                self._read(getattr(node, field.name))

    def _name(self, node: Expression, *, relative_to: PurePosixPath | None = None, is_source: bool = False) -> None:
        path = self._path(node, relative_to, is_source=is_source)
        if path is not None:
            self.named.append(Reference(path, node.span.line))

    def _path(
        self, node: object, relative_to: PurePosixPath | None, *, is_source: bool = False
    ) -> PurePosixPath | None:
        """Return the path of a constant text; None for other expressions, and for paths outside the template.

        Texts are relative to `relative_to`; a module's source is a path only if it begins with a dot.
        """
        if not isinstance(node, TemplateExpression) or not node.parts:
            return None
        *before, last = node.parts
        base = relative_to
        if before:
            base = {"module": self._directory, "root": PurePosixPath(), "cwd": PurePosixPath()}.get(_base(before[0]))
        if base is None or len(before) > 1 or not isinstance(last, str) or "\n" in last:
            return None
        if (is_source and not last.startswith(("./", "../"))) or (not before and last.startswith(("/", "~"))):
            return None
        path = posixpath.normpath(posixpath.join(str(base), last.lstrip("/") if before else last))
        return None if path.startswith("..") or path == "." else PurePosixPath(path)


def _base(node: object) -> str:
    """Return NAME of `path.NAME`; "" for other expressions."""
    if isinstance(node, HclAttribute) and isinstance(node.of, Variable) and node.of.name == "path":
        return node.name
    return ""
