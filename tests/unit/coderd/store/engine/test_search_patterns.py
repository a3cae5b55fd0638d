"""Texts of searches: wildcards of SQL's LIKE keep their meaning, as in the original."""

from __future__ import annotations

from sqlalchemy import literal, select

from coder.coderd.store.engine.database import Tx, open_database
from coder.coderd.store.engine.names import holds_text, matches_text
from tests.kit.server.postgres_server import fresh_database
from tests.kit.server.server_in_process import running_coderd

PATTERNS = [
    # (column, text, whether it holds the text, whether it matches as a whole)
    ("Alpha", "lph", True, False),
    ("Alpha", "ALPHA", True, True),
    ("Alpha", "%", True, True),
    ("Alpha", "a%a", True, True),
    ("Alpha", "_lpha", True, True),
    ("Alpha", "Alpha_", False, False),
    ("Alpha", "\\%", False, False),
    ("Alpha", "\\lpha", True, False),
    ("Alpha", "Alpha\\", False, False),
    ("50%", "0\\", True, False),  # the escape takes the wildcard behind the text
    ("a\\", "a\\", False, True),
    ("a\\", "a\\\\", True, True),
    ("a_b", "a\\_b", True, True),
]


async def test_wildcards_keep_their_meaning() -> None:
    async with fresh_database() as url, open_database(url) as database:

        async def ask(tx: Tx) -> list[tuple[bool, bool]]:
            rows = [
                (await tx.execute(select(holds_text(literal(column), text), matches_text(literal(column), text)))).one()
                for column, text, *_ in PATTERNS
            ]
            return [(row[0], row[1]) for row in rows]

        for case, answer in zip(PATTERNS, await database.read(ask), strict=True):
            assert answer == case[2:], case


async def test_user_searches_take_wildcards() -> None:
    async with running_coderd(first_user=True) as world:
        await world.member("alice")
        for key in ("search", "name"):
            found = {}
            for text in ("%", "a_ice", "\\%", "\\"):
                answer = await world.get("/api/v2/users", params={"q": f"{key}:{text}"})
                found[text] = "alice" in [user["username"] for user in answer.json()["users"]]
            assert found == {"%": True, "a_ice": key == "search", "\\%": False, "\\": False}, key
