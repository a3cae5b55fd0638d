"""Terraform's file functions: over a mapping of paths to bytes, so that nothing here opens a file."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Callable, Mapping

from coder.domain.foundation.patterns import Pattern
from coder.domain.hcl.encoding_functions import to_base64
from coder.domain.hcl.text_functions import compile_re2
from coder.domain.hcl.values import EvaluationError, SetValue, TableFunction, Value, to_text


def file_functions(files: Mapping[str, bytes]) -> dict[str, TableFunction]:
    def read(path: Value) -> bytes:
        name = posixpath.normpath(to_text(path))
        if name not in files:
            raise EvaluationError(f"no file exists at {to_text(path)!r}")
        return files[name]

    def fileset(folder: Value, pattern: Value) -> SetValue:
        base = posixpath.normpath(to_text(folder))
        names = (posixpath.relpath(name, base) for name in files)
        compiled = _glob(to_text(pattern))
        return SetValue.of([name for name in names if not name.startswith("../") and compiled.fullmatch(name)])

    table: dict[str, TableFunction] = {
        "file": lambda path: read(path).decode("utf-8", "replace"),
        "filebase64": lambda path: to_base64(read(path)),
        "fileexists": lambda path: posixpath.normpath(to_text(path)) in files,
        "fileset": fileset,
        "filebase64sha256": lambda path: to_base64(hashlib.sha256(read(path)).digest()),
        "filebase64sha512": lambda path: to_base64(hashlib.sha512(read(path)).digest()),
    }
    for name in ("md5", "sha1", "sha256", "sha512"):
        table[f"file{name}"] = _file_digest(name, read)
    return table


def _glob(pattern: str) -> Pattern:
    """Compile a glob: `*` and `?` stop at slashes, `**` does not; `[a-z]`, `[^a]` and `{one,other}`. Linear time
    (RE2)."""
    result = ""
    for piece in re.findall(r"\*\*/|\*\*|\*|\?|\[\^?[^\]]+(?:\]|\Z)|\\.|[{},]|[^*?\[{},\\]+|.", pattern, re.DOTALL):
        if piece.startswith("[") and len(piece) > 1:
            if not piece.endswith("]"):
                raise EvaluationError("syntax error in pattern")
            result += "[" + piece[1:].replace("[", "\\[")
        elif piece.startswith("\\") and len(piece) > 1:
            result += re.escape(piece[1])
        else:
            result += _GLOB.get(piece, re.escape(piece))
    try:
        return compile_re2(f"(?s:{result})")
    except EvaluationError as problem:
        raise EvaluationError("syntax error in pattern") from problem


_GLOB = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")", ",": "|"}


def _file_digest(name: str, read: Callable[[Value], bytes]) -> TableFunction:
    return lambda path: hashlib.new(name, read(path), usedforsecurity=False).hexdigest()
