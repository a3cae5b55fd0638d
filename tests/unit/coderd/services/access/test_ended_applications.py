"""Consents that end during a request of their application, after its authentication: a request may wait minutes for its
body.

The rows that tell an application's key from a user's own are deleted with the consent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coder.coderd.services.access import authentication
from coder.domain.access.application_limits import LASTING, Fate
from tests.kit.provisioners.scripted_provisioner import Answers
from tests.kit.server.workspaces import external_answer, workspace_world
from tests.unit.coderd.services.access.test_application_limits import MAKES, MORE, SETTINGS, Made, _ask, _ids, _import
from tests.unit.coderd.services.login.test_oauth2_provider import CALLBACK, Client

CASES: tuple[tuple[str, Callable[[dict[str, str]], Made]], ...] = (
    *((kind, make) for kind, make in (*MAKES.items(), *MORE) if LASTING[kind].fate is Fate.REFUSED),
    ("api_key", MAKES["api_key"]),
    ("build_token", MAKES["workspace"]),
    ("build_token", lambda ids: ("POST", f"workspaces/{ids['workspace']}/builds", {"transition": "start"})),
)
"""Requests of applications that are refused, or whose results end with the consent."""


async def test_ended_consent_creates_nothing_lasting(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(import_=_import, build=external_answer)
    async with workspace_world(answers, **SETTINGS) as (world, _):
        app = (await world.post("/api/v2/oauth2-provider/apps", {"name": "a", "callback_url": CALLBACK})).json()["id"]
        secret = (await world.post(f"/api/v2/oauth2-provider/apps/{app}/secrets")).json()["client_secret_full"]
        bob, _ = await world.member("bob")
        ids, it = await _ids(world, app, bob), Client(world, app, secret, world.token)
        original, access, wrong = authentication.authenticate, "", list[str]()

        async def revoked_afterwards(ctx: Any, credentials: Any) -> authentication.Caller:
            caller = await original(ctx, credentials)
            if caller.key.id == access.partition("-")[0]:
                assert (await world.delete(f"/oauth2/tokens?client_id={app}")).status_code == 204
            return caller

        monkeypatch.setattr(authentication, "authenticate", revoked_afterwards)
        for kind, make in CASES:
            access = (await it.exchange(await it.code())).json()["access_token"]
            world.client.cookies.clear()
            answer = await _ask(world, make(ids), access)
            if answer.status_code != 401:
                wrong.append(f"{kind} {make(ids)[:2]}: {answer.status_code} {answer.text[:200]}")
    assert not wrong, "\n".join(wrong)
