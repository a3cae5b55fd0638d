"""Import of an original's database: everything arrives once, and nothing is forgotten."""

from __future__ import annotations



from tests.kit.original.database import original_database
from tests.kit.original.deployment import deployment
from tests.kit.original.importing import run_dry, run_import
from tests.kit.server.postgres_server import fresh_database


async def test_x() -> None:
    async with original_database(deployment()) as source, fresh_database() as target:
        r = await run_dry(source)
        for k in r.kinds: print('dry', k.kind,k.rows,k.taken,[(n.reason,n.count,n.examples) for n in k.not_taken])
        r = await run_import(source, target)
        for k in r.kinds: print(k.kind,k.rows,k.taken,[(n.reason,n.count) for n in k.not_taken])
        print(r.notes)

