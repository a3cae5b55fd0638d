"""The recorded exchanges that need Terraform: templates and provisioners, replayed with the built-in daemons.

As in `tests/unit/coderd/test_recorded.py`, what does not match yet is listed and the list may only shrink.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from coder.cli.provisioners import builtin_daemons
from tests.kit.coderd import FIRST_USER, running_coderd
from tests.kit.equality import Names
from tests.kit.identity_provider import identity_provider
from tests.kit.replay import replay_area, server_settings

pytestmark = [pytest.mark.system, pytest.mark.skipif(not shutil.which("terraform"), reason="terraform is not here")]

KNOWN = Path(__file__).resolve().parents[1] / "data" / "api" / "replay_mismatches_imports.json"


@pytest.mark.parametrize("area", ["provisioners", "templates"])
async def test_recorded_area(area: str, tmp_path: Path) -> None:
    async with running_coderd(provisioner=builtin_daemons, provisioner_daemons=3, cache_dir=tmp_path) as world:
        created = await world.post("/api/v2/users/first", FIRST_USER)
        assert created.status_code == 201
        report = await replay_area(world.url, area)
    known: dict[str, list[int]] = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    if os.environ.get("REPLAY_UPDATE"):
        print("\n".join(report.lines()))
        known[area] = sorted(report.mismatches)
        KNOWN.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
        return
    new = {number: report.mismatches[number] for number in report.mismatches if number not in known.get(area, [])}
    assert not new, "\n".join(report.lines())


async def test_recorded_external_auth(tmp_path: Path) -> None:
    valid_until, valid_again = 36, 37
    with identity_provider() as idp:
        idp.user_code, idp.device_code, idp.interval = "ABCD-1234", "dc-1", 5

        async def before(number: int, _names: Names) -> None:
            idp.valid = not valid_until <= number < valid_again

        settings = server_settings("external_auth", idp.url)
        async with running_coderd(
            provisioner=builtin_daemons, **{**settings, "provisioner_daemons": 3, "cache_dir": tmp_path}
        ) as world:
            assert (await world.post("/api/v2/users/first", FIRST_USER)).status_code == 201
            report = await replay_area(world.url, "external_auth", {"idp_url": idp.url}, before)
    known = json.loads(KNOWN.read_text())
    if os.environ.get("REPLAY_UPDATE"):
        print("\n".join(report.lines()))
        known["external_auth"] = sorted(report.mismatches)
        KNOWN.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    assert sorted(report.mismatches) == known.get("external_auth", []), "\n".join(report.lines())
