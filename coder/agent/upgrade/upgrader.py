"""Watches for a newer server, and says when its program is ready to replace ours (docs/decisions/agent-upgrade.md)."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import trio

from coder.agent.disk import on_disk
from coder.agent.upgrade.checks import check_again
from coder.agent.upgrade.fetch import fetch_program, server_digest
from coder.agent.upgrade.folder import link_others, locked, make_own, program_path
from coder.agent.upgrade.handover import rehearse
from coder.agent.upgrade.outcomes import UpgradeRefusedError, reason_of
from coder.agent.upgrade.records import Records
from coder.base.log import get_logger
from coder.base.own_binary import own_name
from coder.base.retry import Backoff
from coder.base.version import BUILD_VERSION
from coder.domain.agents.version_order import is_newer
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy

log = get_logger("agent.upgrade")

FIRST_DELAY, LAST_DELAY = 30.0, 3600.0
"""Ours: seconds between two looks when something was in the way. A program is large, and the way may be narrow."""
SPREAD = 900.0
"""Ours: seconds over which the agents of a server that was renewed begin their downloads, each when its turn comes."""
FRESH = 10.0
"""Ours: seconds for which a check holds. A program waits for days sometimes."""
PROVEN = 300.0
"""Ours: seconds after which a program that has taken over and is connected has lasted."""


@dataclass(frozen=True, slots=True)
class NewProgram:
    """A verified program that may take over now."""

    path: Path
    version: str
    digest: str
    "SHA-256 of it, in hex."


class Waiting(Protocol):
    """What an upgrade waits for."""

    def describe(self) -> str:
        """In words, "" when there is nothing to wait for."""

    async def wait_quiet(self) -> None: ...


class Upgrader:
    """One for the life of a program."""

    def __init__(self, policy: DialPolicy, folder: Path, waits: Sequence[Waiting], keyring: Path | None = None) -> None:
        """`folder` is this agent's own: programs and what is remembered of them are kept there."""
        self._policy, self._folder, self._waits, self._keyring = policy, folder, waits, keyring
        self._records = Records(folder)
        self._connected = trio.Event()
        self._refused: set[str] = set()
        self._backoff = Backoff(FIRST_DELAY, LAST_DELAY)
        self._verified: NewProgram | None = None
        self._checked_at = -math.inf
        self._turn = ("", 0.0)
        "The program whose download waits, and until when."

    def look(self) -> None:
        """The agent has connected: the server may be another one than before."""
        self._connected.set()

    async def prove(self, digest: str) -> None:
        """We are the program that has taken over: names of those before us are ours, and soon we have lasted."""
        try:
            await on_disk(_adopt, self._folder)
        except Exception as error:
            log.warn("the names of programs before this one were not made its own", error=reason_of(error))
        await trio.sleep(PROVEN)
        try:
            await on_disk(self._records.last, digest)
        except Exception as error:
            log.warn("what is remembered of upgrades was not brought up to date", error=reason_of(error))

    async def run(self) -> NewProgram:
        """Returns when a newer program is here, verified, and there is nothing that it could not go on with."""
        await self._connected.wait()
        while True:
            self._connected = trio.Event()
            try:
                found = await self._newer_program()
                if found is not None and await self._wait_quiet(found):
                    return found
            except Exception as error:  # a convenience: whatever ails it, the agent goes on
                self._verified = None
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
            if digest in self._refused or await on_disk(self._records.is_refused, digest):
                log.debug("the server's program was tried and refused", server=version, digest=digest)
                return None
            await on_disk(self._records.check_attempts, digest)
            known = self._verified
            if known is not None and (known.version, known.digest) == (version, digest):
                return known
            if not await self._take_turn(digest):
                return None
            log.info("the server is newer; getting its program", ours=BUILD_VERSION, server=version)
            try:
                path = await fetch_program(client, own_name(), version, digest, self._folder, self._keyring)
            except UpgradeRefusedError as error:
                self.refuse(digest, version, error.message)
                await self._keep(digest, version, error.message)
                return None
        log.info("the server's program is verified", version=version, path=path)
        self._verified, self._checked_at = NewProgram(path, version, digest), trio.current_time()
        return self._verified

    async def _take_turn(self, digest: str) -> bool:
        """Waits until this agent may get that program. False when it connected anew meanwhile."""
        if await on_disk(program_path(self._folder, digest).is_file):
            return True
        if self._turn[0] != digest:
            self._turn = (digest, trio.current_time() + random.uniform(0, SPREAD))
        with trio.move_on_at(self._turn[1]):
            await self._connected.wait()
            return False
        return True

    async def _wait_quiet(self, found: NewProgram) -> bool:
        """True when the program may take over in this moment.

        False when the agent connected anew meanwhile: the server may have another version by now. Raises whatever
        stands in the way.
        """
        while not self._connected.is_set():
            if (busy := next((one for one in self._waits if one.describe()), None)) is not None:
                log.info("the upgrade waits", version=found.version, until_there_is_no=busy.describe())
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._leave_when_connected, nursery.cancel_scope)
                    await busy.wait_quiet()
                    nursery.cancel_scope.cancel()
            elif trio.current_time() - self._checked_at > FRESH:
                await check_again(self._folder, found.path, found.version, found.digest)
                self._checked_at = trio.current_time()
            else:
                rehearse()
                # On the event loop: whoever came while a thread wrote it down would be cut off. The disk of this folder
                # has answered a moment ago.
                self._records.begin(found.digest, found.version)
                return True
        return False

    async def _leave_when_connected(self, scope: trio.CancelScope) -> None:
        await self._connected.wait()
        scope.cancel()

    def refuse(self, digest: str, version: str, reason: str) -> None:
        """That program is not tried again by this process."""
        log.error("the server's program was refused; this one goes on", version=version, reason=reason)
        self._refused.add(digest)

    async def _keep(self, digest: str, version: str, reason: str) -> None:
        """Nor by the next."""
        try:
            await on_disk(self._records.refuse, digest, version, reason)
        except OSError as error:
            log.warn("the refusal is remembered by this process only", error=error)


def _adopt(folder: Path) -> None:
    make_own(folder)
    with locked(folder):
        link_others(folder)
