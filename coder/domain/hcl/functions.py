"""Terraform's functions. Values in, value out; an unknown argument makes the result unknown.

Files are a mapping of paths to bytes, so that nothing here opens a file. Functions of time or chance (timestamp, uuid,
bcrypt) return unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from coder.domain.hcl import values as v
from coder.domain.hcl.collection_functions import COLLECTION_FUNCTIONS
from coder.domain.hcl.encoding_functions import ENCODING_FUNCTIONS
from coder.domain.hcl.file_functions import file_functions
from coder.domain.hcl.number_functions import NUMBER_FUNCTIONS
from coder.domain.hcl.text_functions import TEXT_FUNCTIONS
from coder.domain.hcl.times import TIMES
from coder.domain.hcl.values import UNKNOWN, UNTYPED, Function, TableFunction, Value

MAKES_TEXT = frozenset({"format", "formatlist", "join", "jsonencode", "yamlencode"})
"""Functions that copy the texts inside their arguments into one; the same text may be there many times."""


def function_table(files: Mapping[str, bytes]) -> dict[str, Function]:
    """Return all functions; the file functions read `files`, paths relative to the template's root."""
    table = {
        name: _strict(function)
        for name, function in {**TEXT_FUNCTIONS, **NUMBER_FUNCTIONS, **ENCODING_FUNCTIONS, **TIMES}.items()
    }
    table |= {name: _shallow(function, typed=name in _TYPED) for name, function in COLLECTION_FUNCTIONS.items()}
    table |= {name: _strict(function) for name, function in file_functions(files).items()}
    for name in ("timestamp", "plantimestamp", "uuid", "bcrypt", "templatefile", "templatestring"):
        table[name] = lambda *_arguments: UNKNOWN
    return table


def _callable(function: TableFunction) -> Function:
    """Return a function as expressions call it: Python checks the arguments, as their author is the template's."""
    return cast("Function", function)


def _strict(declared: TableFunction) -> Function:
    """Wrap a function: an unknown value anywhere in the arguments makes the result unknown."""
    function = _callable(declared)

    def call(*arguments: Value) -> Value:
        return UNKNOWN if any(v.has_unknown(argument) for argument in arguments) else function(*arguments)

    return call


_TYPED = frozenset({"alltrue", "anytrue", "contains", "index", "issensitive", "keys", "length", "sort"})
"""Functions whose result type does not depend on the arguments."""


def _shallow(declared: TableFunction, *, typed: bool) -> Function:
    """Wrap a function: only a wholly unknown argument makes the result unknown; collections may hold unknown
    elements."""
    function = _callable(declared)

    def call(*arguments: Value) -> Value:
        return (
            (UNKNOWN if typed else UNTYPED)
            if any(v.is_unknown(argument) for argument in arguments)
            else function(*arguments)
        )

    return call
