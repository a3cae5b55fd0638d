"""The refusal of a violated constraint depends on the constraint, in every service."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from pathlib import Path

import pytest
from sqlalchemy import PrimaryKeyConstraint, UniqueConstraint, insert, literal, select

import coder
from coder.api.base.refusals import Conflict
from coder.coderd.services.foundation.uniqueness import constraint_refusals
from coder.coderd.store import tables
from coder.coderd.store.engine.errors import IntegrityError
from coder.coderd.store.engine.metadata import metadata
from coder.coderd.store.tables.people import users
from tests.kit.server.server_in_process import running_coderd

SERVICES = Path(coder.__file__).parent / "coderd" / "services"
RETRYING = {"foundation/uniqueness.py", "login/provider_login.py"}
"""Files that catch the error to retry, and check the constraint."""
_NAME = re.compile(r"(?:ix|uq|pk)_[a-z0-9_]+")


def _names() -> set[str]:
    for module in pkgutil.iter_modules(tables.__path__):
        importlib.import_module(f"{tables.__name__}.{module.name}")
    result = set()
    for table in metadata.tables.values():
        result |= {str(index.name) for index in table.indexes if index.unique}
        result |= {str(item.name) for item in table.constraints if isinstance(item, UniqueConstraint)}
        keys = [item for item in table.constraints if isinstance(item, PrimaryKeyConstraint)]
        result |= {f"pk_{table.name}" for _ in keys}
    return result


def _catchers() -> dict[str, str]:
    """Return the services' files that catch the error, with their text."""
    result = {}
    for path in sorted(SERVICES.rglob("*.py")):
        code = path.read_text()
        handlers = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ExceptHandler)]
        if any(node.type is not None and "IntegrityError" in ast.unparse(node.type) for node in handlers):
            result[path.relative_to(SERVICES).as_posix()] = code
    return result


def test_services_name_constraints() -> None:
    result = _catchers()
    assert set(result) == RETRYING
    assert all("constraint_of(error)" in code for code in result.values())


def test_named_constraints_exist() -> None:
    known, named = _names(), set()
    for path in SERVICES.rglob("*.py"):
        code = path.read_text()
        if "constraint_refusals(" in code or "constraint_of(" in code:
            strings = [node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)]
            named |= {word for item in strings if isinstance(item, str) for word in _NAME.findall(item)}
    assert len(named) >= 20
    assert named <= known


@pytest.mark.parametrize("name", ["taken", "ix_organizations_name_living"])
async def test_only_named_constraints_refuse(name: str) -> None:
    """The error's text contains values from the request, which must not be taken for a constraint."""
    async with running_coderd(first_user=True) as world:
        statement = insert(users).from_select(
            [column.name for column in users.c], select(*(literal(name) if c.name == "name" else c for c in users.c))
        )

        async def twice(tx: object) -> None:
            await tx.execute(statement)  # type: ignore[attr-defined]

        with pytest.raises(IntegrityError), constraint_refusals({"ix_organizations_name_living": Conflict("another")}):
            await world.ctx.db.run(twice)
        with pytest.raises(Conflict, match="that"), constraint_refusals({"pk_users": Conflict("that")}):
            await world.ctx.db.run(twice)
