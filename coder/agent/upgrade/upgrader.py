"""Watches for a newer server, and says when its program is ready to replace ours (docs/decisions/agent-upgrade.md)."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

import trio

from coder.agent.activity import Activity
from coder.agent.upgrade.fetch import UpgradeRefusedError, fetch_program, reason_of, server_digest
from coder.agent.upgrade.handover import rehearse
from coder.base.log import get_logger
from coder.base.own_binary import own_name
from coder.base.retry import Backoff
from coder.base.version import BUILD_VERSION
from coder.base.whole_file import write_whole
from coder.domain.agents.upgrades import is_newer
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy

log = get_logger("agent.upgrade")

FIRST_DELAY, LAST_DELAY = 30.0, 3600.0
"""Ours: seconds between two looks when something was in the way. A program is large, and the way may be narrow."""
KEPT = 20
"""Ours: verdicts that are remembered, the last ones."""


@dataclass(frozen=True, slots=True)
class NewProgram:
    """A verified program that may take over now."""

    path: Path
    version: str
    digest: str
    "SHA-256 of it, in hex."


class Upgrader:
    """One for the life of a program."""

    def __init__(self, policy: DialPolicy, folder: Path, activity: Activity, keyring: Path | None = None) -> None:
        """`folder` is this agent's own: programs and verdicts on them are kept there."""
        self._policy, self._folder, self._activity, self._keyring = policy, folder, activity, keyring
        self._connected = trio.Event()
        self._refused: set[str] = set()
        self._backoff = Backoff(FIRST_DELAY, LAST_DELAY)

    def look(self) -> None:
        """The agent has connected: the server may be another one than before."""
        self._connected.set()

    async def run(self) -> NewProgram:
        """Returns when a newer program is here, verified, and nothing runs that it could not go on with."""
        await self._connected.wait()
        while True:
            self._connected = trio.Event()
            try:
                found = await self._newer_program()
                if found is not None and await self._wait_quiet(found):
                    rehearse()
                    return found
            except Exception as error:  # a convenience: whatever ails it, the agent goes on
                delay = self._backoff.next_delay()
                log.warn("an upgrade will be looked for again", seconds=round(delay), error=reason_of(error))
                await trio.sleep(delay)  # not sooner, however often the agent connects meanwhile
                continue
            self._backoff.reset()
            await self._connected.wait()

    async def _newer_program(self) -> NewProgram | None:
        async with HttpClient(self._policy) as client:
            version = str((await client.request("GET", "/api/v2/buildinfo")).json(dict).get("version", ""))
            if not is_newer(version, BUILD_VERSION):
                log.debug("the agent keeps its program", ours=BUILD_VERSION, server=version)
                return None
            digest = await server_digest(client, own_name())
            if digest in self._refused or any(verdict["digest"] == digest for verdict in self._verdicts()):
                log.debug("the server's program was tried and refused", server=version, digest=digest)
                return None
            log.info("the server is newer; getting its program", ours=BUILD_VERSION, server=version)
            try:
                path = await fetch_program(client, own_name(), version, digest, self._folder, self._keyring)
            except UpgradeRefusedError as error:
                self.refuse(digest, version, error.message)
                self._keep(digest, version, error.message)
                return None
        log.info("the server's program is verified", version=version, path=path)
        return NewProgram(path, version, digest)

    async def _wait_quiet(self, found: NewProgram) -> bool:
        """False when the agent connected anew meanwhile: the server may have another version by now."""
        while busy := self._activity.describe():
            log.info("the upgrade waits until these have ended", version=found.version, running=busy)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._leave_when_connected, nursery.cancel_scope)
                await self._activity.wait_quiet()
                nursery.cancel_scope.cancel()
            if self._connected.is_set():
                return False
        return not self._connected.is_set()

    async def _leave_when_connected(self, scope: trio.CancelScope) -> None:
        await self._connected.wait()
        scope.cancel()

    def refuse(self, digest: str, version: str, reason: str) -> None:
        """That program is not tried again by this process."""
        log.error("the server's program was refused; this one goes on", version=version, reason=reason)
        self._refused.add(digest)

    def _keep(self, digest: str, version: str, reason: str) -> None:
        """Nor by the next."""
        new = {"digest": digest, "version": version, "reason": reason, "at": time.time()}
        try:
            write_whole(self._file(), json.dumps({"refused": [*self._verdicts(), new][-KEPT:]}) + "\n")
        except OSError as error:
            log.warn("the refusal is remembered by this process only", error=error)

    def _verdicts(self) -> list[dict[str, object]]:
        try:
            found = json.loads(self._file().read_text(encoding="utf-8"))["refused"]
            return [verdict for verdict in found if isinstance(verdict["digest"], str)]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return []  # nothing was refused, or nobody can say

    def _file(self) -> Path:
        return self._folder / "refused.json"
