"""Every payload of `notice_tries.py` on every channel: readers go on, and their next genuine notice has its effect."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
import trio

from coder.base.log import also as log_to
from coder.coderd.services.provisioning.jobs import JOB_CHANGES
from coder.coderd.services.provisioning.new_jobs import POSTED
from coder.coderd.store.access.auth_changes import CHANNEL as IDENTITY
from coder.coderd.store.access.keys import ENDED
from coder.coderd.store.engine.database import Tx
from coder.coderd.store.engine.pubsub import notify
from coder.coderd.store.login.external_auth import LINKED
from coder.coderd.store.network.replicas import CHANNEL as REPLICAS
from coder.coderd.store.notifications.notifications import CHANNEL as MESSAGES_WAIT
from coder.coderd.store.provisioning.provisioners import KEY_DELETED
from coder.coderd.store.wireguard.wireguard_clients import CHANNEL as WIREGUARD
from coder.coderd.store.workspaces.change_feed import CHANNEL as CHANGES
from coder.coderd.store.workspaces.prebuilds import CLAIMED
from tests.attacks.notice_tries import JOBS, MESSAGES, PAYLOADS
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import new_workspace, workspace_world

CHANNELS = (
    JOB_CHANGES,
    POSTED,
    IDENTITY,
    ENDED,
    LINKED,
    REPLICAS,
    MESSAGES_WAIT,
    KEY_DELETED,
    WIREGUARD,
    CHANGES,
    CLAIMED,
    "inbox",
)


def test_readers_of_notices_meet_200_kinds() -> None:
    assert len(PAYLOADS) + len(JOBS) + len(MESSAGES) > 200


@pytest.mark.parametrize("every", [40, pytest.param(1, marks=pytest.mark.soak)], ids=["sample", "all"])
async def test_payloads_end_no_reader(every: int) -> None:
    faults: list[str] = []

    def note(level: Any, _at: Any, _name: str, message: str, fields: dict[str, Any]) -> None:
        if level == "error":
            faults.append(f"{message} {fields}")

    async with workspace_world() as (world, _):
        await new_workspace(world, "w")
        ids = await _ids(world)
        kinds = [(channel, text) for channel in CHANNELS for text in list(PAYLOADS.values())[::every]]
        kinds += [(POSTED, text) for text in list(JOBS.values())[::every]]
        kinds += [(REPLICAS, text) for text in list(MESSAGES.values())[::every]]
        with log_to(note), trio.fail_after(600):
            async with world.ctx.db.listen(*CHANNELS) as notices:
                for channel, payload in kinds:
                    await _notify(world, channel, _filled(payload, ids))
                    await notices.receive()
                    assert (await world.get("/api/v2/users/me")).status_code == 200
            # Jobs, logs and the workspace's page need every reader of these channels.
            await new_workspace(world, "next")
    assert faults == []


async def _ids(world: World) -> dict[str, str]:
    shown = (await world.get("/api/v2/workspaces?q=name:w")).json()["workspaces"][0]
    agents = [agent for item in shown["latest_build"]["resources"] for agent in item.get("agents") or []]
    return {
        "{user}": world.user_id,
        "{USER}": world.user_id.upper(),
        "{workspace}": shown["id"],
        "{agent}": agents[0]["id"],
        "{organization}": shown["organization_id"],
        "{none}": str(UUID(int=7)),
    }


def _filled(payload: str, ids: dict[str, str]) -> str:
    for word, value in ids.items():
        payload = payload.replace(word, value)
    return payload


async def _notify(world: World, channel: str, payload: str) -> None:
    async def work(tx: Tx) -> None:
        await notify(tx, channel, payload)

    await world.ctx.db.run(work)
