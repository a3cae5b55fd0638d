"""Every part of the stack owns its variables: no other code assigns to them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import coder.mesh.core.stack

FOLDER = Path(coder.mesh.core.stack.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))
LARGEST_CLASS = 40
"""Attributes; a larger class has several responsibilities."""


def _slots(tree: ast.AST) -> dict[str, set[str]]:
    """Return class -> its own attributes, by __slots__ or by assignment in __init__."""
    classes: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        own: set[str] = set()
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) and _name(part.value) == "self":
                own.add(part.attr)
        classes[node.name] = own
    return classes


def _name(node: ast.expr) -> str | None:
    return node.id if isinstance(node, ast.Name) else None


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_attributes_assigned_by_owner(path: Path) -> None:
    """`x.attribute = ...` is allowed only in methods of the class (`self`) or in the file that defines it."""
    tree = ast.parse(path.read_text())
    here = set().union(*_slots(tree).values())
    foreign = [
        f"{path.name}:{node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and _name(node.value) != "self"
        and node.attr not in here
    ]
    assert not foreign


def test_classes_stay_small() -> None:
    sizes = {name: len(own) for path in FILES for name, own in _slots(ast.parse(path.read_text())).items()}
    assert {name: size for name, size in sizes.items() if size > LARGEST_CLASS} == {}
    assert {"TcpSocket", "Sender", "Receiver", "Recovery", "Timers", "Demux", "Transmitter", "Routes"} <= sizes.keys()
